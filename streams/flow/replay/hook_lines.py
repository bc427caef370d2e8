"""Puts messages of hooks about compactions between a transcript's lines, by time.

A transcript of Claude Code or Codex has neither the start nor the end of a compaction. Messages of
hooks do, in the form in which Claude Code's stream has them, so that they are derived as any line.
A message comes before the first line that was written later; what comes after the last line is
given once there is nothing left to read.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from contextgauge.containers import Line
from contextgauge.normalise.fields import moment_ms
from schemas.messages import DeadLetter
from streams import codec
from streams.ports import HookedBy, HookMessage


class HookLines:
    """The messages of transcripts, each given once. `hooked` returns those of a path."""

    def __init__(self, hooked: HookedBy) -> None:
        self._hooked = hooked
        self._given: dict[str, set[bytes]] = defaultdict(set)
        self._read: set[str] = set()
        """The transcripts whose lines were read here."""

    def begin(self, path: str, read_ms: int | None) -> None:
        """Take messages of up to this time as given, unless lines were read here.

        An earlier reading went so far.
        """
        if path not in self._read and path not in self._given and read_ms is not None:
            earlier = (each.value for each in self._hooked(path) if each.time_ms <= read_ms)
            self._given[path].update(earlier)

    def given_ms(self, path: str) -> int | None:
        """Return the time of the latest message that was given; None where none was."""
        given = self._given.get(path, set())
        times = (each.time_ms for each in self._hooked(path) if each.value in given)
        return max(times, default=None)

    def between(self, path: str, lines: Sequence[Line]) -> Sequence[Line]:
        """Return lines with the messages that were written before them."""
        self._read.add(path)
        waiting = self._waiting(path)
        return list(self._merged(path, waiting, lines)) if waiting else lines

    def rest(self, path: str) -> list[Line]:
        """Return the messages that no line came after."""
        return [self._line(path, each) for each in self._waiting(path)]

    def _waiting(self, path: str) -> list[HookMessage]:
        messages = self._hooked(path)
        if not messages:
            return []
        given = self._given[path]
        return [each for each in messages if each.value not in given]

    def _merged(
        self, path: str, waiting: list[HookMessage], lines: Sequence[Line]
    ) -> Iterator[Line]:
        for line in lines:
            time_ms = _time_of(line) if waiting else None
            while waiting and time_ms is not None and waiting[0].time_ms <= time_ms:
                yield self._line(path, waiting.pop(0))
            yield line

    def _line(self, path: str, message: HookMessage) -> Line:
        self._given[path].add(message.value)
        return Line(path, 0, message.value, len(message.value), None)


def _time_of(line: Line) -> int | None:
    body = codec.decode(line.value)
    return None if isinstance(body, DeadLetter) else moment_ms(body.get("timestamp"))
