"""What of a digest goes before what, and the standard size of each passage, in characters.

By the order of speakers alone: the text of the agent that the user's turn follows is a reply, what
it writes before further calls a step on the way to it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from contextgauge.compaction.engine.cutting import even_limit
from contextgauge.compaction.messages import DigestEntry

TURN_CHARACTERS: Final = 900
"""Of a user's turn, whatever the room: a long one is mostly pasted."""

PASTED_CHARACTERS: Final = 300
"""Of what a turn has in a fence, where not all turns are whole: it is pasted, and goes first."""

REPLY_CHARACTERS: Final = 800
"""Of an agent's reply: what was done, what is left to do, and what it asks or offers."""

STEP_CHARACTERS: Final = 400
"""Of what it writes before further calls: what it is about to do."""

FAILURE_CHARACTERS: Final = 360
"""Of what a failed call says: what failed, and why."""

TODOS_CHARACTERS: Final = 2_000
"""Of a list of todos, about twenty lines."""

SHORT_TURN_CHARACTERS: Final = 100
"""A user's turn that may be an answer: a longer one says itself what it is about."""

ANSWERED_END_SHARE: Final = 3 / 4
FAILURE_END_SHARE: Final = 2 / 3
END_SHARE: Final = 1 / 3
"""Of a passage that is cut, for its end: where the question is, the reason of a failure is, and
that of others."""

_MARK_CHARACTERS: Final = 11
"""Around the label of an entry: its mark with the nonce, a space and the end of the line."""

_NOTE_CHARACTERS: Final = 14
"""Around the count of what is left out of a message, and its id."""

_LONGEST_COUNT: Final = 8
"""Digits of a number of characters in the note of what is left out."""

_LEAST_LINE: Final = 60
"""A line of which less stays says nothing: rather the longest go."""

_FENCED: Final = re.compile(r"(?ms)^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1|\Z)")


def size_of(entry: DigestEntry) -> int:
    """Return the characters that an entry takes in a compaction's text: at most so many."""
    label = str(entry.number) if entry.speaker == "user" else entry.speaker
    size = _MARK_CHARACTERS + len(label) + len(entry.text) + len(entry.end)
    if not entry.omitted:
        return size
    return size + _NOTE_CHARACTERS + len(str(entry.omitted)) + len(entry.message_id)


def cut(entry: DigestEntry, limit: int, end_share: float) -> DigestEntry:
    """Return an entry that takes at most about so many characters: its beginning and its end.

    Of a turn with a fence the middle of that is left out, if it is enough. Of an agent's text the
    longest lines are cut, or left out: one that says a single thing is short, wherever it stands.
    """
    if (excess := size_of(entry) - limit) <= 0:
        return entry
    around = _MARK_CHARACTERS + _NOTE_CHARACTERS + 2 * _LONGEST_COUNT + len(entry.message_id)
    room = max(0, limit - around)
    text = entry.text
    if entry.speaker == "agent" and not entry.end and "\n" in text:
        shown = "\n".join(_shorter_lines(text, room))
        if shown:
            return replace(
                entry, text=shown, omitted=entry.omitted + max(1, len(text) - len(shown))
            )
    size = int(room * end_share)
    if entry.omitted:
        end = entry.end[max(0, len(entry.end) - size) :]
        omitted = entry.omitted + len(entry.end) - len(end)
    else:
        first, last = _longest_fence(entry)
        if (left := last - first - excess - around) >= PASTED_CHARACTERS // 2:
            size = len(text) - last + left // 2
            room = len(text) - (last - first) + left
        end, omitted = text[len(text) - size :], -size
    beginning = text[: room - len(end)]
    return replace(entry, text=beginning, end=end, omitted=omitted + len(text) - len(beginning))


def _shorter_lines(text: str, room: int) -> Iterator[str]:
    """Yield the lines of a text, of which the longest are cut, or "…" where some are left out."""
    lines = [each for each in text.split("\n") if each]
    shown: set[int] = set()
    left = room
    for at in sorted(range(len(lines)), key=lambda at: (len(lines[at]), -at)):
        left -= min(len(lines[at]), _LEAST_LINE) + 1
        if left < 0:
            break
        shown.add(at)
    longest = even_limit([len(lines[at]) for at in shown], room - len(shown))
    for at, line in enumerate(lines):
        if at in shown:
            yield line if len(line) <= longest else f"{line[: longest - 1]}…"
        elif shown and (at == 0 or at - 1 in shown):
            yield "…"


