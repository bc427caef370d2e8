"""What stands before the routes: tokens, rates, sizes, errors, and what each of them says."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from contextgauge.errors import ConfigError, RetryError, StopError, VersionError
from schemas.records import Runtime
from schemas.views import SizeState
from streams.edge.files.tokens import TokenFile, hashed, line_of, new_token
from streams.ports import Generations
from streams.serve.api import guard
from streams.serve.views import snapshot
from tests.doubles.view_store import FaultyViews
from tests.serve.kit import Api, GrowingViews, api_over
from tests.serve.redis_kit import become

PROBLEM = "application/problem+json"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)


def _readers(token: str) -> Mapping[str, str]:
    return {hashed(token): "ann"}


async def test_the_response_to_a_missing_token_explains_how_to_send_one() -> None:
    api = api_over(GrowingViews(), readers=lambda: _readers("t"))
    for path in ("/v1/sessions", "/api/agents/a/events", "/v1/none", "/v1/stream"):
        answer = await api.get(path)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == PROBLEM
        assert answer.headers["www-authenticate"] == 'Bearer realm="contextgauge"'
        assert "Authorization: Bearer" in answer.json()["detail"]
    wrong = await api.get("/v1/sessions", authorization="Bearer other")
    assert wrong.status_code == 401
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    assert (await api.get("/v1/sessions", authorization="Basic t")).status_code == 401
    assert (await api.get("/v1/sessions", authorization="bearer t")).status_code == 200


async def test_probes_and_documents_need_no_token() -> None:
    api = api_over(GrowingViews(), readers=lambda: _readers("t"))
    for path in ("/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"):
        assert (await api.get(path)).status_code == 200, path


async def test_a_removed_token_no_longer_works(tmp_path: Path) -> None:
    path, first, second = tmp_path / "readers", new_token(), new_token()
    path.write_text(f"# who may read\n{line_of('ann', first)}\n\n{line_of('bob', second)}\n")
    assert first not in path.read_text()
    file = TokenFile(path, "CONTEXTGAUGE_SERVE_TOKENS_FILE")
    api = api_over(GrowingViews(), readers=file.read)
    for token in (first, second):
        answer = await api.get("/v1/sessions", authorization=f"Bearer {token}")
        assert answer.status_code == 200
    path.write_text(f"{line_of('bob', second)}\n")
    gone = await api.get("/v1/sessions", authorization=f"Bearer {first}")
    assert gone.status_code == 401
    path.unlink()
    closed = await api.get("/v1/sessions", authorization=f"Bearer {second}")
    assert closed.status_code == 503
    assert isinstance(api.reported[0][1], ConfigError)


@pytest.mark.parametrize("text", ["ann cg_in_the_clear", "ann sha256:123", "", "# nobody\n"])
def test_an_invalid_tokens_file_is_reported_without_its_content(tmp_path: Path, text: str) -> None:
    path = tmp_path / "readers"
    path.write_text(text)
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_SERVE_TOKENS_FILE") as caught:
        TokenFile(path, "CONTEXTGAUGE_SERVE_TOKENS_FILE").read()
    assert "in_the_clear" not in str(caught.value)


async def test_rate_limited_requests_get_a_retry_after_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "_BURST_S", 3)
    api = api_over(GrowingViews(), requests_per_s=1, readers=lambda: _readers("t"))
    mine = {"authorization": "Bearer t"}
    answers = [await api.get("/v1/sessions", **mine) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].headers["retry-after"] == "1"
    assert answers[3].headers["content-type"] == PROBLEM
    # Others are not held up by it, and probes never.
    assert (await api.get("/v1/sessions")).status_code == 401
    assert all([(await api.get("/healthz")).status_code == 200 for _ in range(9)])


async def test_concurrent_requests_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_UNDER_WAY", 2)
    views = _Waiting()
    api = api_over(views)
    waiting = [asyncio.create_task(api.get("/v1/sessions")) for _ in range(2)]
    await views.asked.wait()  # for the first; the other is as far, and shares the answer
    busy = await api.get("/v1/sessions")
    assert busy.status_code == 503
    assert busy.json()["type"].endswith("busy")
    assert (await api.get("/healthz")).status_code == 200
    views.go_on.set()
    assert [(await task).status_code for task in waiting] == [200, 200]
    assert (await api.get("/v1/sessions")).status_code == 200


class _Waiting(GrowingViews):
    """Views that answer when they are asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.asked = asyncio.Event()

    async def generations(self) -> Generations:
        self.asked.set()
        await self.go_on.wait()
        return await super().generations()


