"""What followed boundaries, compared with what the same sessions did without one.

Of each file that is read within 24 calls after a point, whether it was read or changed before it;
of each call that fails there, whether the same call failed before; of each turn, whether it repeats
an earlier one. An agent reads files again and repeats what fails anyway, so each boundary has two
control points in its session: as many calls before it, and as many after those that follow it, both
without another boundary near.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from contextgauge.compaction.carried.failure_lines import failure_in
from contextgauge.compaction.carried.file_ledger import uses_of
from contextgauge.compaction.carried.text_actions import calls_of
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message, ToolCall
from streams.core.autopsy.intervals import Comparison, Share
from streams.core.control.turn_overlap import THRESHOLD, SeenText, can_be_judged

CALLS: Final = 24
"""Calls after a point that are looked at: later ones follow from what was done since."""


class Consequences(NamedTuple):
    """What was done again: files read, failing calls repeated, and turns repeated."""

    files_read_again: Comparison = Comparison()
    failing_calls_repeated: Comparison = Comparison()
    turns_restated: Comparison = Comparison()

    def plus(self, other: "Consequences") -> "Consequences":
        """Return those of both together."""
        return Consequences(*(a.plus(b) for a, b in zip(self, other, strict=True)))


class _Point(NamedTuple):
    """A point before the call `call`, at the entry `place` of the history; `end` is one behind."""

    call: int
    place: int
    calls: int
    end: int


class _Again(NamedTuple):
    """What was done again within the calls after a point."""

    files: Share
    calls: Share
    turns: Share


def consequences(history: History, boundaries: Sequence[int]) -> Consequences:
    """Return what followed boundaries, by the places of their entries in the history."""
    trail = _Trail(history)
    points = list(trail.after(boundaries))
    controls = list(dict.fromkeys(each for point in points for each in trail.controls(point)))
    after, control = trail.again(points), trail.again(controls)
    return Consequences(*(Comparison(a, b) for a, b in zip(after, control, strict=True)))


class _Trail:
    """The calls and turns of a history in order, by the places of its entries."""

    def __init__(self, history: History) -> None:
        self._places: list[int] = []
        self._uses: list[tuple[tuple[str, bool], ...]] = []
        self._calls: list[tuple[str, str]] = []
        self._failed: set[int] = set()
        self._turns: list[tuple[int, str]] = []
        self._open: dict[str, int] = {}
        self._boundaries: list[tuple[int, int]] = []
        self._end = len(history.entries)
        for place, entry in enumerate(history.entries):
            if isinstance(entry, Message) and entry.compaction is None:
                self._add(place, entry)

    def _add(self, place: int, message: Message) -> None:
        if can_be_judged(message.user_text):
            self._turns.append((place, message.user_text))
        outputs = [(each.call_id, each.text, each.is_error) for each in message.results]
        for call_id, text, is_error in (*outputs, ("", message.data_text, False)):
            call = self._open.pop(call_id, None)
            if call is not None and (is_error or failure_in(text, is_error=False)):
                self._failed.add(call)
        for each in calls_of(message):
            self._call(place, each)

    def _call(self, place: int, call: ToolCall) -> None:
        self._open[call.id] = len(self._calls)
        self._places.append(place)
        self._uses.append(tuple(uses_of(call)))
        self._calls.append((call.name, call.arguments))

    def after(self, boundaries: Sequence[int]) -> Iterator[_Point]:
        """Yield the boundaries that have calls before and after them."""
        self._boundaries = [
            (sum(each < place for each in self._places), place) for place in boundaries
        ]
        for at, (call, place) in enumerate(self._boundaries):
            following = self._boundaries[at + 1 :]
            last = following[0][0] if following else len(self._calls)
            if call and last > call:
                yield self._point(call, place, min(CALLS, last - call))

    def controls(self, point: _Point) -> Iterator[_Point]:
        """Yield the points before and after the calls that follow a boundary, as long as those."""
        for call in (point.call - point.calls, point.call + point.calls):
            end = call + point.calls
            near = any(call - CALLS < other < end for other, _ in self._boundaries)
            if call > 0 and end <= len(self._calls) and not near:
                yield self._point(call, self._places[call], point.calls)

    def _point(self, call: int, place: int, calls: int) -> _Point:
        ends = [each for _, each in self._boundaries if each > place]
        ends += self._places[call + calls : call + calls + 1]
        return _Point(call, place, calls, min(ends, default=self._end))

    def again(self, points: Sequence[_Point]) -> _Again:
        """Return what was done again after points."""
        files, calls, turns = Share(0, 0), Share(0, 0), Share(0, 0)
        for point in points:
            files = files.plus(self._files(point))
            calls = calls.plus(self._failures(point))
            turns = turns.plus(self._said(point))
        return _Again(files, calls, turns)

    def _files(self, point: _Point) -> Share:
        known = {path for uses in self._uses[: point.call] for path, _ in uses}
        first: dict[str, bool] = {}
        for uses in self._uses[point.call : point.call + point.calls]:
            for path, changed in uses:
                first.setdefault(path, changed)
        read = {path for path, changed in first.items() if not changed}
        return Share(len(read & known), len(read))

    def _failures(self, point: _Point) -> Share:
        def failed(first: int, end: int) -> set[tuple[str, str]]:
            return {self._calls[at] for at in range(first, end) if at in self._failed}

        now = failed(point.call, point.call + point.calls)
        return Share(len(now & failed(0, point.call)), len(now))

    def _said(self, point: _Point) -> Share:
        now = [text for place, text in self._turns if point.place <= place < point.end]
        if not now:
            return Share(0, 0)
        before = [text for place, text in self._turns if place < point.place]
        seen = SeenText(before, turns=[text for _, text in self._turns])
        again = [each for each in now if seen.has(each) or (seen.overlap(each) or 0) >= THRESHOLD]
        return Share(len(again), len(now))
