"""Answers to calls of the model that began before a compaction: they report the size before it.

The service's boundary says that it came during a call. The first answer after it is that call's,
whichever readings report it.
"""

from collections import OrderedDict
from typing import Final

from schemas.records import CompactBoundary, ContextReading, Record, RecordData

_MOST_CHAINS: Final = 100_000
"""Some ten megabytes; only chains that were compacted during a call are here."""


class LateAnswers:
    """Chains with an answer that is still to come, or was the last: the oldest are forgotten."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], str | None] = OrderedDict()

    def clear(self) -> None:
        """Forget all: the records are read again."""
        self._answers.clear()

    def ended(self, data: RecordData) -> None:
        """Note that an epoch ended: a boundary may have come during a call."""
        key = (data.session_id, data.chain)
        self._answers.pop(key, None)
        if isinstance(data, CompactBoundary) and _is_during_call(data):
            self._answers[key] = None
            if len(self._answers) > _MOST_CHAINS:
                self._answers.popitem(last=False)

    def reported(self, record: Record) -> bool:
        """Return whether a reading is of such an answer; asked again, the same."""
        data = record.data
        key = (data.session_id, data.chain)
        if not isinstance(data, ContextReading) or key not in self._answers:
            return False
        answer = data.response_id or record.id
        if self._answers[key] is None:
            self._answers[key] = answer
        elif self._answers[key] != answer:
            del self._answers[key]
            return False
        return True


def _is_during_call(data: CompactBoundary) -> bool:
    own = data.metadata.get("contextgauge")
    return isinstance(own, dict) and own.get("during_call") is True