async def test_requests_that_are_too_large_are_rejected() -> None:
    api = api_over(GrowingViews())
    assert (await api.get("/v1/sessions?q=" + "x" * 9_000)).status_code == 414
    assert (await api.get("/v1/sessions", x_long="x" * 40_000)).status_code == 431
    body = await api.client.request("GET", "/v1/sessions", content=b"x" * 20_000)
    assert body.status_code == 413
    assert body.headers["content-type"] == PROBLEM

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    chunked = await api.client.request("GET", "/v1/sessions", content=chunks())
    assert chunked.status_code == 413
    assert "needs a Content-Length" in chunked.json()["detail"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nothing", 404, "/docs"),
        ("/v1/sessions/nobody", 404, "/v1/sessions"),
        ("/v1/sessions/nobody/events", 404, "/v1/sessions"),
        ("/v1/sessions?limit=0", 422, "limit"),
        ("/v1/sessions?sort=size", 422, "sort"),
        ("/v1/sessions?min_percent=nan", 422, "min_percent"),
        ("/v1/sessions?cursor=x", 400, "next"),
        ("/v1/sessions?cursor=bm90aGluZw", 400, "next"),
        ("/v1/sessions/a/events?type=none", 422, "type"),
        ("/v1/sessions/a/events?after=WzEsMl0", 400, "next"),
        ("/v1/stats?by=day", 422, "by"),
        ("/v1/stats?since=yesterday", 422, "since: must be an hour in UTC"),
        ("/v1/stats?since=2026-13-01T00", 422, "2026-11-22T00"),
        ("/v1/stats?since=2026-1-01T000", 422, "2026-11-22T00"),
        ("/v1/sessions?runtime=bogus", 422, f"'{get_args(Runtime)[-1]}' or 'unknown'"),
        (
            "/v1/sessions?min_pct=80",
            422,
            "min_pct: unknown parameter; did you mean min_percent? Al",
        ),
        (
            "/v1/sessions?zzz",
            422,
            "unknown parameter. Allowed: sort, live_first, state, model, ",
        ),
        ("/v1/sessions/a/events?Limit=1", 422, "did you mean limit?"),
        ("/v1/sessions/a?x=1", 422, "This route has no parameters."),
        ("/v1/projection?x=1", 422, "x: unknown parameter"),
        ("/v1/stream?sesion=a", 422, "did you mean session?"),
        ("/v1/stats?by=model&since=2026-02-11T20", 422, "by=hour"),
    ],
)
async def test_every_error_is_a_problem_document_with_a_remedy(
    path: str, status: int, said: str
) -> None:
    answer = await api_over(GrowingViews()).get(path)
    document = answer.json()
    assert (answer.status_code, document["status"]) == (status, status)
    assert answer.headers["content-type"] == PROBLEM
    assert said in document["detail"]
    assert document["instance"] == path.partition("?")[0]
    assert set(document) >= {"type", "title", "status", "detail", "instance"}


async def test_each_unknown_parameter_is_named_and_truncated() -> None:
    asked = "&".join(["z" * 200, *(f"p{number}=1" for number in range(20)), "q=a", "p0=2"])
    document = (await api_over(GrowingViews()).get(f"/v1/sessions?{asked}")).json()
    named = [wrong["parameter"] for wrong in document["errors"]]
    assert named == ["z" * 100, *(f"p{number}" for number in range(9))]


async def test_agent_events_ignore_unknown_query_parameters() -> None:
    plain, dressed = [
        await api_over(GrowingViews()).get(f"/api/agents/a/events{query}")
        for query in ("", "?_=1790000000000")
    ]
    assert dressed.status_code == plain.status_code != 422
    assert dressed.json() == plain.json()


async def test_the_page_and_the_probes_ignore_unknown_query_parameters() -> None:
    api = api_over(GrowingViews())
    for path in ("/?utm_source=chat", "/healthz?x=1", "/docs?x=1"):
        assert (await api.get(path)).status_code == 200, path


async def test_nothing_can_be_written() -> None:
    api = api_over(GrowingViews())
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = await api.client.request(method, "/v1/sessions")
        assert answer.status_code == 405
        assert answer.headers["content-type"] == PROBLEM
        assert answer.headers["allow"] == "GET, HEAD"
    head = await api.client.head("/v1/sessions")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"]


async def test_an_unavailable_redis_is_reported_and_not_taken_for_an_empty_one() -> None:
    views = GrowingViews()
    api = api_over(views)
    views.away = True
    for path in (
        "/v1/sessions",
        "/v1/stats",
        "/v1/projection",
        "/v1/stream",
        "/api/agents/a/events",
    ):
        answer = await api.get(path)
        assert answer.status_code == 503, path
        assert answer.headers["content-type"] == PROBLEM
        assert int(answer.headers["retry-after"]) >= 1
    views.away = False
    views.partitions.clear()
    gone = await api.get("/v1/sessions")
    assert gone.status_code == 503
    assert "project worker" in gone.json()["detail"]


class _Broken(FaultyViews):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def _check(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "status"), [(VersionError("v"), 503), (StopError("s"), 503), (KeyError("text"), 500)]
)
async def test_an_unexpected_error_is_logged_and_not_exposed(error: Exception, status: int) -> None:
    api = api_over(_Broken(error))
    answer = await api.get("/v1/sessions")
    assert answer.status_code == status
    assert answer.headers["content-type"] == PROBLEM
    assert "log" in answer.json()["detail"]
    assert "text" not in answer.text.replace("context", "")
    assert [type(reported) for _, reported in api.reported] == [type(error)]


