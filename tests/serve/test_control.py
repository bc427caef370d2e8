"""Requests to the control plane: what is sent, and who may send it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.types import Message

from contextgauge.errors import ConfigError, RetryError
from contextgauge.partitioner import partition_of
from schemas.commands import (
    CancelRequested,
    CommandView,
    CompactRequested,
    ControlView,
    TextDeleted,
    ThresholdsSet,
)
from schemas.records import Record
from streams.codec.commands import read_entry
from streams.edge.commands import LogCommandSink
from streams.edge.files.tokens import hashed
from streams.edge.memory.log import MemoryLog
from streams.serve.api import guard
from tests.serve.control_kit import CLOCK, JSON, TOPIC, Control
from tests.serve.kit import PARTITIONS
from tests.serve.text_kit import OneConversation, kept_conversation


@pytest.fixture
async def control(records: list[Record]) -> Control:
    return await Control(records).create()


async def test_a_compaction_is_requested_and_followed(control: Control) -> None:
    answer = await control.ask(
        "POST", f"{control.path}/compact", {"instructions": "keep the API", "urgent": True}
    )
    assert answer.status_code == 202
    body = answer.json()
    assert answer.headers["location"] == body["follow"] == f"{control.path}/control"
    assert await control.sent() == [
        CompactRequested(
            session_id=control.session,
            command_id=body["command_id"],
            trigger="manual",
            requested_by="api",
            instructions="keep the API",
            urgent=True,
        )
    ]
    assert (await control.api.json(body["follow"]))["control"]["commands"] == []


async def test_a_body_is_optional_and_each_request_has_an_id_of_its_own(control: Control) -> None:
    ids = {
        (await control.ask("POST", f"{control.path}/compact")).json()["command_id"]
        for _ in range(3)
    }
    assert len(ids) == 3


async def test_a_command_id_makes_a_repeated_request_the_same_one(control: Control) -> None:
    for _ in range(2):
        answer = await control.ask("POST", f"{control.path}/compact", {"command_id": "mine-1"})
        assert answer.json()["command_id"] == "mine-1"
    reader = control.log.reader(TOPIC, [partition_of(control.session, PARTITIONS)])
    await reader.start()
    reader.seek(partition_of(control.session, PARTITIONS), 0)
    batch = await reader.poll(partition_of(control.session, PARTITIONS), 100, 0.01)
    assert len({read_entry(each.headers, each.value or b"").id for each in batch.records}) == 1


async def test_an_unknown_session_is_404(control: Control) -> None:
    for method, path in (
        ("POST", "/compact"),
        ("DELETE", "/compact/c-1"),
        ("DELETE", "/text"),
        ("PUT", "/thresholds"),
        ("GET", "/control"),
    ):
        body = {"automatic": True} if method == "PUT" else None
        answer = await control.ask(method, f"/v1/sessions/unknown{path}", body)
        assert answer.status_code == 404, path
        assert answer.json()["type"] == "urn:contextgauge:problem:no-session"


async def test_what_is_known_of_a_session_is_shown_with_whether_a_worker_runs(
    control: Control,
) -> None:
    command = CommandView(
        command_id="c-1",
        trigger="auto",
        requested_by="control",
        instructions=None,
        cause_id=None,
        state="accepted",
        requested_ms=1,
    )
    control.reader.views["gone"] = ControlView(session_id="gone", commands=(command,))
    body = await control.api.json("/v1/sessions/gone/control")
    assert [each["command_id"] for each in body["control"]["commands"]] == ["c-1"]
    assert body["worker"]["is_working"]
    first = await control.api.get("/v1/sessions/gone/control")
    again = await control.api.get("/v1/sessions/gone/control", if_none_match=first.headers["etag"])
    assert again.status_code == 304
    control.reader.seen_ms = CLOCK.now_ms() - 60_000
    assert not (await control.api.json("/v1/sessions/gone/control"))["worker"]["is_working"]
    control.reader.seen_ms = None
    worker = (await control.api.json("/v1/sessions/gone/control"))["worker"]
    assert worker == {"silent_ms": None, "is_working": False}


async def test_a_command_is_cancelled_unless_it_is_finished(control: Control) -> None:
    answer = await control.ask("DELETE", f"{control.path}/compact/c-1")
    assert answer.status_code == 202
    assert await control.sent() == [
        CancelRequested(session_id=control.session, command_id="c-1", requested_by="api")
    ]
    done = CommandView(
        command_id="c-1",
        trigger="auto",
        requested_by="control",
        instructions=None,
        cause_id=None,
        state="finished",
        requested_ms=1,
        outcome="completed",
    )
    control.reader.views[control.session] = ControlView(
        session_id=control.session, commands=(done,)
    )
    answer = await control.ask("DELETE", f"{control.path}/compact/c-1")
    assert answer.status_code == 409
    assert answer.json()["detail"] == "The command is finished: completed."


async def test_thresholds_are_set_and_removed(control: Control) -> None:
    answer = await control.ask(
        "PUT", f"{control.path}/thresholds", {"automatic": True, "compact_at": "80%"}
    )
    assert answer.status_code == 202
    await control.ask("DELETE", f"{control.path}/thresholds")
    await control.ask("PUT", "/v1/agents/reviewer/thresholds", {"automatic": False})
    await control.ask("PUT", "/v1/projects/%2Frepos%2Fapp/thresholds", {"compact_at": "9000"})
    await control.ask("DELETE", "/v1/projects/app/thresholds")
    by = "api"
    of_all = [
        ThresholdsSet(scope="agent", name="reviewer", requested_by=by, automatic=False),
        ThresholdsSet(scope="project", name="/repos/app", requested_by=by, compact_at="9000"),
        ThresholdsSet(scope="project", name="app", requested_by=by),
    ]
    own = partition_of(control.session, PARTITIONS)
    assert await control.sent(own) == [
        ThresholdsSet(
            scope="session",
            name=control.session,
            requested_by=by,
            automatic=True,
            compact_at="80%",
        ),
        ThresholdsSet(scope="session", name=control.session, requested_by=by),
        *of_all,
    ]
    assert await control.sent((own + 1) % PARTITIONS) == of_all


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"compact_at": "lots"}, "compact_at 'lots' is not a size"),
        ({"compact_at": "50%", "compact_to": "60%"}, "compact_to 60% is above compact_at 50%"),
        ({}, "sets nothing: use DELETE"),
        ({"compact_form": "60%"}, "compact_form: Extra inputs are not permitted"),
        ({"automatic": "perhaps"}, "automatic: Input should be a valid boolean"),
    ],
)
async def test_wrong_thresholds_are_refused_with_the_reason(
    control: Control, body: Mapping[str, object], detail: str
) -> None:
    answer = await control.ask("PUT", f"{control.path}/thresholds", body)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]
    assert await control.sent() == []


async def test_a_text_is_deleted_each_time_up_to_then(control: Control) -> None:
    for _ in range(2):
        assert (await control.ask("DELETE", f"{control.path}/text")).status_code == 202
    deleted = TextDeleted(session_id=control.session, requested_by="api")
    assert await control.sent() == [deleted, deleted]


async def test_a_text_that_is_kept_of_a_session_without_figures_can_be_deleted(
    records: list[Record],
) -> None:
    conversations = OneConversation("no figures", kept_conversation())
    control = await Control(records, conversations=conversations).create()
    answer = await control.ask("DELETE", "/v1/sessions/no%20figures/text")
    assert answer.status_code == 202
    sent = await control.sent(partition_of("no figures", PARTITIONS))
    assert sent == [TextDeleted(session_id="no figures", requested_by="api")]
    assert (await control.ask("DELETE", "/v1/sessions/unknown/text")).status_code == 404


async def test_a_server_only_reads_unless_it_is_allowed_to_write(records: list[Record]) -> None:
    control = await Control(records, commands=None).create()
    answer = await control.ask("POST", f"{control.path}/compact")
    assert answer.status_code == 403
    assert "CONTEXTGAUGE_SERVE_CONTROL=true" in answer.json()["detail"]
    broken = await control.api.client.post(f"{control.path}/compact", content=b"{", headers=JSON)
    assert broken.status_code == 403
    assert (await control.ask("GET", f"{control.path}/control")).status_code == 200


async def test_a_server_that_others_reach_needs_tokens(records: list[Record]) -> None:
    control = await Control(records, only_here=False).create()
    answer = await control.ask("POST", f"{control.path}/compact")
    assert answer.status_code == 403
    assert "CONTEXTGAUGE_SERVE_TOKENS_FILE" in answer.json()["detail"]


async def test_a_token_may_be_for_reading_only(records: list[Record]) -> None:
    control = await Control(
        records,
        readers=lambda: {hashed("cg_r"): "rita", hashed("cg_w"): "wim"},
        writers=lambda: frozenset((hashed("cg_w"),)),
    ).create()
    path = f"{control.path}/compact"
    assert (await control.ask("POST", path)).status_code == 401
    answer = await control.ask("POST", path, authorization="Bearer cg_r")
    assert answer.status_code == 403
    assert "contextgauge token NAME --write" in answer.json()["detail"]
    assert (await control.ask("POST", path, authorization="Bearer cg_w")).status_code == 202
    (sent,) = await control.sent()
    assert isinstance(sent, CompactRequested)
    assert sent.requested_by == "api:wim"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1234"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
async def test_a_page_of_another_origin_changes_nothing(
    control: Control, headers: dict[str, str]
) -> None:
    answer = await control.ask("POST", f"{control.path}/compact", **headers)
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:contextgauge:problem:other-origin"
    assert await control.sent() == []


async def test_a_page_of_this_server_may(control: Control) -> None:
    answer = await control.ask(
        "POST",
        f"{control.path}/compact",
        origin="http://localhost",
        sec_fetch_site="same-origin",
    )
    assert answer.status_code == 202


class Failing(LogCommandSink):
    """A sink whose broker is away."""

    def __init__(self, error: Exception) -> None:
        super().__init__(MemoryLog(CLOCK), TOPIC)
        self._error = error

    async def send(self, entries: Any) -> None:  # noqa: ARG002 -- it fails
        raise self._error


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (RetryError("connection refused"), "Kafka does not answer"),
        (ConfigError("no topic"), "see the server's log"),
    ],
)
async def test_without_kafka_the_answer_is_503(
    records: list[Record], error: Exception, detail: str
) -> None:
    control = Control(records, commands=Failing(error))
    answer = await control.ask("POST", f"{control.path}/compact")
    assert answer.status_code == 503
    assert detail in answer.json()["detail"]
    assert control.api.reported == [("sending a command", error)]


async def test_a_local_view_has_no_control_plane(records: list[Record]) -> None:
    control = Control(records, control=None, commands=None, is_local=True)
    answer = await control.ask("GET", f"{control.path}/control")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:contextgauge:problem:no-control"


async def test_an_id_with_a_slash_is_one_id(control: Control) -> None:
    answer = await control.ask("POST", "/v1/sessions/a%2Fcompact/compact")
    assert "'a/compact'" in answer.json()["detail"]


async def test_a_body_that_does_not_come_gives_its_place_back(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "SMALL_BODIES", guard.SMALL_BODIES._replace(seconds=0.05))
    path = f"{control.path}/thresholds"
    sent: list[Message] = []
    forever = asyncio.Event()

    async def receive() -> Message:
        await forever.wait()
        raise AssertionError("nothing comes")

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"content-length", b"9"),
            (b"content-type", b"application/json"),
        ],
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
        "server": ("127.0.0.1", 80),
    }
    await control.api.app(scope, receive, send)
    assert [each.get("status") for each in sent if "status" in each] == [408]
