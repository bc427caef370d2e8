"""What of a digest fits a room, in characters: size decides, in no language.

Each passage has a standard size: a user's turn is whole, unless all turns together take more than
their part of the goal; then the longest keep beginning and end. With room left first the user's
turns grow, then the agent's texts. Where it is short the longest are cut, evenly, and where even
the least of each is too much, the first and the newest stay.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.engine.cutting import even_limit
from contextgauge.compaction.messages import DigestEntry

TURN_CHARACTERS: Final = 900
"""Of a user's turn, whatever the room: a long one is mostly pasted."""

TURNS_SHARE: Final = 2
"""In half of a goal all of the user's turns may be whole, however long."""

HEAD_CHARACTERS: Final = 400
"""Of the beginning of an agent's text: its point."""

ANSWERED_CHARACTERS: Final = 400
"""Of the end of one that a short turn of the user answers: its question, and what it offers."""

FAILURE_CHARACTERS: Final = 200
"""Of what a failed call says: what failed, and why."""

TODOS_CHARACTERS: Final = 2_000
"""Of a list of todos, about twenty lines."""

SHORT_TURN_CHARACTERS: Final = 100
"""A user's turn that may be an answer: a longer one says itself what it is about."""

_LEAST_TURN: Final = 240
"""A turn of which less stays says nothing: rather the middle turns of a flood go."""

_LEAST_PASSAGE: Final = 160

USER_SHARE: Final = 0.7
"""Of the room for the user's turns, where they and the others do not fit together."""

_LINKED_SHARE: Final = 2 / 3
"""Of the room for others, where what is linked does not fit together with the rest."""

_MARK_CHARACTERS: Final = 11
"""Around the label of an entry: its mark with the nonce, a space and the end of the line."""

_NOTE_CHARACTERS: Final = 14
"""Around the count of what is left out of a message, and its id."""

_FIRST_SHARE: Final = 8
"""Of a flood an eighth of the room is for the first: what is asked for, before what came of it."""

_LONGEST_COUNT: Final = 8


def shortened(entry: DigestEntry, beginning: int, end: int) -> DigestEntry:
    """Return an entry with at most so many characters of its beginning and of its end."""
    text = entry.text
    if entry.omitted:
        last = entry.end[max(0, len(entry.end) - end) :]
        omitted = entry.omitted + len(entry.end) - len(last)
        return replace(
            entry,
            text=text[:beginning],
            end=last,
            omitted=omitted + max(0, len(text) - beginning),
        )
    if len(text) <= beginning + end + _NOTE_CHARACTERS:  # a note of less would save nothing
        return entry
    last = text[len(text) - end :]
    return replace(entry, text=text[:beginning], end=last, omitted=len(text) - beginning - end)


def size_of(entry: DigestEntry) -> int:
    """Return the characters that an entry takes in a compaction's text: at most so many."""
    label = str(entry.number) if entry.speaker == "user" else entry.speaker
    size = _MARK_CHARACTERS + len(label) + len(entry.text) + len(entry.end)
    if not entry.omitted:
        return size
    return size + _NOTE_CHARACTERS + len(str(entry.omitted)) + len(entry.message_id)


def standard(entries: Sequence[DigestEntry], turns: int) -> list[DigestEntry]:
    """Return entries in their standard sizes; data only has what room is left.

    Of the user's turns the longest are cut where all of them have more than `turns` characters.
    """
    groups = _Groups.of(entries, turns)
    shown = groups.user | groups.linked | groups.other
    return [shown[place] for place in sorted(shown)]