async def test_an_unknown_host_header_is_refused() -> None:
    async def refusal(api: Api) -> str:
        return str((await api.get("/v1/sessions", host="board.example")).json()["detail"])

    api = api_over(GrowingViews())
    for host in ("evil.example", "evil.example:8642", "localhost.evil.example"):
        answer = await api.get("/v1/sessions", host=host)
        assert answer.status_code == 421, host
        assert (await api.get("/metrics", host=host)).status_code == 421, host
    for host in ("localhost:8642", "127.0.0.1:8642", "[::1]:8642", "[::1]", "board.localhost"):
        assert (await api.get("/v1/sessions", host=host)).status_code == 200, host
    assert "set CONTEXTGAUGE_SERVE_HOST and CONTEXTGAUGE_SERVE_TOKENS_FILE" in await refusal(api)
    assert "set --host and" in await refusal(api_over(GrowingViews(), is_local=True))
    known = api_over(GrowingViews(), readers=lambda: _readers("t"))
    answer = await known.get("/v1/sessions", host="board.example", authorization="Bearer t")
    assert answer.status_code == 200
    everywhere = api_over(GrowingViews(), only_here=False)
    assert (await everywhere.get("/v1/sessions", host="board.example")).status_code == 200
    named = api_over(GrowingViews(), only_here=False, names=["board.example"])
    for host, status in (("Board.example:80", 200), ("localhost", 200), ("evil.example", 421)):
        assert (await named.get("/v1/sessions", host=host)).status_code == status, host


async def test_other_origins_read_nothing_unless_they_are_named() -> None:
    origin = "https://board.example"
    closed = await api_over(GrowingViews()).get("/v1/sessions", origin=origin)
    assert "access-control-allow-origin" not in closed.headers
    api = api_over(GrowingViews(), origins=[origin], readers=lambda: _readers("t"))
    asked = await api.client.options(
        "/v1/sessions",
        headers={
            "origin": origin,
            "access-control-request-method": "GET",
            "access-control-request-headers": "authorization",
        },
    )
    assert asked.status_code == 200
    refused = await api.get("/v1/sessions", origin=origin)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == origin
    for name in ("Stale", "Silent-Ms", "Lag-Records"):
        assert f"Contextgauge-{name}" in refused.headers["access-control-expose-headers"]
    stranger = await api.get("/v1/sessions", origin="https://evil.example")
    assert "access-control-allow-origin" not in stranger.headers


async def test_large_answers_are_compressed() -> None:
    api: Api = api_over(GrowingViews())
    answer = await api.get("/openapi.json", accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in answer.headers["vary"].lower()


async def test_requests_are_counted_by_route_and_never_by_session() -> None:
    api = api_over(GrowingViews())
    await api.get("/v1/sessions/secret-session")
    await api.get("/v1/sessions")
    await api.get("/nowhere")
    text = (await api.get("/metrics")).text
    assert 'route="/v1/sessions",status="200"' in text
    assert 'route="none",status="404"' in text
    assert "secret-session" not in text


async def test_the_documentation_page_loads_no_other_resources() -> None:
    api = api_over(GrowingViews())
    answer = await api.get("/docs")
    assert "http://" not in answer.text
    assert "https://" not in answer.text
    assert "<script" not in answer.text
    assert "GET /v1/sessions" in answer.text
    assert "`" not in answer.text
    assert "<code>next</code> of the previous answer" in answer.text
    states = ", ".join(f"<code>{name}</code>" for name in get_args(SizeState))
    assert f"One of {states}." in answer.text
    assert "<code>context_warning</code>, <code>context_limits</code>" in answer.text
    assert "1 to 1,000.<br>Default <code>50</code>." in answer.text


async def test_a_browser_gets_a_page_with_a_link_for_an_unknown_path() -> None:
    api = api_over(GrowingViews())
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    answer = await api.get("/<b>nothing", accept=browser)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert '<a href="/">' in answer.text
    assert "/&lt;b&gt;nothing" in answer.text
    # A program that reads problems gets one, wherever it asks.
    for path, asked in (("/nothing", "*/*"), ("/v1/nothing", browser), ("/v1/sessions/a", browser)):
        assert (await api.get(path, accept=asked)).headers["content-type"] == PROBLEM, path


async def test_errors_of_the_local_file_do_not_blame_redis() -> None:
    for error in (RetryError("locked"), StopError("damaged")):
        api = api_over(_Broken(error), is_local=True)
        async with api.app.router.lifespan_context(api.app):
            await become(partial(bool, api.reported))
            ready = await api.get("/readyz")
        answer = await api.get("/v1/sessions")
        assert ready.json()["reasons"] == ["the local file is away: see the server's log"]
        assert answer.status_code == 503
        assert "redis" not in answer.text.lower()


async def test_the_cause_of_a_redis_outage_is_logged_and_not_exposed() -> None:
    api = api_over(_Broken(RetryError("redis.internal.example:6379 refuses")))
    async with api.app.router.lifespan_context(api.app):
        await become(lambda: bool(api.reported))
        answer = await api.get("/readyz")
    assert answer.status_code == 503
    assert "redis is away" in answer.text
    assert "internal.example" not in answer.text
    assert "internal.example" in str(api.reported[0][1])
