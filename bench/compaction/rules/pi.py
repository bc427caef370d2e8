"""pi: recent messages by tokens, a turn may be split, and files are listed by code.

Facts from `packages/coding-agent/src/core/compaction/` of badlogic/pi-mono (MIT) at 83378aad7e74
(0.58.3):

- From the newest message backwards, tokens are added up until `keepRecentTokens` (20 000) is
  reached. The cut is at the first message of the user or the assistant from there on, never at a
  tool's result.
- What comes before is summarised, with the former summary to be updated. Where the cut splits a
  turn, the turn's beginning gets a summary of its own: 0.8 and 0.5 of the reserve are allowed.
- Files are taken from the calls of read, write and edit, over all compactions, and appended to the
  summary as lists of read and of changed ones.

That version passes over messages that the compaction before kept; later ones begin with the first
message kept, and so does this. Here `keepRecentTokens` is the budget's share for recent messages,
and the two limits divide the budget's share for a summary.
"""

from collections.abc import Iterable, Sequence

from bench.compaction.calls import files_of
from bench.compaction.contenders import Budget, summary_message, write_summary
from bench.compaction.summaries import StandIn
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import FileUse, Message


def pi(messages: Sequence[Message], budget: Budget, write: StandIn) -> Sequence[Message]:
    """Return the summary with its lists of files, and the recent messages."""
    cut = _cut(messages, budget.recent_tokens)
    if cut == 0:
        return messages
    turn = _turn_start(messages, cut)
    limit = budget.summary_tokens
    if turn is None:
        prose = write_summary(messages[:cut], write, limit)
    else:
        history = write_summary(messages[:turn], write, limit * 8 // 13)
        beginning = write_summary(messages[turn:cut], write, limit * 5 // 13)
        prose = f"{history}\n\n---\n\n**Turn Context (split turn):**\n\n{beginning}"
    former = next((each.compaction.carried.files for each in messages if each.compaction), ())
    files = _files(former, messages[:cut])
    before = "The conversation before this point was compacted:\n\n<summary>\n"
    after = f"{_lists(files)}\n</summary>"
    return [summary_message(prose, before=before, after=after, files=files), *messages[cut:]]


def _cut(messages: Sequence[Message], keep_tokens: int) -> int:
    start = 1 if messages and messages[0].compaction is not None else 0
    total = 0
    for at in range(len(messages) - 1, start - 1, -1):
        total += ESTIMATE.message(messages[at])
        if total >= keep_tokens:
            points = (index for index in range(at, len(messages)) if _is_point(messages[index]))
            return next(points, start)
    return start


def _is_point(message: Message) -> bool:
    return message.role != "tool"


def _turn_start(messages: Sequence[Message], cut: int) -> int | None:
    """Return where the turn begins that a cut splits, None where it splits none."""
    if cut >= len(messages) or messages[cut].role == "user":
        return None
    turns = (at for at in range(cut - 1, -1, -1) if messages[at].is_user_turn)
    return next(turns, None)


def _files(former: Iterable[FileUse], messages: Iterable[Message]) -> tuple[FileUse, ...]:
    changed = {each.path: each.changed for each in former}
    for path, is_changed in files_of(messages).items():
        changed[path] = changed.get(path, False) or is_changed
    return tuple(FileUse(path, not changed[path], changed[path]) for path in sorted(changed))


def _lists(files: Sequence[FileUse]) -> str:
    read = "\n".join(each.path for each in files if not each.changed)
    changed = "\n".join(each.path for each in files if each.changed)
    text = f"\n\n<read-files>\n{read}\n</read-files>" if read else ""
    return text + (f"\n\n<modified-files>\n{changed}\n</modified-files>" if changed else "")
