"""opencode: the latest turns that fit stay, all before them is summarised.

Facts from `packages/opencode/src/session/compaction.ts` of anomalyco/opencode (MIT), read as the
copies CMU-17313Q/opencode-f26-DDSC at 6f4a657808a6 and CMU-313/fall-26-opencode-slop-squad at
5a7c5edc717 have it, both of autumn 2026:

- The tail is made of the last two turns (`tail_turns`), from the newest on, as long as they fit
  `preserve_recent_tokens`; its default is a quarter of the usable window, 2 000 to 8 000. Of the
  turn that does not fit, the longest end that does stays, from its second message on.
- Everything before the tail goes to the summariser, with the former summary to be updated.
- The model then sees a question of the user, the summary as the assistant's answer, the tail.
- Pruning of old tool results is off unless configured; it protects the latest 40 000 tokens.

Here `preserve_recent_tokens` is the budget's share for recent messages. In opencode a call and its
result are parts of one message, so a turn is only split before an assistant's message.
"""

from collections.abc import Sequence

from bench.compaction.contenders import (
    Budget,
    summary_message,
    text_message,
    tokens_of,
    write_summary,
)
from bench.compaction.summaries import StandIn
from contextgauge.compaction.messages import Message

TAIL_TURNS = 2


def opencode(messages: Sequence[Message], budget: Budget, write: StandIn) -> Sequence[Message]:
    """Return the question, the summary and the tail."""
    first_own = next((at for at, each in enumerate(messages) if _is_question(each)), None)
    history = [each for at, each in enumerate(messages) if at != first_own]
    start = _tail_start(history, budget.recent_tokens)
    prose = write_summary(history[:start], write, budget.summary_tokens)
    return [
        text_message("user", _QUESTION),
        summary_message(prose, role="assistant"),
        *history[start:],
    ]


_QUESTION = "What did we do so far?"


def _is_question(message: Message) -> bool:
    return message.role == "user" and message.text == _QUESTION


def _tail_start(history: Sequence[Message], budget_tokens: int) -> int:
    turns = [at for at, each in enumerate(history) if each.is_user_turn][-TAIL_TURNS:]
    keep = end = len(history)
    left = budget_tokens
    for start in reversed(turns):
        size = tokens_of(history[start:end])
        if size > left:
            return next(
                (
                    at
                    for at in range(start + 1, end)
                    if history[at].role == "assistant" and tokens_of(history[at:end]) <= left
                ),
                keep,
            )
        left -= size
        keep = end = start
    return keep if keep > 0 else len(history)
