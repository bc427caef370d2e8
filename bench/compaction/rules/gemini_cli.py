"""gemini-cli: the history is split by characters, at a turn of the user.

Facts from `packages/core/src/context/chatCompressionService.ts` of google-gemini/gemini-cli
(Apache-2.0) at 5411f113cafa (0.56.0-nightly):

- The last 30 % of the characters stay. The split is at the first turn of the user at or after the
  other 70 %. Where there is none, everything is compressed if the last message is the model's and
  calls nothing, else what comes before the last turn.
- Before that, tool results beyond the latest 50 000 tokens of them are shortened to 40 000
  characters: the first fifth and the end.
- The compressed part, a former snapshot in it, becomes one message of the user, which the model
  acknowledges. A second call checks the first one's summary; the stand-in would repeat it.
- A result that is larger than the history is refused.

Here the share that stays is what the budget leaves for recent messages.
"""

from collections.abc import Sequence
from dataclasses import replace

from bench.compaction.contenders import (
    Budget,
    summary_message,
    text_message,
    tokens_of,
    write_summary,
)
from bench.compaction.summaries import StandIn
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Block, Message, Text, ToolResult

RESULT_TOKENS = 50_000
LONGEST_CHARACTERS = 40_000


def gemini_cli(messages: Sequence[Message], budget: Budget, write: StandIn) -> Sequence[Message]:
    """Return the snapshot, its acknowledgement and what is kept."""
    history = _shortened(messages)
    before = tokens_of(messages)
    split = _split(history, 1 - min(0.99, budget.recent_tokens / max(1, before)))
    if split == 0:
        return messages
    prose = write_summary(messages[:split], write, budget.summary_tokens)
    compressed = [
        summary_message(prose, before="<state_snapshot>\n", after="\n</state_snapshot>"),
        text_message("assistant", "Got it. Thanks for the additional context!"),
        *history[split:],
    ]
    return compressed if tokens_of(compressed) <= before else messages


def _split(history: Sequence[Message], share: float) -> int:
    sizes = [len(_json_like(each)) for each in history]
    target = sum(sizes) * share
    last = passed = 0
    for at, message in enumerate(history):
        if message.role == "user":
            if passed >= target:
                return at
            last = at
        passed += sizes[at]
    if history and history[-1].role == "assistant" and not history[-1].calls:
        return len(history)
    return last


def _json_like(message: Message) -> str:
    parts = [message.text, *(each.arguments for each in message.calls)]
    parts += [each.text for each in message.results]
    return "".join(parts)


def _shortened(messages: Sequence[Message]) -> list[Message]:
    """Shorten large tool results that are not among the latest."""
    seen = 0
    shortened: list[Message] = []
    for message in reversed(messages):
        blocks: list[Block] = []
        for block in reversed(message.blocks):
            kept = block
            if isinstance(block, ToolResult):
                if seen + ESTIMATE.text(block.text) > RESULT_TOKENS:
                    kept = replace(block, content=(Text(_ends(block.text)),))
                seen += ESTIMATE.text(kept.text if isinstance(kept, ToolResult) else "")
            blocks.append(kept)
        shortened.append(replace(message, blocks=tuple(reversed(blocks))))
    return shortened[::-1]


def _ends(text: str) -> str:
    if len(text) <= LONGEST_CHARACTERS:
        return text
    head = LONGEST_CHARACTERS // 5
    tail = LONGEST_CHARACTERS - head
    return f"{text[:head]}\n[{len(text) - head - tail:,} characters omitted]\n{text[-tail:]}"
