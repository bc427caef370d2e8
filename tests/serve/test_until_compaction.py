"""What answers have of tokens until compaction, and of views that a former build left."""

from typing import Any

import pytest

from contextgauge.errors import FormerViewsError
from streams.ports import ViewPosition
from streams.serve.api import reading
from streams.serve.views import snapshot
from tests.core.history import History
from tests.serve.kit import GrowingViews, api_over


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the positions, and at what is usual of a model, for every question."""
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)
    monkeypatch.setattr(reading, "_LEARNED_S", 0.0)


async def test_what_no_runtime_reports_is_learned_from_the_session_then_from_the_model() -> None:
    one, two, other = History("one"), History("two"), History("three")
    views = GrowingViews()
    api = api_over(views)

    async def until(session: str) -> dict[str, Any]:
        found = (await api.json(f"/v1/sessions/{session}"))["session"]
        listed = (await api.json(f"/v1/sessions?id={session}"))["sessions"]
        assert [view["status"] for view in listed] == [found["status"]]
        expected: dict[str, Any] = found["status"]["until_compaction"]
        return expected

    views.add(two.reading(100_000), other.limits(threshold=190_000), other.reading(100_000))
    reported = {
        "tokens": 90_000,
        "responses": None,
        "threshold_tokens": 190_000,
        "source": "reported",
        "estimated": False,
        "setting": None,
    }
    assert await until("two") == {}
    assert await until("three") == {"main": reported}
    boundary = one.boundary("auto", pre=167_094)
    views.add(boundary, one.complete(boundary, after=30_000), one.reading(30_000))
    learned = {"tokens": 67_094, "threshold_tokens": 167_094, "estimated": True}
    assert await until("two") == {"main": reported | learned | {"source": "learned_model"}}
    learned = {"tokens": 137_094, "threshold_tokens": 167_094, "estimated": True}
    assert await until("one") == {"main": reported | learned | {"source": "learned_session"}}
    assert await until("three") == {"main": reported}
    ranked = (await api.json("/v1/sessions?sort=until"))["sessions"]
    assert [view["session_id"] for view in ranked] == ["two", "three", "one"]


async def test_views_of_a_former_format_are_reported_as_being_rebuilt() -> None:
    class _Former(GrowingViews):
        async def position(self, generation: int, partition: int) -> ViewPosition | None:
            raise FormerViewsError(f"the views {generation}:{partition} are of format 3")

    answer = await api_over(_Former()).client.get("/v1/sessions")
    assert answer.status_code == 503
    assert "a project worker rebuilds them" in answer.json()["detail"]
