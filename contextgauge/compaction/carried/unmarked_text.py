"""The text of a compaction that was read back without its marker, as formats of providers have it.

It is a message of the user's then. What its marks name as the user's turns are what the user could
write again, so pasting such a text gains nothing; number, summary and order go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from contextgauge.compaction.carried.compaction_text import (
    read_text,
    surrounded,
    without_restored,
)
from contextgauge.compaction.messages import Block, Carried, Message, Text


@dataclass(frozen=True, slots=True)
class UnmarkedText:
    """What a former compaction's text says: its number, its summary, and what it carries.

    `others` is what else its message has, such as a turn that a loop joined to it.
    """

    number: int
    prose: str
    carried: Carried
    others: Message


def read_unmarked(message: Message) -> UnmarkedText | None:
    """Return the parts of a compaction's text; None of a message that has none."""
    if message.role != "user" or message.results:
        return None
    for place, block in enumerate(message.blocks):
        parts = surrounded(block.text) if isinstance(block, Text) else None
        read = None if parts is None else read_text(parts.text.removesuffix("\n"), message.id)
        if parts is None or read is None:
            continue
        behind = (Text(parts.behind), *message.blocks[place + 1 :])
        others = [*message.blocks[:place], Text(parts.before)]
        others += [_without_restored(each, parts.nonce) for each in behind]
        others = [each for each in others if not isinstance(each, Text) or each.text.strip()]
        # Of an id in the text another history may have made another message.
        entries = [replace(each, message_id="") if each.omitted else each for each in read.entries]
        carried = Carried(tuple(entries), read.files)
        return UnmarkedText(read.number, read.prose, carried, message.with_blocks(others))
    return None


def _without_restored(block: Block, nonce: str) -> Block:
    return Text(without_restored(block.text, nonce)) if isinstance(block, Text) else block


def former_text(messages: Sequence[Message]) -> tuple[int, UnmarkedText] | None:
    """Return the first compaction's text with its position, if no turn and answer are before it."""
    is_answered = False
    for position, each in enumerate(messages):
        former = read_unmarked(each)
        if former is not None:
            return position, former
        is_answered |= each.role == "assistant"
        if is_answered and each.is_user_turn:
            break
    return None
