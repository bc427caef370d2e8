"""Commands of the control plane, over twins in memory: what is sent, and what is shown."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError, StopError
from schemas.commands import (
    CancelRequested,
    CommandView,
    CompactRequested,
    ControlView,
    TextDeleted,
    ThresholdsSet,
)
from schemas.records import Record
from streams import wiring
from streams.cli.compact import session as compacting
from streams.cli.control_plane import connection
from streams.edge.commands import LogCommandSink
from tests.cli.plane_kit import DECISION, DONE, TOPIC, Plane
from tests.doubles.deployment import DeploymentNotes
from tests.serve.kit import sample_records
from tests.serve.text_kit import OneConversation, kept_conversation


@pytest.fixture(scope="module")
def all_records() -> list[Record]:
    return sample_records()


@pytest.fixture
def plane(all_records: list[Record], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plane:
    made = Plane(all_records)
    monkeypatch.setenv("CONTEXTGAUGE_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("CONTEXTGAUGE_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr(wiring, "redis_views", lambda _settings: made.views)
    monkeypatch.setattr(wiring, "deployment_store", lambda _settings: DeploymentNotes())
    monkeypatch.setattr(wiring, "control_store", lambda _settings: made.control)
    monkeypatch.setattr(wiring, "command_sink", lambda _settings: made.log.sink())
    nothing = OneConversation("", kept_conversation())
    monkeypatch.setattr(wiring, "redis_conversations", lambda _settings: nothing)
    monkeypatch.setattr(compacting, "_LOOK_S", 0.01)
    monkeypatch.setattr(compacting, "_PATIENCE_MS", 50)
    monkeypatch.setattr(connection, "requested_by", lambda: "cli:ada")
    monkeypatch.chdir(tmp_path)
    return made


def test_a_compaction_is_requested(plane: Plane) -> None:
    result = plane.run("compact", plane.session[:12], "--instructions", "keep the API", "--urgent")
    assert result.exit_code == 0, result.output
    (sent,) = plane.log.entries()
    assert isinstance(sent, CompactRequested)
    assert (sent.session_id, sent.trigger) == (plane.session, "manual")
    assert (sent.instructions, sent.urgent) == ("keep the API", True)
    assert sent.requested_by.startswith("cli")
    assert f"command {sent.command_id} of session {plane.session}" in result.stderr
    assert "contextgauge why" in result.stderr


def test_waiting_shows_the_outcome_and_then_its_figures(plane: Plane) -> None:
    plane.log.answer = DONE
    result = plane.run("compact", plane.session, "--wait")
    assert result.exit_code == 0, result.output
    figures = [
        "Removed: 41 messages",
        "Size: 171K → ~52K tokens of the whole request; the next response reports it",
        "Saved: ~119K tokens",
    ]
    assert result.stdout.splitlines() == figures
    assert "Compacting conversation..." in result.stderr
    assert result.output.splitlines()[-4:] == [
        "Compacted, 28.4 s after the request, by service",
        *figures,
    ]


def test_waiting_shows_the_summary_where_the_conversation_is_kept(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DONE.receipt is not None
    plane.log.answer = replace(DONE, receipt={**DONE.receipt, "number": 1})
    store = OneConversation(plane.session, kept_conversation())
    monkeypatch.setattr(wiring, "redis_conversations", lambda _settings: store)
    shown = plane.run("compact", plane.session, "--wait").stdout.splitlines()
    assert shown[3:5] == ['Summary: "So far."', f"+{'-' * 48}+"]
    assert "| Active Messages       4                        |" in shown
    assert "| Saved  [#############.......]  69%             |" in shown
    assert shown[-1] == "✓ Compaction complete (compact)"
    plane.log.answer = replace(DONE, receipt={**DONE.receipt, "number": 2})
    late = plane.run("compact", plane.session, "--wait")
    assert "has not stored it yet" in late.stderr
    assert "Summary" not in late.stdout


@pytest.mark.parametrize("outcome", ["failed", "refused", "cancelled", "nothing_to_compact"])
def test_another_outcome_is_an_error_with_the_reason(plane: Plane, outcome: str) -> None:
    plane.log.answer = replace(DONE, outcome=outcome, reason="it is too large", receipt=None)  # type: ignore[arg-type]
    result = plane.run("compact", plane.session, "--wait")
    assert result.exit_code == 1
    assert ": it is too large, 28.4 s after the request" in result.stderr
    assert result.stdout == ""


def test_the_command_as_json(plane: Plane) -> None:
    plane.log.answer = DONE
    result = plane.run("compact", plane.session, "--wait", "--json")
    assert json.loads(result.stdout)["outcome"] == "completed"
    result = plane.run("compact", plane.session, "--json")
    assert set(json.loads(result.stdout)) == {"session_id", "command_id"}


def test_waiting_ends_where_no_control_worker_runs(plane: Plane) -> None:
    plane.control.seen_ms = None
    result = plane.run("compact", plane.session, "--wait")
    assert isinstance(result.exception, StopError)
    assert "no control worker of the compaction service has reported yet" in str(result.exception)
    assert "CONTEXTGAUGE_COMPACTION_FILE" in str(result.exception)
    plane.control.seen_ms = SystemClock().now_ms() - 90_000
    result = plane.run("compact", plane.session)
    assert result.exit_code == 0
    assert "No control worker of the compaction service has reported for 1 min 30" in result.stderr
    assert "the request waits until then" in result.stderr


def test_ctrl_c_says_how_to_cancel(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(_: str) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(plane.control, "control_view", interrupted)
    # Where the tests run in the background, the shell had Ctrl-C ignored.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = plane.run("compact", plane.session, "--wait")
    finally:
        signal.signal(signal.SIGINT, former)
    assert result.exit_code == 130
    assert [type(each) for each in plane.log.entries()] == [CompactRequested]
    assert f"contextgauge compact {plane.session} --cancel" in result.stderr


def test_what_is_under_way_is_cancelled(plane: Plane) -> None:
    result = plane.run("compact", plane.session, "--cancel")
    assert isinstance(result.exception, StopError)
    assert str(result.exception) == f"no compaction of {plane.session} is under way"
    command = replace(DONE, state="called", outcome=None, attempt=2)
    plane.control.views[plane.session] = ControlView(
        session_id=plane.session, commands=(DONE, command)
    )
    result = plane.run("compact", plane.session, "--cancel")
    assert result.exit_code == 0, result.output
    (sent,) = plane.log.entries()
    assert isinstance(sent, CancelRequested)
    assert sent.command_id == command.command_id
    assert "waiting for the summary by anthropic:claude-haiku-4-5, attempt 2" in result.stderr


def test_what_waits_for_a_session_that_the_views_have_lost_is_cancelled(plane: Plane) -> None:
    waiting = replace(DONE, state="requested", outcome=None)
    plane.control.views["lost"] = ControlView(session_id="lost", commands=(waiting,))
    result = plane.run("compact", "lost", "--cancel")
    assert result.exit_code == 0, result.output
    (sent,) = plane.log.entries("lost")
    assert isinstance(sent, CancelRequested)
    assert sent.command_id == waiting.command_id
    assert isinstance(plane.run("compact", "unknown", "--cancel").exception, StopError)


def test_what_is_neither_a_file_nor_a_session_is_an_error(plane: Plane) -> None:
    result = plane.run("compact", "nothing-like-it")
    assert isinstance(result.exception, StopError)
    assert "no session 'nothing-like-it'" in str(result.exception)
    assert plane.log.entries() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["talk.json", "--wait"], "talk.json is a file: --wait is for a session"),
        (["SESSION", "--window", "9000"], "SESSION is not a file here: --window is for a file"),
        (["SESSION", "--profile", "default"], "--profile is for a file"),
        (["SESSION", "--cancel", "--wait"], "--cancel goes with no other option"),
    ],
)
def test_options_of_the_other_form_are_refused(
    plane: Plane, arguments: list[str], message: str
) -> None:
    Path("talk.json").write_text("[]")
    result = plane.run("compact", *arguments)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)


def test_why_lists_decisions_and_commands_the_newest_first(plane: Plane) -> None:
    plane.control.views[plane.session] = ControlView(
        session_id=plane.session, commands=(DONE,), decisions=(DECISION,)
    )
    result = plane.run("why", plane.session)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    assert lines[0].split() == ["When", "What", "Size", "Why"]
    assert "compacted" in lines[1]
    assert "171K → ~52K" in lines[1]
    assert "171K of 200K (85%)" in lines[2]
    assert lines[3].split() == ["compact_at", "170K"]
    assert "The size reached compact_at" in result.stdout
    assert "28.4 s after the request" in result.stdout
    result = plane.run("why", plane.session, "--json")
    assert json.loads(result.stdout)["decisions"][0]["reason"] == "above_threshold"


def test_why_shows_which_compaction_had_no_effect(plane: Plane) -> None:
    undone = replace(DECISION, id="d-2", fired=False, reason="no_effect", threshold_tokens=None)
    plane.control.views[plane.session] = ControlView(
        session_id=plane.session, commands=(DONE,), decisions=(undone,)
    )
    shown = " ".join(plane.run("why", plane.session).stdout.split())
    assert "without effect 171K → ~52K" in shown
    assert "undone 171K of 200K (85%)" in shown
    assert "which is undone" in shown


def test_why_needs_no_kafka(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("CONTEXTGAUGE_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(wiring, "redis_views", lambda _settings: plane.views)
    monkeypatch.setattr(wiring, "deployment_store", lambda _settings: DeploymentNotes())
    monkeypatch.setattr(wiring, "control_store", lambda _settings: plane.control)
    assert plane.run("why", plane.session).exit_code == 0
    result = plane.run("compact", plane.session)
    assert "CONTEXTGAUGE_BOOTSTRAP_SERVERS" in str(result.exception)


def test_why_says_where_nothing_is_known(plane: Plane) -> None:
    result = plane.run("why", plane.session)
    assert result.exit_code == 0
    assert f"Nothing is known about {plane.session}: no decision" in result.stderr
    assert "has reported" not in result.stderr


@pytest.mark.parametrize("silent_ms", [None, 90_000])
@pytest.mark.parametrize("commands", [(), (DONE,)])
def test_a_request_that_no_worker_has_read_is_not_denied(
    plane: Plane, silent_ms: int | None, commands: tuple[CommandView, ...]
) -> None:
    plane.control.seen_ms = None if silent_ms is None else SystemClock().now_ms() - silent_ms
    plane.control.views[plane.session] = ControlView(session_id=plane.session, commands=commands)
    assert plane.run("compact", plane.session).exit_code == 0
    result = plane.run("why", plane.session)
    assert "nothing was requested" not in result.stderr
    assert "No control worker of the compaction service has reported" in result.stderr
    assert "requests that none has read wait in the log, and are not shown" in result.stderr
    result = plane.run("compact", plane.session, "--cancel")
    assert result.exit_code == 0, result.output
    assert "whatever was requested of" in result.stderr
    assert "No control worker of the compaction service has reported" in result.stderr
    _, cancelled = plane.log.entries()
    assert isinstance(cancelled, CancelRequested)
    assert (cancelled.session_id, cancelled.command_id) == (plane.session, None)
    result = plane.run("thresholds", plane.session)
    assert "thresholds that none has read wait in the log" in result.stderr


def test_thresholds_are_set_shown_and_removed(plane: Plane) -> None:
    result = plane.run("thresholds", plane.session[:12], "--automatic", "--compact-at", "80%")
    assert result.exit_code == 0, result.output
    assert "automatic, compact at 80%" in result.stderr
    plane.run("thresholds", "--agent", "reviewer", "--no-automatic")
    plane.run("thresholds", "--project", "app", "--compact-to", "60000")
    plane.run("thresholds", plane.session, "--remove")
    entries = [each for each in plane.log.entries() if isinstance(each, ThresholdsSet)]
    by = entries[0].requested_by
    assert entries == [
        ThresholdsSet(
            scope="session",
            name=plane.session,
            requested_by=by,
            automatic=True,
            compact_at="80%",
        ),
        ThresholdsSet(scope="agent", name="reviewer", requested_by=by, automatic=False),
        ThresholdsSet(scope="project", name="app", requested_by=by, compact_to="60000"),
        ThresholdsSet(scope="session", name=plane.session, requested_by=by),
    ]
    result = plane.run("thresholds", plane.session)
    assert "nothing set: the service's file holds" in result.stdout
    plane.control.views[plane.session] = ControlView(
        session_id=plane.session, thresholds=entries[0]
    )
    result = plane.run("thresholds", plane.session)
    assert "automatic, compact at 80% (set by cli" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of SESSION, --agent, --project"),
        (["--agent", "a", "--project", "p"], "give one of"),
        (["a-session", "--project", "p"], "give one of"),
        (["--agent", "a"], "set --compact-at"),
        (["--agent", "a", "--compact-at", "lots"], "compact_at 'lots' is not a size"),
        (["--agent", "a", "--remove", "--automatic"], "--remove goes with no other"),
    ],
)
def test_wrong_thresholds_are_refused(plane: Plane, arguments: list[str], message: str) -> None:
    result = plane.run("thresholds", *arguments)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
    assert plane.log.entries() == []


def test_a_text_is_deleted_after_a_confirmation(plane: Plane) -> None:
    result = plane.run("forget", plane.session[:12], text="n\n")
    assert result.exit_code == 1
    assert plane.log.entries() == []
    result = plane.run("forget", plane.session[:12], text="y\n")
    assert result.exit_code == 0, result.output
    assert "agent.messages keeps its messages for 30 days" in result.stderr
    assert plane.run("forget", plane.session, "--yes").exit_code == 0
    assert [type(each) for each in plane.log.entries()] == [TextDeleted, TextDeleted]


def test_a_text_without_figures_can_be_deleted_by_its_whole_id(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = OneConversation("gone-from-the-views", kept_conversation())
    monkeypatch.setattr(wiring, "redis_conversations", lambda _settings: store)
    plane.control.seen_ms = None
    result = plane.run("forget", store.session_id, "--yes")
    assert result.exit_code == 0, result.output
    assert [each.session_id for each in plane.log.entries(store.session_id)] == [store.session_id]  # type: ignore[union-attr]
    assert "contextgauge conversations" in result.stderr
    assert "contextgauge control" not in result.stderr
    assert isinstance(plane.run("forget", "gone-from", "--yes").exception, StopError)


def test_without_kafka_nothing_is_shown_as_requested(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away(LogCommandSink):
        async def send(self, entries: object) -> None:  # noqa: ARG002 -- it fails
            raise RetryError("Kafka is away")

    monkeypatch.setattr(wiring, "command_sink", lambda _settings: Away(plane.log, TOPIC))
    result = plane.run("compact", plane.session)
    assert isinstance(result.exception, RetryError)
    assert "Requested" not in result.output