def within(entries: Sequence[DigestEntry], room: int, turns: int = 0) -> list[DigestEntry]:
    """Return what fits so many characters, in order; `turns` is as for `standard`."""
    if sum(map(size_of, entries)) <= room:
        return list(entries)
    groups = _Groups.of(entries, max(room // TURNS_SHARE, turns))
    linked, other = _size(groups.linked), _size(groups.other)
    user = _without_repeated(groups.user) if _size(groups.user) > room else groups.user
    shown = _fitted(user, _share(room, _size(user), linked + other, USER_SHARE), _LEAST_TURN)
    left = room - _size(shown)
    share = _share(left, linked, other, _LINKED_SHARE)
    shown |= _fitted(groups.linked, share, _LEAST_PASSAGE, linked=True)
    shown |= _fitted(groups.other, room - _size(shown), _LEAST_PASSAGE)
    for speaker in ("user", "agent"):
        whole = {place: entries[place] for place in shown if entries[place].speaker == speaker}
        shown |= _grown(shown, whole, groups.linked, room - _size(shown))
    shown |= _fitted(groups.data, room - _size(shown), _LEAST_PASSAGE)
    return [shown[place] for place in sorted(shown)]


class _Groups(NamedTuple):
    """Entries in their standard sizes, by what of them goes first, each by its place.

    `linked` are texts of the agent that a short turn answers or that follow a failure, failures,
    and the list of todos.
    """

    user: dict[int, DigestEntry]
    linked: dict[int, DigestEntry]
    other: dict[int, DigestEntry]
    data: dict[int, DigestEntry]

    @classmethod
    def of(cls, entries: Sequence[DigestEntry], turns: int) -> "_Groups":
        groups = cls({}, {}, {}, {})
        sizes = [size_of(each) for each in entries if each.speaker == "user"]
        longest = max(TURN_CHARACTERS, even_limit(sizes, turns))
        for place, entry in enumerate(entries):
            if entry.speaker == "user":
                groups.user[place] = _cut(entry, longest)
            elif entry.speaker == "data":
                groups.data[place] = entry
            elif entry.speaker == "tool":
                groups.linked[place] = shortened(entry, FAILURE_CHARACTERS // 2, FAILURE_CHARACTERS)
            elif entry.speaker == "todos":
                groups.linked[place] = _cut(entry, TODOS_CHARACTERS)
            elif entry.end or _is_answered(entries, place):
                groups.linked[place] = shortened(entry, HEAD_CHARACTERS, ANSWERED_CHARACTERS)
            elif place and entries[place - 1].speaker == "tool":
                groups.linked[place] = shortened(entry, HEAD_CHARACTERS, 0)
            else:
                groups.other[place] = shortened(entry, HEAD_CHARACTERS, 0)
        return groups


def _is_answered(entries: Sequence[DigestEntry], place: int) -> bool:
    following = entries[place + 1] if place + 1 < len(entries) else None
    return (
        following is not None
        and following.speaker == "user"
        and len(following.text) <= SHORT_TURN_CHARACTERS
    )


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
    entries: Mapping[int, DigestEntry], room: int, least: int, *, linked: bool = False
) -> dict[int, DigestEntry]:
    """Return entries cut evenly to a room; where that is too little, the first and the newest."""
    sizes = {place: size_of(each) for place, each in entries.items()}
    if sum(sizes.values()) <= room:
        return dict(entries)
    limit = max(least, even_limit(list(sizes.values()), max(0, room)))
    shorter = {place: _cut(each, limit, linked=linked) for place, each in entries.items()}
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


def _cut(entry: DigestEntry, limit: int, *, linked: bool = False) -> DigestEntry:
    """Return an entry that takes at most about so many characters: its beginning and its end.

    Of a failure and of an announcement the beginning says it.
    """
    if size_of(entry) <= limit:
        return entry
    around = _MARK_CHARACTERS + _NOTE_CHARACTERS + 2 * _LONGEST_COUNT + len(entry.message_id)
    room = max(0, limit - around)
    end = 0
    if entry.speaker in ("user", "todos"):
        end = room // 3
    elif entry.speaker == "tool":
        end = room * 2 // 3
    elif entry.speaker == "agent" and linked:
        end = room * 3 // 4
    if entry.omitted:
        end = min(end, len(entry.end))
    return shortened(entry, room - end, end)


def _grown(
    shown: Mapping[int, DigestEntry],
    whole: Mapping[int, DigestEntry],
    linked: Container[int],
    room: int,
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
    grown = {place: _cut(whole[place], limit, linked=place in linked) for place in growing}
    return {place: each for place, each in grown.items() if size_of(each) > sizes[place]}
