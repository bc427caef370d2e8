"""cline, basic compaction: no model; the user's prompts stay, work becomes lists.

Facts from `sdk/packages/core/src/extensions/context/basic-compaction.ts` and `compaction-shared.ts`
of cline/cline (Apache-2.0) at 21cb8d2525bc (@cline/core 0.0.78):

- Every prompt of the user stays, whatever the target. What an earlier compaction kept stays too.
- Of the latest turn the newest messages stay that fit the target, from an assistant's message on.
- Of older turns the concluding answer stays where it fits, the newest turns first.
- What was dropped after a prompt is listed in a notice in that prompt: files read, files edited,
  commands (100 characters), and the conversation's last three answers. Prompts between which
  nothing is left become one message.
- Above 0.9 of the window the result is shortened further; that is never reached here, and left out.

The budget is the target (`targetTokens`).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from bench.compaction.calls import argument
from bench.compaction.contenders import Budget, tokens_of
from bench.compaction.summaries import StandIn
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Block, Message, Text

ANSWERS = 3
COMMAND_CHARACTERS = 100


class Cline:
    """The rule, with the ids of what earlier compactions kept."""

    def __init__(self) -> None:
        self._frozen: set[str] = set()

    def __call__(
        self, messages: Sequence[Message], budget: Budget, write: StandIn
    ) -> Sequence[Message]:
        """Return the prompts with their notices, and the messages that fit."""
        del write  # no summary is written
        typed = [at for at, each in enumerate(messages) if each.is_user_turn]
        if not typed or len(messages) == 1:
            return messages
        frozen = {at for at, each in enumerate(messages) if each.id in self._frozen}
        keep = {*typed, *frozen}
        total = tokens_of([messages[at] for at in keep])
        tail = _tail(messages, typed[-1], frozen, budget.tokens - total)
        keep |= tail
        total += tokens_of([messages[at] for at in tail])
        keep |= _conclusions(messages, typed, frozen, budget.tokens - total)
        folded = _fold(messages, sorted(keep))
        self._frozen |= {each.id for each in folded if not each.is_user_turn}
        return folded


def _tail(messages: Sequence[Message], latest: int, frozen: set[int], room: int) -> set[int]:
    start = len(messages)
    for at in range(len(messages) - 1, latest, -1):
        room -= ESTIMATE.message(messages[at])
        if at in frozen or room < 0:
            break
        start = at
    while start < len(messages) and messages[start].role != "assistant":
        start += 1
    return set(range(start, len(messages)))


def _conclusions(
    messages: Sequence[Message], typed: Sequence[int], frozen: set[int], room: int
) -> set[int]:
    """Return the last answers of older turns that fit."""
    answers: set[int] = set()
    for begin, end in reversed(list(pairwise(typed))):
        for at in range(end - 1, begin, -1):
            if at in frozen:
                break
            message = messages[at]
            if message.role == "assistant" and not message.calls and message.text.strip():
                if ESTIMATE.message(message) <= room:
                    answers.add(at)
                    room -= ESTIMATE.message(message)
                break
    return answers


class _Entry(NamedTuple):
    """A message that stays: its blocks, and where it and what was merged into it stood."""

    message: Message
    blocks: list[Block]
    last: int


def _fold(messages: Sequence[Message], keep: Sequence[int]) -> list[Message]:
    """Merge prompts that became neighbours, and list what was dropped between."""
    latest = [at for at, each in enumerate(messages) if each.role == "assistant" and each.text]
    answers = set(latest[-ANSWERS:])
    entries: list[_Entry] = []
    for at in keep:
        message, blocks = messages[at], list(messages[at].blocks)
        before = entries[-1] if entries else None
        if before is not None and before.message.is_user_turn:
            before.blocks.extend(_notice(messages, before.last + 1, at, answers))
            if message.is_user_turn:
                entries[-1] = _Entry(before.message, [*before.blocks, *blocks], at)
                continue
        entries.append(_Entry(message, blocks, at))
    if entries[-1].message.is_user_turn:
        entries[-1].blocks.extend(_notice(messages, entries[-1].last + 1, len(messages), answers))
    return [replace(each.message, blocks=tuple(each.blocks)) for each in entries]


def _notice(messages: Sequence[Message], start: int, end: int, answers: set[int]) -> list[Block]:
    """Return a block that lists the work of dropped messages, none where there was none."""
    read: dict[str, None] = {}
    edited: dict[str, None] = {}
    commands: dict[str, None] = {}
    for message in messages[start:end]:
        for call in message.calls:
            if call.name == "bash":
                command = argument(call, "command")
                cut = len(command) > COMMAND_CHARACTERS
                commands[command[:COMMAND_CHARACTERS] + ("..." if cut else "")] = None
            else:
                (read if call.name == "read" else edited)[argument(call, "path")] = None
    responses = [messages[at].text for at in range(start, end) if at in answers]
    if not (read or edited or commands or responses):
        return []
    parts = [
        f"{title}:\n" + "\n".join(lines)
        for title, lines in (
            ("Files read", read),
            ("Files edited", edited),
            ("Commands ran", commands),
        )
    ]
    if responses:
        parts.append("Your recent responses:\n" + "\n---\n".join(responses))
    text = "\n\n".join(parts)
    return [Text(f"<SYSTEM_NOTICE>\nEarlier context was compacted.\n{text}</SYSTEM_NOTICE>")]
