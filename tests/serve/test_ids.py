"""Ids in addresses: whatever they hold, an address is that of one session."""

from urllib.parse import quote

import pytest

from tests.core.history import History
from tests.serve.kit import GrowingViews, api_over


@pytest.mark.parametrize("name", ["a", "a/b", "ä b", "a%2Fb", "a\nb", "?x=1"])
@pytest.mark.parametrize("ending", ["", "/events", "/readings", "/compactions"])
async def test_an_id_may_end_like_a_route(name: str, ending: str) -> None:
    told, views = History(name + ending), GrowingViews()
    plain = History(name)
    views.add(told.start("manual"), plain.info())
    api = api_over(views)
    sent = quote(name + ending, safe="")
    found = await api.json(f"/v1/sessions/{sent}")
    assert found["session"]["session_id"] == name + ending
    found = await api.json(f"/v1/sessions/{sent}/events")
    assert [record["data"]["session_id"] for record in found["records"]][:1] == [name + ending]
    assert len(await api.json(f"/api/agents/{sent}/events")) == 1
    missing = await api.get(f"/v1/sessions/none{sent}")
    assert missing.status_code == 404
