"""deepagents, with LangChain's summarisation middleware: the end that fits stays.

Facts from `libs/deepagents/deepagents/middleware/summarization.py` of langchain-ai/deepagents (MIT)
at 23b83ad50f63 (0.7.8) and `langchain/agents/middleware/summarization.py` of langchain 1.5.0 (MIT):

- The longest end of the messages stays that has at most `keep` tokens (a tenth of the window), one
  message at least. Where it would begin with a tool's result, it begins with the call instead.
- What comes before is summarised, the message with the former summary included, and the summary
  becomes a message of the user that names a file with the whole history.
- Arguments above 2 000 characters of old calls that write are shortened; with the same `keep` they
  are all among what is summarised, and the stand-in does not read them.

Here `keep` is the budget's share for recent messages.
"""

from collections.abc import Sequence

from bench.compaction.contenders import Budget, summary_message, tokens_of, write_summary
from bench.compaction.summaries import StandIn
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Message


def deepagents(messages: Sequence[Message], budget: Budget, write: StandIn) -> Sequence[Message]:
    """Return the summary and the recent messages."""
    cut = _cutoff(messages, budget.recent_tokens)
    if cut <= 0:
        return messages
    prose = write_summary(messages[:cut], write, budget.summary_tokens)
    before = (
        "You are in the middle of a conversation that has been summarized. The full history is in "
        "/conversation_history/session.md.\n\n<summary>\n"
    )
    return [summary_message(prose, before=before, after="\n</summary>"), *messages[cut:]]


def _cutoff(messages: Sequence[Message], keep_tokens: int) -> int:
    if tokens_of(messages) <= keep_tokens:
        return 0
    cut, total = len(messages), 0
    while cut > 0 and total + ESTIMATE.message(messages[cut - 1]) <= keep_tokens:
        cut -= 1
        total += ESTIMATE.message(messages[cut])
    return _safe(messages, min(cut, len(messages) - 1))


def _safe(messages: Sequence[Message], cut: int) -> int:
    """Return a cut before the call whose results would stand first."""
    end = cut
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    ids = {result.call_id for each in messages[cut:end] for result in each.results}
    if not ids:
        return cut
    for at in range(cut - 1, -1, -1):
        if any(call.id in ids for call in messages[at].calls):
            return at
    return end
