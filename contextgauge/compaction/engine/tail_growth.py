"""How far back the tail of messages reaches: the room up to the goal is spent on it.

The earlier the cut, the more messages stay as they are, and the shorter is the text that carries
the others. The earliest cut is taken with which both fit.
"""

from collections.abc import Sequence
from itertools import accumulate, islice, takewhile
from typing import Final, NamedTuple

from contextgauge.compaction.carried.compaction_text import (
    FIXED_CHARACTERS,
    files_size,
    files_within,
)
from contextgauge.compaction.carried.digest import PlacedEntry, said_again
from contextgauge.compaction.carried.digest_groups import groups_of, size_of
from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN, Counter
from contextgauge.compaction.engine.ladder import Climb
from contextgauge.compaction.engine.selection import Division, whole_cuts
from contextgauge.compaction.messages import Carried, FileUse

_TEXT_SHARE: Final = 0.9
"""Of the goal for the compaction's text: what is more of a flood is left out of it."""

_SAMPLES: Final = 200
_SAMPLE_CHARACTERS: Final = 50_000
"""Of the digest, to learn how many tokens a character has in this conversation."""


def most_of(replaced_tokens: int) -> int:
    """Return the most that a text may take of what it replaces, tokens."""
    return replaced_tokens * 9 // 10


class TextSize(NamedTuple):
    """What the compaction's text takes, tokens: `before[cut]` of the digest up to a cut."""

    before: Sequence[int]
    fixed: int

    def at(self, cut: int, most_tokens: int) -> int:
        """Return the size of the text with this cut."""
        return self.fixed + min(self.before[cut], max(0, most_tokens - self.fixed))


class TextTokens(NamedTuple):
    """What a model may write, what the user's turns may have to be whole, and the files' list."""

    prose: int
    turns: int
    files: int


def text_size(
    carried: Carried,
    entries: Sequence[PlacedEntry],
    files: Sequence[FileUse],
    length: int,
    tokens: TextTokens,
    counter: Counter,
) -> TextSize:
    """Return the size of the text for each cut of `length` messages.

    `entries` are those of the messages so far, `carried` is from before them.
    """
    digest = [*carried.entries, *(each.entry for each in entries)]
    places = [*(0 for _ in carried.entries), *(each.position + 1 for each in entries)]
    sizes = [0] * (length + 1)
    newest: dict[object, int] = {}
    text = "\n".join(islice((entry.text for entry in digest), _SAMPLES))[:_SAMPLE_CHARACTERS]
    counted, of = (counter.text(text), len(text)) if text else (1, CHARACTERS_PER_TOKEN)
    turns = tokens.turns * of // counted
    for place, entry in sorted(groups_of(digest, turns).standard.items()):
        size = size_of(entry)
        sizes[min(places[place], length)] += size
        if (key := said_again(digest[place])) is not None:
            sizes[min(places[place], length)] -= newest.get(key, 0)
            newest[key] = size
    before = [each * counted // of for each in accumulate(sizes)]
    listed = files_size(files_within(files, tokens.files * of // counted)) * counted // of
    return TextSize(before, FIXED_CHARACTERS // CHARACTERS_PER_TOKEN + tokens.prose + listed)


def earliest_cut(
    at: Climb,
    division: Division,
    size: TextSize,
    counter: Counter,
    budget_tokens: int,
    after: int,
) -> int:
    """Return the earliest cut behind `after` with which tail and text fit; else the division's.

    What leaves pays for the text: a cut with which little leaves would leave it no room.
    """
    messages = at.messages
    cut = best = len(messages) - len(division.tail)
    head = {id(each) for each in division.head}
    most = int(budget_tokens * _TEXT_SHARE)
    tokens = sum(map(counter.message, (*division.head, *division.tail)))
    last = cut
    for earlier in takewhile(after.__lt__, whole_cuts(messages, cut)):
        tokens += sum(
            counter.message(each) for each in messages[earlier:last] if id(each) not in head
        )
        last = earlier
        if tokens > budget_tokens:
            break
        text = size.at(earlier, most)
        if tokens + text <= budget_tokens and text <= most_of(at.tokens - tokens):
            best = earlier
    return best