def _longest_fence(entry: DigestEntry) -> tuple[int, int]:
    """Return where the longest of what is fenced in a turn begins and ends."""
    if entry.speaker != "user":
        return 0, 0
    spans = (each.span() for each in _FENCED.finditer(entry.text))
    return max(spans, key=lambda span: span[1] - span[0], default=(0, 0))


@dataclass(frozen=True, slots=True)
class Groups:
    """Entries in their standard sizes, each by its place; what of them goes last comes first.

    `linked` are replies that a short turn answers or that follow a failure, the last failure before
    each, and the list of todos; `replies` are the others. `steps` are what the agent writes, and
    what fails, on the way to them. `ends` is which share of a passage its end has.
    """

    user: dict[int, DigestEntry] = field(default_factory=dict)
    linked: dict[int, DigestEntry] = field(default_factory=dict)
    replies: dict[int, DigestEntry] = field(default_factory=dict)
    steps: dict[int, DigestEntry] = field(default_factory=dict)
    data: dict[int, DigestEntry] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)

    @property
    def standard(self) -> dict[int, DigestEntry]:
        """What has a room of its own; steps and data only have what is left of it."""
        return self.user | self.linked | self.replies


def groups_of(entries: Sequence[DigestEntry], turns: int) -> Groups:
    """Divide entries; the longest turns are cut where all have more than `turns` characters."""
    groups = Groups()
    limits = _turn_limits(entries, turns)
    following: DigestEntry | None = None
    steps = groups.replies  # of the turn that is not answered yet: there is nothing else of it
    reply: int | None = len(entries)  # that no failure leads to yet; the next one is still to come
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if entry.speaker == "data":
            groups.data[place] = entry
            groups.ends[place] = 0
            continue
        if entry.speaker == "todos":
            groups.linked[place] = cut(entry, TODOS_CHARACTERS, END_SHARE)
            groups.ends[place] = END_SHARE
            continue
        if entry.speaker == "user":
            groups.user[place] = cut(entry, limits[place], END_SHARE)
            groups.ends[place] = END_SHARE
            reply, steps = None, groups.steps
        elif entry.speaker == "tool":
            group = steps if reply is None else groups.linked
            group[place] = cut(entry, FAILURE_CHARACTERS, FAILURE_END_SHARE)
            groups.ends[place] = FAILURE_END_SHARE
            if reply in groups.replies:
                groups.linked[reply] = groups.replies.pop(reply)
            reply = None
        elif following is not None and following.speaker != "user":
            steps[place] = cut(entry, STEP_CHARACTERS, 0)
            groups.ends[place] = 0
        else:
            is_answered = following is None or len(following.text) <= SHORT_TURN_CHARACTERS
            groups.ends[place] = ANSWERED_END_SHARE if is_answered else END_SHARE
            group = groups.linked if is_answered else groups.replies
            group[place] = cut(entry, REPLY_CHARACTERS, groups.ends[place])
            reply = place
        following = entry
    return groups


def _turn_limits(entries: Sequence[DigestEntry], turns: int) -> Mapping[int, int]:
    """Return the standard size of each turn by its place: first what is pasted gives way."""
    sizes = {index: size_of(each) for index, each in enumerate(entries) if each.speaker == "user"}
    if (excess := sum(sizes.values()) - turns) > 0:
        spans = {
            index: _longest_fence(entries[index]) for index in sizes if not entries[index].omitted
        }
        pasted = {index: last - first for index, (first, last) in spans.items()}
        longest = even_limit(list(pasted.values()), sum(pasted.values()) - excess)
        for index, length in pasted.items():
            sizes[index] -= max(0, length - max(PASTED_CHARACTERS, longest))
    longest = max(TURN_CHARACTERS, even_limit(list(sizes.values()), turns))
    return {index: min(size, longest) for index, size in sizes.items()}
