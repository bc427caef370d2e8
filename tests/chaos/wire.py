"""A wire between workers and a server, which can be cut, slowed down, or lose an answer.

It relays TCP connections on a thread of its own. Kafka's frames are distinguished, so that one kind
of request or its answer can be held or lost; everything else is bytes.
"""

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from tests.patience import PATIENCE_S

Direction: TypeAlias = Literal["up", "down"]
"""Up: from worker to server."""

PRODUCE: Final = 0
FETCH: Final = 1
JOIN_GROUP: Final = 11
INIT_PRODUCER: Final = 22
ADD_PARTITIONS: Final = 24
END_TRANSACTION: Final = 26
"""Kinds of Kafka's requests, by the numbers of its protocol."""

_LENGTH: Final = struct.Struct(">i")
_REQUEST: Final = struct.Struct(">ihhi")
_ANSWER: Final = struct.Struct(">ii")
_SCRIPT_CALL: Final = b"EVAL"
_PIECE_BYTES: Final = 65_536
_LOOK_S: Final = 0.01


@dataclass
class Weather:
    """What befalls a wire; the defaults are fair."""

    held: frozenset[Direction] = frozenset()
    """Directions in which nothing arrives, as if packets were dropped; later it does."""

    delay_s: float = 0.0
    """Of each piece, in each direction."""

    lost_answers: int = 0
    """How many answers are lost, each with its connection."""

    of_request: int | None = None
    """The kind of request whose answers are lost, and which is held back by `late_s`."""

    late_s: float = 0.0


class _Frames:
    """Cuts a stream of bytes into Kafka's frames."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> list[bytes]:
        self._rest += data
        frames = []
        while len(self._rest) >= _LENGTH.size:
            size = _LENGTH.size + _LENGTH.unpack_from(self._rest)[0]
            if len(self._rest) < size:
                break
            frames.append(self._rest[:size])
            self._rest = self._rest[size:]
        return frames


@dataclass(eq=False)
class _Link:
    """One connection through the wire."""

    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    awaited: set[int] = field(default_factory=set)
    """Numbers of the requests whose answers are to be lost."""

    def cut(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Wire:
    """Relays connections from `port` to the server's port, under the weather of the moment.

    Port 0 is any free one. As a name that moves does, another `server_port` holds for connections
    that are made after it was set.
    """

    def __init__(self, port: int, server_port: int, *, is_kafka: bool) -> None:
        self.port, self.server_port = port, server_port
        self.weather = Weather()
        self.lost = 0
        """Answers lost so far, and requests that were held back."""
        self._is_kafka = is_kafka
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._listening.wait(PATIENCE_S):
            raise OSError(f"port {port} is taken")

    def clear(self) -> None:
        """Return to fair weather."""
        self.weather = Weather()

    def reset(self) -> None:
        """Cut all connections; new ones may be made at once."""
        self._loop.call_soon_threadsafe(self._cut_all)

    def _cut_all(self) -> None:
        for link in self._links:
            link.cut()

    def stop(self) -> None:
        """Cut everything for good."""
        self.reset()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = asyncio.start_server(self._relay, "127.0.0.1", self.port)
        self._server = self._loop.run_until_complete(listening)
        self.port = self._server.sockets[0].getsockname()[1]
        self._listening.set()
        self._loop.run_forever()
        ending = asyncio.all_tasks(self._loop)
        for task in ending:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*ending, return_exceptions=True))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.server_port)
        except OSError:
            writer.transport.abort()
            return
        link = _Link((writer, back))
        self._links.add(link)
        up, down = (self._up, self._down) if self._is_kafka else (self._up_raw, self._down_raw)
        pumps = [
            asyncio.create_task(self._pump("up", reader, back, link, up)),
            asyncio.create_task(self._pump("down", there, writer, link, down)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        link.cut()
        await asyncio.wait(pumps)
        self._links.discard(link)

    async def _pump(
        self,
        direction: Direction,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        link: _Link,
        passes: Callable[[bytes, _Link], Awaitable[bool]],
    ) -> None:
        """Relay one direction until either end is gone or an answer is lost."""
        frames = _Frames()
        try:
            while data := await reader.read(_PIECE_BYTES):
                # The weather is changed by another thread, which no event of this loop's is set by.
                while direction in self.weather.held:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
                if self.weather.delay_s:
                    await asyncio.sleep(self.weather.delay_s)
                for frame in frames.take(data) if self._is_kafka else [data]:
                    if not await passes(frame, link):
                        return
                    writer.write(frame)
                await writer.drain()
        except OSError:
            return

    async def _up(self, frame: bytes, link: _Link) -> bool:
        weather = self.weather
        _, kind, _, number = _REQUEST.unpack_from(frame)
        if kind != weather.of_request:
            return True
        if weather.late_s:
            self.lost += 1
            await asyncio.sleep(weather.late_s)
        if weather.lost_answers:
            weather.lost_answers -= 1
            link.awaited.add(number)
        return True

    async def _down(self, frame: bytes, link: _Link) -> bool:
        _, number = _ANSWER.unpack_from(frame)
        if number not in link.awaited:
            return True
        self.lost += 1
        return False

    async def _up_raw(self, data: bytes, link: _Link) -> bool:
        if self.weather.lost_answers and _SCRIPT_CALL in data:
            self.weather.lost_answers -= 1
            link.awaited.add(0)
        return True

    async def _down_raw(self, _: bytes, link: _Link) -> bool:
        self.lost += bool(link.awaited)
        return not link.awaited
