"""OpenHands: the first events stay, the middle is condensed, the end that fits stays.

Facts from `openhands-sdk/openhands/sdk/context/condenser/llm_summarizing_condenser.py` and
`context/view/` of OpenHands/software-agent-sdk (MIT) at 611629e6999a (1.43.1), with the figures of
its `default_condenser` (`max_size` 80, `keep_first` 4):

- The first four events always stay; the system prompt is the first of them.
- Above `max_tokens`, the shortest beginning of the other events is forgotten that brings the total
  to half of it. Above 80 events, as many are forgotten that 40 remain with the summary. The
  stricter of both counts.
- Both ends of what is forgotten move forward to where no call is separated from its result, nor
  calls of one answer from one another.
- A summary of it, the former summary included, takes its place. Nothing happens where it would be
  less than a tenth of the events; then, above `max_tokens`, all events become the summary.

Here half of `max_tokens` is the budget's share for recent messages. A message is taken for an
event; of an answer with several calls OpenHands makes several.
"""

from collections.abc import Sequence

from bench.compaction.contenders import Budget, summary_message, tokens_of, write_summary
from bench.compaction.summaries import StandIn
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Message, open_calls

MAX_SIZE = 80
KEEP_FIRST = 3
"""Four, of which the system prompt is one: it is not among the messages that a rule gets."""

MINIMUM_PROGRESS = 0.1


def openhands(messages: Sequence[Message], budget: Budget, write: StandIn) -> Sequence[Message]:
    """Return the first events, the summary and the end."""
    size = len(messages) + 1  # the system prompt
    total = tokens_of(messages)
    keep = [len(messages)]
    if total > 2 * budget.recent_tokens:
        keep.append(_suffix(messages[KEEP_FIRST:], total - budget.recent_tokens))
    if size > MAX_SIZE:
        keep.append(MAX_SIZE // 2 - (KEEP_FIRST + 1) - 1)
    if len(keep) == 1:
        return messages
    start = _next_boundary(messages, KEEP_FIRST)
    end = _next_boundary(messages, len(messages) - min(keep))
    if end - start < size * MINIMUM_PROGRESS:
        if total <= 2 * budget.recent_tokens:
            return messages
        start, end = 0, len(messages)
    prose = write_summary(messages[start:end], write, budget.summary_tokens)
    return [*messages[:start], summary_message(prose), *messages[end:]]


def _suffix(messages: Sequence[Message], reduction_tokens: int) -> int:
    """Return how many messages of the end may stay."""
    if reduction_tokens <= 0:
        return len(messages)
    total = 0
    for count, message in enumerate(messages, 1):
        total += ESTIMATE.message(message)
        if total > reduction_tokens:
            return len(messages) - count
    return 0


def _next_boundary(messages: Sequence[Message], at: int) -> int:
    at = min(at, len(messages))
    while at < len(messages) and open_calls(messages[:at]):
        at += 1
    return at
