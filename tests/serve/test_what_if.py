"""`/v1/sessions/{id}/what-if`: a session's stored records, replayed under other triggers."""

import asyncio
from collections import Counter
from decimal import Decimal

from contextgauge.frozen import replace
from schemas.records import CompactBoundary, Record
from streams.serve.api.what_if_shapes import WhatIfResponse
from tests.serve.kit import GrowingViews, api_over, sample_records


def compacted() -> str:
    """Return the session of the sample with the most compactions."""
    sessions = Counter(
        each.data.session_id for each in sample_records() if isinstance(each.data, CompactBoundary)
    )
    return sessions.most_common(1)[0][0]


async def test_a_session_is_replayed_from_its_records() -> None:
    views = GrowingViews()
    views.add(*sample_records())
    api = api_over(views)
    session = compacted()
    async with api.client:
        path = f"/v1/sessions/{session}"
        answers = await asyncio.gather(
            *(api.json(f"{path}/what-if?trigger=60%25,150000") for _ in range(2))
        )
        window = (await api.json(f"{path}/what-if?window=1000000"))["what_if"]
    assert api.reported == []
    assert answers[0] == answers[1]
    answer = answers[0]["what_if"]
    assert [each["name"] for each in answer["settings"]] == ["60%", "150,000"]
    (model,) = answer["models"]
    less, more = (each["totals"]["compactions"] for each in model["settings"])
    assert less >= more >= model["recorded"]["compactions"] > 1
    assert model["break_even"]["known"] > 0
    assert answer["is_whole"]
    for each in model["settings"]:
        whole = Decimal(each["totals"]["cost"]) - Decimal(model["recorded"]["cost"])
        assert Decimal(each["change"]["amount"]) == whole
    assert [each["name"] for each in window["settings"]] == ["window 1,000,000"]


async def test_it_answers_once_for_a_state_and_refuses_what_is_no_size() -> None:
    views = GrowingViews()
    views.add(*sample_records())
    api = api_over(views)
    path = f"/v1/sessions/{compacted()}/what-if"
    async with api.client:
        first = await api.get(path)
        again = await api.get(path, if_none_match=first.headers["etag"])
        other = await api.get(f"{path}?trigger=50", if_none_match=first.headers["etag"])
        refused = [
            await api.get(f"{path}?trigger={each}") for each in ("x", "", "0", "1,2,3,4,5,6,7")
        ]
        missing = await api.get("/v1/sessions/none/what-if")
    assert [first.status_code, again.status_code, other.status_code] == [200, 304, 200]
    assert [each.status_code for each in refused] == [422] * 4
    assert "'x' is neither a percentage up to 100 nor 1,000 tokens or more" in refused[0].text
    assert missing.status_code == 404


def untimed(record: Record) -> Record:
    """Return a record as it is where a runtime reports no durations."""
    if not isinstance(record.data, CompactBoundary):
        return record
    return replace(record, data=replace(record.data, duration_ms=None))


async def test_waits_are_unknown_where_recorded_ones_are() -> None:
    views = GrowingViews()
    views.add(*map(untimed, sample_records()))
    api = api_over(views)
    async with api.client:
        answer = await api.json(f"/v1/sessions/{compacted()}/what-if?trigger=60%25")
    WhatIfResponse.model_validate(answer)
    (model,) = answer["what_if"]["models"]
    assert model["recorded"]["untimed"] == model["recorded"]["compactions"]
    assert model["advice"]["more_wait_ms"] is None
