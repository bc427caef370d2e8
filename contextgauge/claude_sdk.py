"""The Claude Agent SDK for Python: its objects as stream frames, and a tap on its client.

The SDK parses each frame into a dataclass and forgets the frame. System messages keep it whole
in `data`; of the others only what the class has fields for is left, and nothing is added here:
what the SDK dropped stays absent. The tap hands on each frame as it came from the runtime, before
the SDK parses it; nothing global is replaced, only what the one client or transport reads. The
SDK itself is not needed: its classes are recognised by name.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeAlias, TypeVar

from contextgauge.errors import ConfigError

_PACKAGE = "claude_agent_sdk"

_BLOCKS: Final = {
    "TextBlock": "text",
    "ThinkingBlock": "thinking",
    "ToolUseBlock": "tool_use",
    "ToolResultBlock": "tool_result",
    "ServerToolUseBlock": "server_tool_use",
    "ServerToolResultBlock": "advisor_tool_result",
}
"""The stream's types of the content blocks that the SDK has classes for."""


def is_claude_object(value: object) -> bool:
    """Whether the value is of a class of the Claude Agent SDK."""
    return type(value).__module__.partition(".")[0] == _PACKAGE


def stream_body(message: object) -> dict[str, object] | None:
    """Return the frame of a message of the SDK, as far as it is left; None where it is none."""
    data = getattr(message, "data", None)
    if isinstance(data, Mapping):
        return dict(data)
    write = _WRITERS.get(type(message).__name__)
    return None if write is None or not is_dataclass(message) else write(_present_fields(message))


def lacks_usage(message: object) -> bool:
    """Whether it is a response of an early version of the SDK, which has no place for usage."""
    is_response = is_claude_object(message) and type(message).__name__ == "AssistantMessage"
    return is_response and not hasattr(message, "usage")


def _present_fields(value: object) -> dict[str, object]:
    """Return the fields that are not null: the stream leaves out unknown fields."""
    if not is_dataclass(value):
        return {}
    pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {name: item for name, item in pairs if item is not None}


def _assistant(values: dict[str, object]) -> dict[str, object]:
    message = {
        "role": "assistant",
        "id": values.pop("message_id", None),
        "model": values.pop("model", None),
        "content": _content(values.pop("content", None)),
        "stop_reason": values.pop("stop_reason", None),
        "usage": values.pop("usage", None),
    }
    present = {name: item for name, item in message.items() if item is not None}
    return {"type": "assistant", "message": present, **values}


def _user(values: dict[str, object]) -> dict[str, object]:
    message = {"role": "user", "content": _content(values.pop("content", None))}
    return {"type": "user", "message": message, **values}


def _content(content: object) -> object:
    return [_block(block) for block in content] if isinstance(content, list) else content


def _block(block: object) -> object:
    kind = _BLOCKS.get(type(block).__name__)
    return block if kind is None else {"type": kind, **_present_fields(block)}


def _result(values: dict[str, object]) -> dict[str, object]:
    body: dict[str, object] = {"type": "result", **values}
    if "model_usage" in body:
        body["modelUsage"] = body.pop("model_usage")
    return body


def _rate_limit(values: dict[str, object]) -> dict[str, object]:
    info = values.pop("rate_limit_info", None)
    raw = getattr(info, "raw", None)
    return {"type": "rate_limit_event", "rate_limit_info": raw or _present_fields(info), **values}


def _named(kind: str) -> Callable[[dict[str, object]], dict[str, object]]:
    return lambda values: {"type": kind, **values}


_WRITERS: Final[Mapping[str, Callable[[dict[str, object]], dict[str, object]]]] = {
    "AssistantMessage": _assistant,
    "UserMessage": _user,
    "ResultMessage": _result,
    "StreamEvent": _named("stream_event"),
    "RateLimitEvent": _rate_limit,
    "ConversationResetMessage": _named("conversation_reset"),
}


Frame: TypeAlias = Mapping[str, object]
Hand: TypeAlias = Callable[[Frame], Awaitable[None]]
Target = TypeVar("Target")

_ATTRIBUTE = "_transport"
"""Where every version of the SDK's client (0.1.0 to 0.2.187) puts its transport as it connects."""


def tap(target: Target, hand: Hand, missed: Callable[[], None]) -> Target:
    """Hand every frame that a client or a transport reads to `hand`, and return it.

    A client must not be connected yet. `missed` is called where a client has connected and its
    transport was not found: a version of the SDK that works in another way. Raises ConfigError
    for a client that is connected, TypeError for what is neither.
    """
    if hasattr(target, "read_messages"):
        _tap_transport(target, hand)
    elif hasattr(target, "connect") and hasattr(target, "receive_messages"):
        if getattr(target, _ATTRIBUTE, None) is not None:
            raise ConfigError("the client is connected already: tap it before it connects")
        _tap_client(target, hand, missed)
    else:
        raise TypeError(
            "tap takes a ClaudeSDKClient or a Transport of the Claude Agent SDK, and no "
            f"{type(target).__name__}"
        )
    return target


def _tap_transport(transport: Any, hand: Hand) -> None:  # noqa: ANN401 -- of the SDK
    read: Callable[[], AsyncIterator[dict[str, Any]]] = transport.read_messages

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


def _tap_client(client: object, hand: Hand, missed: Callable[[], None]) -> None:
    """Make the client's transport an attribute that is tapped as it is set."""
    usual: Any = type(client)

    def get(self: object) -> object:
        return vars(self).get(_ATTRIBUTE)

    def put(self: object, transport: object) -> None:
        if transport is not None and transport is not get(self):
            _tap_transport(transport, hand)
        vars(self)[_ATTRIBUTE] = transport

    async def connect(self: object, *arguments: object, **named: object) -> None:
        await usual.connect(self, *arguments, **named)
        if get(self) is None:
            missed()

    identity = {"__module__": usual.__module__, "__qualname__": usual.__qualname__}
    parts = {_ATTRIBUTE: property(get, put), "connect": connect, **identity}
    client.__class__ = type(usual.__name__, (usual,), parts)
