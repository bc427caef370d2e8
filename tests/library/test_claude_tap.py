"""The tap on a client of the Claude Agent SDK: every frame, unchanged, whatever becomes of it."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from contextgauge.claude_sdk import tap
from contextgauge.errors import ConfigError

FRAMES: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "s"},
    {"type": "control_response", "response": {}},
    {"type": "assistant", "message": {"content": []}, "session_id": "s"},
]


class Transport:
    """A transport as the SDK's: it connects, and yields the runtime's frames."""

    def __init__(self) -> None:
        self.closed = False

    async def connect(self) -> None: ...

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        try:
            for frame in FRAMES:
                yield frame
        finally:
            self.closed = True


class Client:
    """A client as the SDK's: it makes its transport as it connects, and reads in the background."""

    def __init__(self, name: str = "_transport") -> None:
        self._transport: Transport | None = None
        self._name = name
        self.read: list[dict[str, Any]] = []

    async def connect(self, prompt: str | None = None) -> None:
        del prompt
        transport = Transport()
        setattr(self, self._name, transport)
        await transport.connect()
        self.read = [frame async for frame in transport.read_messages()]

    async def disconnect(self) -> None:
        self._transport = None

    def receive_messages(self) -> list[dict[str, Any]]:
        return self.read


class Ear:
    """What the tap handed on."""

    def __init__(self) -> None:
        self.frames: list[Mapping[str, object]] = []
        self.missed = 0

    async def hand(self, frame: Mapping[str, object]) -> None:
        self.frames.append(frame)

    def miss(self) -> None:
        self.missed += 1


async def test_a_client_and_its_tap_read_the_same_messages() -> None:
    ear = Ear()
    client = Client()
    assert tap(client, ear.hand, ear.miss) is client
    await client.connect("hi")
    assert client.receive_messages() == FRAMES
    assert ear.frames == FRAMES
    assert ear.missed == 0
    assert isinstance(client, Client)


async def test_a_client_that_connects_again_is_tapped_again() -> None:
    ear = Ear()
    client = tap(Client(), ear.hand, ear.miss)
    await client.connect()
    await client.disconnect()
    await client.connect()
    assert ear.frames == [*FRAMES, *FRAMES]


async def test_other_clients_are_left_alone() -> None:
    ear = Ear()
    tap(Client(), ear.hand, ear.miss)
    other = Client()
    await other.connect()
    assert other.read == FRAMES
    assert ear.frames == []


async def test_an_incompatible_client_is_reported_and_keeps_working() -> None:
    ear = Ear()
    client = tap(Client("_of_a_later_version"), ear.hand, ear.miss)
    await client.connect()
    assert client.read == FRAMES
    assert (ear.frames, ear.missed) == ([], 1)


async def test_a_transport_is_tapped_and_closed_with_its_reader() -> None:
    ear = Ear()
    transport = tap(Transport(), ear.hand, ear.miss)
    reading = transport.read_messages()
    assert await anext(reading) == FRAMES[0]
    await reading.aclose()  # type: ignore[attr-defined]  # a generator, as the SDK's is
    assert transport.closed
    assert ear.frames == FRAMES[:1]


async def test_a_connected_client_is_refused() -> None:
    client = Client()
    await client.connect()
    with pytest.raises(ConfigError, match="before it connects"):
        tap(client, Ear().hand, Ear().miss)


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="ClaudeSDKClient or a Transport"):
        tap(object(), Ear().hand, Ear().miss)
