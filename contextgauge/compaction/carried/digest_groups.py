"""What of a digest goes before what, and the standard size of each passage, in characters.

By the order of speakers alone: the text of the agent that the user's turn follows is a reply, what
it writes before further calls a step on the way to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from contextgauge.compaction.engine.cutting import even_limit
from contextgauge.compaction.messages import DigestEntry

TURN_CHARACTERS: Final = 900
"""Of a user's turn, whatever the room: a long one is mostly pasted."""

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

_LEAST_LINE: Final = 60
"""A line of which less stays says nothing."""


def size_of(entry: DigestEntry) -> int:
    """Return the characters that an entry takes in a compaction's text: at most so many."""
    label = str(entry.number) if entry.speaker == "user" else entry.speaker
    size = _MARK_CHARACTERS + len(label) + len(entry.text) + len(entry.end)
    if not entry.omitted:
        return size
    return size + _NOTE_CHARACTERS + len(str(entry.omitted)) + len(entry.message_id)


def cut(entry: DigestEntry, limit: int, end_share: float) -> DigestEntry:
    """Return an entry that takes at most about so many characters: its beginning and its end.

    Of an agent's text the longest lines are cut: one that says a single thing is short, wherever
    it stands.
    """
    if size_of(entry) <= limit:
        return entry
    around = _MARK_CHARACTERS + _NOTE_CHARACTERS + 2 * _LONGEST_COUNT + len(entry.message_id)
    room = max(0, limit - around)
    text = entry.text
    lines = [each for each in text.split("\n") if each] if entry.speaker == "agent" else []
    longest = even_limit([len(each) for each in lines], room - len(lines))
    if len(lines) > 1 and longest >= _LEAST_LINE and not entry.end:
        shown = "\n".join(_beginning(each, longest) for each in lines)
        return replace(entry, text=shown, omitted=entry.omitted + max(1, len(text) - len(shown)))
    size = int(room * end_share)
    if entry.omitted:
        end = entry.end[max(0, len(entry.end) - size) :]
        omitted = entry.omitted + len(entry.end) - len(end)
    else:
        end, omitted = text[len(text) - size :], -size
    beginning = text[: room - len(end)]
    return replace(entry, text=beginning, end=end, omitted=omitted + len(text) - len(beginning))


def _beginning(line: str, length: int) -> str:
    return line if len(line) <= length else f"{line[: length - 1]}…"


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
    sizes = [size_of(each) for each in entries if each.speaker == "user"]
    longest = max(TURN_CHARACTERS, even_limit(sizes, turns))
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
            groups.user[place] = cut(entry, longest, END_SHARE)
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
