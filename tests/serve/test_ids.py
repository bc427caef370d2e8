"""Ids in addresses: whatever they hold, an address is that of one session."""

import asyncio
from urllib.parse import quote

import pytest

from contextgauge.addresses import is_hashed, session_address
from tests.core.history import History
from tests.serve.kit import GrowingViews, api_over


@pytest.mark.parametrize("name", ["a", "a/b", "ä b", "a%2Fb", "a\nb", "?x=1"])
@pytest.mark.parametrize("ending", ["", "/events", "/readings", "/compactions"])
async def test_an_id_may_end_like_a_route(name: str, ending: str) -> None:
    history, views = History(name + ending), GrowingViews()
    plain = History(name)
    views.add(history.start("manual"), plain.info())
    api = api_over(views)
    sent = quote(name + ending, safe="")
    document = await api.json(f"/v1/sessions/{sent}")
    assert document["session"]["session_id"] == name + ending
    document = await api.json(f"/v1/sessions/{sent}/events")
    assert [record["data"]["session_id"] for record in document["records"]][:1] == [name + ending]
    assert len(await api.json(f"/api/agents/{sent}/events")) == 1
    missing = await api.get(f"/v1/sessions/none{sent}")
    assert missing.status_code == 404


IDS = [
    ".",
    "..",
    "a/b",
    "\0",
    "~" + "0" * 32,
    "\u0436" * 1_500,
    "\U0001f600" * 16_384,
    "half \ud800",
]


async def test_every_session_has_an_address_that_all_routes_know() -> None:
    views = GrowingViews()
    for name in IDS:
        views.add(History(name).start("manual"))
    api = api_over(views)
    listed = (await api.json("/v1/sessions"))["sessions"]
    assert {view["session_id"] for view in listed} == set(IDS)
    for view in listed:
        name, address = view["session_id"], view["address"]
        assert address == session_address(name)
        document = await api.json(f"/v1/sessions/{address}")
        assert document["session"]["session_id"] == name
        document = await api.json(f"/v1/sessions/{address}/events")
        assert [record["data"]["session_id"] for record in document["records"]] == [name]
        document = await api.json(f"/v1/sessions?id={address}")
        assert [view["session_id"] for view in document["sessions"]] == [name]
        assert len(await api.json(f"/api/agents/{address}/events")) == 1


async def test_an_unknown_hash_is_an_unknown_session() -> None:
    views = GrowingViews()
    views.add(History("a").start("manual"))
    api = api_over(views)
    unknown = session_address("..")
    assert is_hashed(unknown)
    assert (await api.get(f"/v1/sessions/{unknown}")).status_code == 404
    views.add(History("..").start("manual"))
    await asyncio.sleep(0.1)  # for so long all answers are of one snapshot
    assert (await api.get(f"/v1/sessions/{unknown}")).status_code == 200
