"""A follower over real files, with a clock that the test moves."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from streams.edge.files import reading as files
from streams.edge.files.follower import Follower
from streams.edge.files.positions import Position, from_entry
from streams.edge.files.watch import Look, TranscriptFinder
from streams.ports import LineBatch

ROLLOUT = "rollout-2026-08-16T14-07-04-01a00ae5-0000-7000-8000-000000000001.jsonl"


@dataclass
class Hands:
    """A clock that only the test moves; its time of day is that of the files."""

    at_s: float = 1_000.0

    def now_ms(self) -> int:
        return int(self.at_s * 1_000)

    def monotonic_s(self) -> float:
        return self.at_s

    async def sleep(self, seconds: float) -> None:
        self.at_s += seconds


@dataclass
class Bench:
    """A follower, and what it gave so far."""

    paths: list[str]
    follow: bool = True
    again: bool = False
    positions: list[Position] = field(default_factory=list)
    fallback: str | None = None
    clock: Hands = field(default_factory=Hands)
    events: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        look: Look
        if self.follow:
            look = TranscriptFinder(self.paths).look
        else:
            transcripts = files.find(self.paths)
            look = lambda _now_s, _failed: transcripts  # noqa: E731
        self.follower = Follower(
            look,
            self.positions,
            self.clock,
            fallback=self.fallback,
            follow=self.follow,
            again=self.again,
            report=self.events.append,
        )
        self._pieces: Iterator[LineBatch] = self.follower.pieces()

    def restart(self) -> None:
        """Begin anew with what was acknowledged, as a checkpoint keeps it."""
        self.positions = [from_entry(position._asdict()) for position in self.follower.positions()]
        self.start()

    def pieces(self, *, settle: bool = True) -> list[LineBatch]:
        """Return what is there now; a moment passes before."""
        self.clock.at_s += 0.3
        found = []
        for piece in self._pieces:
            if not piece.lines:
                break
            found.append(piece)
            if settle:
                piece.settle()
        return found

    def lines(self, *, settle: bool = True) -> list[str]:
        pieces = self.pieces(settle=settle)
        return [line.value.decode() for piece in pieces for line in piece.lines]

    def places(self) -> list[tuple[str, int, str | None]]:
        """Return name, number and hint of each new line."""
        return [
            (Path(line.file).name, line.number, line.session_hint)
            for piece in self.pieces()
            for line in piece.lines
        ]


def entry(number: int, session: str = "s") -> str:
    return f'{{"sessionId":"{session}","uuid":"{number:09d}"}}'


def add(path: Path, *values: str, end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as target:
        target.write("\n".join(values) + end)


def compressed(value: bytes, frames: int = 1) -> bytes:
    """Return bytes as zstd compresses them, in one frame or several."""
    size = max(1, -(-len(value) // frames))
    parts = [value[offset : offset + size] for offset in range(0, len(value), size)] or [b""]
    packer = zstandard.ZstdCompressor(level=3, write_content_size=False, write_checksum=True)
    return b"".join(packer.compress(part) for part in parts)


class Codex:
    """One rollout, and what Codex's housekeeping does to it: times are kept as Codex keeps them."""

    def __init__(self, home: Path, name: str = ROLLOUT) -> None:
        self.day = home / "sessions" / "2026" / "08" / "16"
        self.archive = home / "archived_sessions"
        self.place = self.day / name

    def append(self, *values: str, at_s: float | None = None) -> None:
        """Write lines, as a plain file again if it is compressed."""
        self.decompress()
        add(self.place, *values)
        if at_s is not None:
            os.utime(self.place, (at_s, at_s))

    def compress(self) -> None:
        if self.place.suffix == ".zst":
            return
        status = self.place.stat()
        packed = self.place.with_name(self.place.name + ".zst")
        temporary = packed.with_name("rollout-compress-x.tmp")
        temporary.write_bytes(compressed(self.place.read_bytes()))
        os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
        temporary.rename(packed)
        self.place.unlink()
        self.place = packed

    def decompress(self) -> None:
        if self.place.suffix != ".zst":
            return
        plain = self.place.with_suffix("")
        temporary = plain.with_name(plain.name + ".tmp")
        value = zstandard.ZstdDecompressor().decompressobj().decompress(self.place.read_bytes())
        temporary.write_bytes(value)
        temporary.rename(plain)
        self.place.unlink()
        self.place = plain

    def put_away(self) -> None:
        """Archive it."""
        self._move(self.archive)

    def take_back(self) -> None:
        """Take it from the archive; its time is then that of this."""
        self._move(self.day)
        self.place.touch()

    def _move(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.place = self.place.rename(folder / self.place.name)
