"""Listens to what a client of the Claude Agent SDK reads, before the SDK takes it apart.

Each frame is handed on as it came from the runtime; whoever gets it must have its bytes when it
returns, for the frame goes on to the SDK. Nothing global is replaced, only what the one client
or transport reads.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from contextgauge.errors import ConfigError

Frame: TypeAlias = Mapping[str, object]
Hand: TypeAlias = Callable[[Frame], Awaitable[None]]
Target = TypeVar("Target")

_ATTRIBUTE = "_transport"
"""Where every version of the SDK's client (0.1.0 to 0.2.187) puts its transport as it connects."""


class _Transport(Protocol):
    """What this needs of the SDK's transport."""

    read_messages: Callable[[], AsyncIterator[dict[str, Any]]]


class _Client(Protocol):
    """What this needs of the SDK's client."""

    async def connect(self, *arguments: object, **named: object) -> None: ...


def tap(target: Target, hand: Hand, missed: Callable[[], None]) -> Target:
    """Hand every frame that a client or a transport reads to `hand`, and return it.

    A client must not be connected yet. `missed` is called where a client has connected and its
    transport was not found: a version of the SDK that works in another way. Raises ConfigError
    for a client that is connected, TypeError for what is neither.
    """
    if hasattr(target, "read_messages"):
        _tap_transport(cast("_Transport", target), hand)
    elif hasattr(target, "connect") and hasattr(target, "receive_messages"):
        if getattr(target, _ATTRIBUTE, None) is not None:
            raise ConfigError("the client is connected already: tap it before it connects")
        _tap_client(cast("_Client", target), hand, missed)
    else:
        raise TypeError(
            "tap takes a ClaudeSDKClient or a Transport of the Claude Agent SDK, and no "
            f"{type(target).__name__}"
        )
    return target


def _tap_transport(transport: _Transport, hand: Hand) -> None:
    read = transport.read_messages

    async def read_messages() -> AsyncIterator[dict[str, Any]]:
        frames = read()
        try:
            async for frame in frames:
                if isinstance(frame, Mapping):
                    await hand(frame)
                yield frame
        finally:
            close = getattr(frames, "aclose", None)
            if close is not None:
                await close()

    transport.read_messages = read_messages


def _tap_client(client: _Client, hand: Hand, missed: Callable[[], None]) -> None:
    """Make the client's transport an attribute that is tapped as it is set."""
    usual = type(client)

    def get(self: _Client) -> _Transport | None:
        return cast("_Transport | None", vars(self).get(_ATTRIBUTE))

    def put(self: _Client, transport: _Transport | None) -> None:
        if transport is not None and transport is not get(self):
            _tap_transport(transport, hand)
        vars(self)[_ATTRIBUTE] = transport

    async def connect(self: _Client, *arguments: object, **named: object) -> None:
        await usual.connect(self, *arguments, **named)
        if get(self) is None:
            missed()

    kept = {"__module__": usual.__module__, "__qualname__": usual.__qualname__}
    parts = {_ATTRIBUTE: property(get, put), "connect": connect, **kept}
    client.__class__ = type(usual.__name__, (usual,), parts)
