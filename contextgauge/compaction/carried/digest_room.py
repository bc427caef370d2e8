"""What of a digest fits a room, in characters: size decides, in no language.

Each passage has a standard size (`digest_groups`): a user's turn is whole, unless all turns
together take more than their part of the goal; then the longest keep beginning and end. With room
left first the user's turns grow, then the agent's replies, and then its steps are shown. Where it
is short the longest are cut, evenly, and where even the least of each is too much, the first and
the newest stay.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from contextgauge.compaction.carried.digest_groups import cut, groups_of, size_of
from contextgauge.compaction.engine.cutting import even_limit
from contextgauge.compaction.messages import DigestEntry

TURNS_SHARE: Final = 2
"""In half of a goal all of the user's turns may be whole, however long."""

_LEAST_TURN: Final = 240
"""A turn of which less stays says nothing: rather the middle turns of a flood go."""

_LEAST_PASSAGE: Final = 120
"""Characters: a shorter passage of a text says nothing on its own."""

USER_SHARE: Final = 0.8
"""Of the room for the user's turns, where they and the others do not fit together."""

_LINKED_SHARE: Final = 2 / 3
"""Of the room for others, where what is linked does not fit together with the rest."""

_FIRST_SHARE: Final = 8
"""Of a flood an eighth of the room is for the first: what is asked for, before what came of it."""


def within(entries: Sequence[DigestEntry], room: int, turns: int = 0) -> list[DigestEntry]:
    """Return what fits so many characters, in order; `turns` is as for `groups_of`."""
    if sum(map(size_of, entries)) <= room:
        return list(entries)
    groups = groups_of(entries, max(room // TURNS_SHARE, turns))
    ends, linked, replies = groups.ends, _size(groups.linked), _size(groups.replies)
    user = _without_repeated(groups.user) if _size(groups.user) > room else groups.user
    share = _share(room, _size(user), linked + replies, USER_SHARE)
    shown = _fitted(user, share, _LEAST_TURN, ends)
    share = _share(room - _size(shown), linked, replies, _LINKED_SHARE)
    shown |= _fitted(groups.linked, share, _LEAST_PASSAGE, ends)
    shown |= _fitted(groups.replies, room - _size(shown), _LEAST_PASSAGE, ends)
    for speaker in ("user", "agent"):
        whole = {place: entries[place] for place in shown if entries[place].speaker == speaker}
        shown |= _grown(shown, whole, room - _size(shown), ends)
    for group in (groups.steps, groups.data):
        shown |= _fitted(group, room - _size(shown), _LEAST_PASSAGE, ends)
    return [shown[place] for place in sorted(shown)]


def _without_repeated(turns: Mapping[int, DigestEntry]) -> dict[int, DigestEntry]:
    """Return the user's turns without older ones that a newer one repeats to the letter."""
    newest = {(each.text, each.end): place for place, each in turns.items()}
    places = set(newest.values())
    return {place: each for place, each in turns.items() if place in places}


def _share(room: int, size: int, others: int, share: float) -> int:
    """Return the room of something: what others leave, and its share if it needs that."""
    return min(size, max(room - others, int(room * share)))


def _size(entries: Mapping[int, DigestEntry]) -> int:
    return sum(map(size_of, entries.values()))


def _fitted(
    entries: Mapping[int, DigestEntry], room: int, least: int, ends: Mapping[int, float]
) -> dict[int, DigestEntry]:
    """Return entries cut evenly to a room; where that is too little, the first and the newest."""
    entries = dict(sorted(entries.items()))
    sizes = {place: size_of(each) for place, each in entries.items()}
    if sum(sizes.values()) <= room:
        return dict(entries)
    limit = max(least, even_limit(list(sizes.values()), max(0, room)))
    shorter = {place: cut(each, limit, ends[place]) for place, each in entries.items()}
    if limit > least:
        return shorter
    places = set(_taken(shorter, shorter, room // _FIRST_SHARE))
    left = room - _size({place: shorter[place] for place in places})
    rest = [place for place in reversed(shorter) if place not in places]
    places |= set(_taken(shorter, rest, left))
    return {place: each for place, each in shorter.items() if place in places}


def _taken(entries: Mapping[int, DigestEntry], order: Iterable[int], room: int) -> Iterable[int]:
    """Yield places in their order for as long as there is room."""
    for place in order:
        room -= size_of(entries[place])
        if room < 0:
            break
        yield place


def _grown(
    shown: Mapping[int, DigestEntry],
    whole: Mapping[int, DigestEntry],
    room: int,
    ends: Mapping[int, float],
) -> dict[int, DigestEntry]:
    """Return those of the entries, now whole, that the room lets be longer than shown: evenly."""
    sizes = {place: size_of(shown[place]) for place in whole}
    wholes = {place: size_of(each) for place, each in whole.items()}
    growing = [place for place in whole if sizes[place] < wholes[place]]
    limit = 0
    while growing:
        space = room + sum(sizes[place] for place in growing)
        limit = even_limit([wholes[place] for place in growing], space)
        smaller = [place for place in growing if sizes[place] < limit]
        if len(smaller) == len(growing):
            break
        growing = smaller  # the others have more already
    grown = {place: cut(whole[place], limit, ends[place]) for place in growing}
    return {place: each for place, each in grown.items() if size_of(each) > sizes[place]}
