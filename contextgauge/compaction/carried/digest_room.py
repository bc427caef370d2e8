"""What of a digest fits a room, in characters: size decides, in no language.

The user's turns come first, whole. Of what others wrote each passage has its standard size; with
room left the agent's grow. Where room is short the longest are cut, evenly: they keep beginning and
end. Where even the least of each is too much, the first and the newest stay.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.engine.cutting import even_limit
from contextgauge.compaction.messages import DigestEntry

HEAD_CHARACTERS: Final = 400
"""Of an agent's text: its point. Its standard size, whatever the room."""

ANSWERED_CHARACTERS: Final = 400
"""Of the end of one that a short turn of the user answers: its question, and what it offers."""

TODOS_CHARACTERS: Final = 2_000
"""Of a list of todos, about twenty lines."""

SHORT_TURN_CHARACTERS: Final = 300
"""A user's turn that may be an answer: a longer one says itself what it is about."""

_LEAST_TURN: Final = 240
"""A turn of which less stays says nothing: rather the middle turns of a flood go."""

_LEAST_PASSAGE: Final = 120

_USER_SHARE: Final = 0.8
"""Of the room for the user's turns, where they and the others do not fit together."""

_ANSWERED_SHARE: Final = 2 / 3
"""Of the room for others, where what was answered does not fit together with the rest."""

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


def standard(entries: Sequence[DigestEntry]) -> list[DigestEntry]:
    """Return entries in their standard sizes: a user's whole."""
    groups = _Groups.of(entries)
    return [
        each
        for _, each in sorted((groups.user | groups.answered | groups.other | groups.data).items())
    ]


def within(entries: Sequence[DigestEntry], room: int) -> list[DigestEntry]:
    """Return what fits so many characters, in order."""
    if sum(map(size_of, entries)) <= room:
        return list(entries)
    groups = _Groups.of(entries)
    answered, other = _size(groups.answered), _size(groups.other)
    turns = _without_repeated(groups.user) if _size(groups.user) > room else groups.user
    user = _fitted(
        turns, _share(room, _size(turns), answered + other, _USER_SHARE), _LEAST_TURN, end=1 / 3
    )
    left = room - _size(user)
    shown = _fitted(
        groups.answered, _share(left, answered, other, _ANSWERED_SHARE), _LEAST_PASSAGE, end=2 / 3
    )
    left -= _size(shown)
    for group in (groups.other, groups.data):
        more = _fitted(group, left, _LEAST_PASSAGE, end=0)
        left -= _size(more)
        shown |= more
    shown = _grown(shown, entries, groups.answered, left) | user
    return [shown[place] for place in sorted(shown)]


class _Groups(NamedTuple):
    """Entries by what of them goes first where room is short, each by its place.

    `answered` are texts of the agent that a short turn answers, its todos and failed calls.
    """

    user: dict[int, DigestEntry]
    answered: dict[int, DigestEntry]
    other: dict[int, DigestEntry]
    data: dict[int, DigestEntry]

    @classmethod
    def of(cls, entries: Sequence[DigestEntry]) -> "_Groups":
        groups = cls({}, {}, {}, {})
        for place, entry in enumerate(entries):
            if entry.speaker == "user":
                groups.user[place] = entry
            elif entry.speaker == "data":
                groups.data[place] = entry
            elif entry.speaker == "tool":
                groups.answered[place] = entry
            elif entry.speaker == "todos":
                half = TODOS_CHARACTERS // 2
                groups.answered[place] = shortened(entry, half, half)
            elif entry.end or _is_answered(entries, place):
                groups.answered[place] = shortened(entry, HEAD_CHARACTERS, ANSWERED_CHARACTERS)
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
    entries: Mapping[int, DigestEntry], room: int, least: int, *, end: float
) -> dict[int, DigestEntry]:
    """Return entries cut evenly to a room; where that is too little, the first and the newest.

    `end` is the share of what stays of each that is its end.
    """
    sizes = {place: size_of(each) for place, each in entries.items()}
    if sum(sizes.values()) <= room:
        return dict(entries)
    limit = max(least, even_limit(list(sizes.values()), max(0, room)))
    shorter = {
        place: each if sizes[place] <= limit else _cut(each, limit, end)
        for place, each in entries.items()
    }
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


def _cut(entry: DigestEntry, limit: int, end_share: float) -> DigestEntry:
    """Return an entry that takes about so many characters; of a failure the beginning says it."""
    around = _MARK_CHARACTERS + _NOTE_CHARACTERS + 2 * _LONGEST_COUNT + len(entry.message_id)
    room = max(0, limit - around)
    end = 0 if entry.speaker == "tool" else int(room * end_share)
    if entry.omitted:
        end = min(end, len(entry.end))
    return shortened(entry, room - end, end)


def _grown(
    shown: Mapping[int, DigestEntry],
    entries: Sequence[DigestEntry],
    answered: Container[int],
    room: int,
) -> dict[int, DigestEntry]:
    """Return the entries that are shown, those of the agent as long as the room allows."""
    whole = {place: size_of(entries[place]) for place in shown}
    sizes = {place: size_of(each) for place, each in shown.items()}
    growing = [place for place in shown if sizes[place] < whole[place]]
    limit = 0
    while growing:
        space = room + sum(sizes[place] for place in growing)
        limit = even_limit([whole[place] for place in growing], space)
        smaller = [place for place in growing if sizes[place] < limit]
        if len(smaller) == len(growing):
            break
        growing = smaller  # the others have more already
    grown = dict(shown)
    for place in growing:
        entry = (
            entries[place]
            if whole[place] <= limit
            else _cut(entries[place], limit, 1 / 2 if place in answered else 0)
        )
        if size_of(entry) > sizes[place]:
            grown[place] = entry
    return grown
