"""A follower over real files, with a clock that the test moves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from streams.edge.files import reading as files
from streams.edge.files.follower import Follower
from streams.edge.files.positions import Position, from_entry
from streams.edge.files.watch import TranscriptFile, TranscriptFinder
from streams.ports import LineBatch


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
        look: Callable[[float], list[TranscriptFile]]
        if self.follow:
            look = TranscriptFinder(self.paths).look
        else:
            transcripts = files.find(self.paths)
            look = lambda _: transcripts  # noqa: E731
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
        self.positions = [from_entry(at._asdict()) for at in self.follower.positions()]
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
        found = self.pieces(settle=settle)
        return [line.value.decode() for piece in found for line in piece.lines]

    def places(self) -> list[tuple[str, int, str | None]]:
        """Return name, number and hint of each new line."""
        return [
            (Path(line.file).name, line.number, line.session_hint)
            for piece in self.pieces()
            for line in piece.lines
        ]


def told(number: int, session: str = "s") -> str:
    return f'{{"sessionId":"{session}","uuid":"{number:09d}"}}'


def add(path: Path, *values: str, end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as target:
        target.write("\n".join(values) + end)
