"""`/v1/sessions/{id}/costs`: what a session cost, at the prices of now."""

from contextgauge.pricing.bundled import price_of
from contextgauge.pricing.table import PriceTable
from streams.codec.costs import costs_document
from streams.core.costs import session_costs
from tests.serve.kit import GrowingViews, api_over, sample_records


async def test_the_costs_are_those_of_the_records_and_change_with_the_prices() -> None:
    records = sample_records()
    views = GrowingViews()
    views.add(*records)
    session_id = next(each.data.session_id for each in records if each.kind == "compact_boundary")
    own = [each for each in records if each.data.session_id == session_id]

    api, later = api_over(views), api_over(views, prices=PriceTable({}, {}).find)
    path = f"/v1/sessions/{session_id}/costs"
    async with api.client, later.client:
        first = await api.get(path)
        assert first.json()["costs"] == costs_document(session_costs(own, price_of))
        assert first.json()["costs"]["cost"]["usd"] is not None
        same = await api.get(path, if_none_match=first.headers["etag"])
        assert same.status_code == 304
        changed = await later.get(path, if_none_match=first.headers["etag"])
        assert changed.status_code == 200
        assert changed.json()["costs"]["cost"] == {
            "usd": None,
            "basis": "unknown",
            "is_complete": False,
        }
        assert (await api.get("/v1/sessions/absent/costs")).status_code == 404
