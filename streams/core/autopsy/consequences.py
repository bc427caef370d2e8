"""What followed boundaries, compared with what the same sessions did without one.

Of each file that is read within 24 calls after a point, whether it was read or changed before it;
of each call that fails there, whether the same call failed before; of each turn, whether it repeats
an earlier one; of each action, whether it is the first on what a turn names (`left_alone.py`). An
agent reads files again and repeats what fails anyway, so each boundary has two control points in
its session: as many calls before it, and as many after those that follow it, both without another
boundary near, be it an inherited one or a reset.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from streams.core.autopsy.intervals import CaseShare, ShareComparison
from streams.core.autopsy.left_alone import touched_first
from streams.core.autopsy.remains import clauses_of
from streams.core.autopsy.trail import Trail
from streams.core.control.turn_overlap import THRESHOLD, GuardWork, SeenText, Turn

CALLS: Final = 24
"""Calls after a point that are looked at: later ones follow from what was done since."""


class Consequences(NamedTuple):
    """What was done again, and what may violate a constraint."""

    files_read_again: ShareComparison = ShareComparison()
    failing_calls_repeated: ShareComparison = ShareComparison()
    turns_restated: ShareComparison = ShareComparison()
    constraints_possibly_violated: ShareComparison = ShareComparison()

    def plus(self, other: "Consequences") -> "Consequences":
        """Return those of both together."""
        return Consequences(*(a.plus(b) for a, b in zip(self, other, strict=True)))


class FollowingCase(NamedTuple):
    """What was done after a point: a path, a call, a turn, or a name that an action touches.

    `former_id` is the message before the point that it goes back to; empty: to none.
    """

    text: str
    message_id: str
    former_id: str = ""


class FollowingCases(NamedTuple):
    """What was done within the calls after a point, in the order of `Consequences`."""

    files: tuple[FollowingCase, ...] = ()
    failures: tuple[FollowingCase, ...] = ()
    turns: tuple[FollowingCase, ...] = ()
    actions: tuple[FollowingCase, ...] = ()


class Followed(NamedTuple):
    """What followed each boundary, as given, and all of it compared."""

    cases: tuple[FollowingCases, ...]
    compared: Consequences


class _Point(NamedTuple):
    """A point before the call `call`, at the entry `place` of the history; `end` is one behind."""

    call: int
    place: int
    calls: int
    end: int


def consequences(
    trail: Trail, boundaries: Sequence[int], work: GuardWork, others: Sequence[int] = ()
) -> Followed:
    """Return what followed boundaries, by the places of their entries in the trail's history.

    `others` are places of boundaries that are another session's: where calls after a point end,
    too. Turns that `work` has no room for are left out.
    """
    course = _Course(trail, {*boundaries, *others, *trail.emptied}, work)
    points = [course.after(place) for place in boundaries]
    controls = dict.fromkeys(
        each for point in points if point is not None for each in course.controls(point)
    )
    cases = [FollowingCases() if each is None else course.cases(each) for each in points]
    after, control = _shares(cases), _shares([course.cases(each) for each in controls])
    compared = Consequences(*(ShareComparison(a, b) for a, b in zip(after, control, strict=True)))
    return Followed(tuple(cases), compared)


def _shares(cases: Sequence[FollowingCases]) -> list[CaseShare]:
    shares = [CaseShare(0, 0)] * len(FollowingCases._fields)
    for each in cases:
        own = [CaseShare(sum(bool(case.former_id) for case in kind), len(kind)) for kind in each]
        shares = [a.plus(b) for a, b in zip(shares, own, strict=True)]
    return shares


class _Course:
    """A session's trail, and the places of all boundaries and resets in it."""

    def __init__(self, trail: Trail, boundaries: Iterable[int], work: GuardWork) -> None:
        self._trail, self._work = trail, work
        self._boundaries = [(trail.calls_before(place), place) for place in sorted(boundaries)]
        self._first = touched_first(trail)

    def after(self, place: int) -> _Point | None:
        """Return the point of a boundary; None where no calls are before it, or none after it."""
        call = self._trail.calls_before(place)
        following = (other for other, each in self._boundaries if each > place)
        last = next(following, len(self._trail.calls))
        return self._point(call, place, min(CALLS, last - call)) if call and last > call else None

    def controls(self, point: _Point) -> Iterator[_Point]:
        """Yield the points before and after the calls that follow a boundary, as long as those."""
        calls = self._trail.calls
        for call in (point.call - point.calls, point.call + point.calls):
            end = call + point.calls
            near = any(call - CALLS < other < end for other, _ in self._boundaries)
            if call > 0 and end <= len(calls) and not near:
                yield self._point(call, calls[call].place, point.calls)

    def _point(self, call: int, place: int, calls: int) -> _Point:
        ends = [each for _, each in self._boundaries if each > place]
        ends += [each.place for each in self._trail.calls[call + calls : call + calls + 1]]
        return _Point(call, place, calls, min(ends, default=self._trail.end))

    def cases(self, point: _Point) -> FollowingCases:
        """Return what was done after a point."""
        return FollowingCases(
            tuple(self._files(point)),
            tuple(self._failures(point)),
            tuple(self._turns(point)),
            tuple(self._actions(point)),
        )

    def _files(self, point: _Point) -> Iterator[FollowingCase]:
        calls = self._trail.calls
        known = {
            path: call.message_id
            for call in calls[: point.call]
            for path in (*call.read, *call.changed)
        }
        seen: set[str] = set()
        for call in calls[point.call : point.call + point.calls]:
            for path in call.read:
                if path not in seen:
                    yield FollowingCase(path, call.message_id, known.get(path, ""))
                seen.add(path)
            seen.update(call.changed)

    def _failures(self, point: _Point) -> Iterator[FollowingCase]:
        calls = self._trail.calls
        before: dict[tuple[str, str], str] = {}
        now: dict[tuple[str, str], str] = {}
        for index, result_id in self._trail.failures.items():
            key = (calls[index].name, calls[index].arguments)
            if index < point.call:
                before[key] = result_id
            elif index < point.call + point.calls:
                now.setdefault(key, calls[index].message_id)
        for (name, arguments), message_id in now.items():
            former = before.get((name, arguments), "")
            yield FollowingCase(f"{name} {arguments}", message_id, former)

    def _turns(self, point: _Point) -> Iterator[FollowingCase]:
        now = [each for each in self._trail.turns if point.place <= each.place < point.end]
        if not now:
            return
        before = self._trail.turns_before(point.place)
        seen = self._seen([each.turn.text for each in before])
        for each in now:
            former = self._repeated(each.turn, [own.turn for own in before], seen)
            if former is not None:
                former_id = before[former].message_id if former >= 0 else ""
                yield FollowingCase(each.turn.text, each.message_id, former_id)

    def _repeated(self, turn: Turn, before: Sequence[Turn], seen: SeenText) -> int | None:
        """Return the number of the turn that a turn repeats; -1: none, None: unknown.

        It has the words of a turn, and at least a clause of that turn stands in it: one on the same
        subject has words of many clauses.
        """
        is_there = seen.has(turn)
        if is_there:
            return next(index for index, each in enumerate(before) if turn.plain in each.plain)
        passage = None if is_there is None else seen.passage(turn)
        if passage is None:
            return None
        if passage.share < THRESHOLD:
            return -1
        own = self._seen([turn.text])
        former = before[passage.text]
        clauses = [Turn(each) for each in clauses_of(former.text)] or [former]
        stands = any((own.overlap(each) or 0) >= THRESHOLD for each in clauses)
        return passage.text if stands else -1

    def _seen(self, texts: Sequence[str]) -> SeenText:
        turns = [each.turn for each in self._trail.turns]
        return SeenText(texts, turns=turns, work=self._work)

    def _actions(self, point: _Point) -> Iterator[FollowingCase]:
        turns = self._trail.turns
        gone_on = len(self._trail.turns_before(point.place)) - 1
        for index in range(point.call, point.call + point.calls):
            call = self._trail.calls[index]
            if not call.acts:
                continue
            named = self._first.get(index)
            if named is not None and named.turn < gone_on:
                yield FollowingCase(named.name, call.message_id, turns[named.turn].message_id)
            else:
                yield FollowingCase(f"{call.name} {call.arguments}", call.message_id)
