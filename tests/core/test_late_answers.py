"""Which readings are of calls that began before a compaction."""

import pytest

from schemas.records import CompactBoundary, ContextReading
from streams.core import late_answers
from streams.core.late_answers import LateAnswers
from tests.core.given import AUTO, Given, assistant, boundary

DURING_CALL = {**AUTO, "contextgauge": {"during_call": True}}


def test_all_readings_of_the_first_answer_are_late_and_no_others() -> None:
    late, given = LateAnswers(), Given()
    given.take(assistant("z", read=160_000))
    reported = []
    bodies = [boundary(DURING_CALL)]
    bodies += [assistant(name, read=read) for name, read in (("a", 1), ("a", 2), ("b", 3))]
    for record in given.take(*bodies, assistant("a", read=4)):
        if isinstance(record.data, CompactBoundary):
            late.ended(record.data)
        elif isinstance(record.data, ContextReading):
            reported.append((record.data.used_tokens % 10, late.reported(record)))
            assert late.reported(record) is reported[-1][1]
    assert reported[:3] == [(1, True), (2, True), (3, False)]
    assert not any(is_late for _, is_late in reported[3:])


def test_the_oldest_chains_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_answers, "_MOST_CHAINS", 1)
    late, readings = LateAnswers(), []
    for session in ("one", "two"):
        given = Given()
        records = given.take(
            {**boundary(DURING_CALL), "session_id": session},
            {**assistant("a", read=160_000), "session_id": session},
        )
        late.ended(next(r.data for r in records if isinstance(r.data, CompactBoundary)))
        readings += [r for r in records if isinstance(r.data, ContextReading)]
    assert [late.reported(each) for each in readings] == [False, True]
