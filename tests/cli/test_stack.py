"""`contextgauge stack`, with a folder of the test's own instead of the project's."""

import json
import re
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contextgauge import user_folders
from contextgauge.errors import ConfigError
from contextgauge.settings.local_stack import Running
from streams import wiring
from streams.cli.app import app
from streams.cli.exits import by_signal
from streams.edge.local_stack import processes, stack
from streams.edge.local_stack.stack import LocalStack, jars_folder
from streams.edge.signals import Handler, on_ending_signals


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stack; no services are set, so that it stands in for them."""
    own = tmp_path / "state" / "stack"
    monkeypatch.setattr(user_folders, "_PROJECT", str(tmp_path))
    monkeypatch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(own.parent))
    return own


def test_nothing_runs_at_first(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["stack", "status"])
    assert shown.exit_code == 1
    assert shown.stdout.count("not running") == 2
    assert "nothing was running" in CliRunner().invoke(app, ["stack", "down"]).stderr
    chosen = wiring.settings()
    assert (chosen.bootstrap_servers, chosen.redis_url) == (None, None)
    assert not folder.exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "create"],
        ["topics", "list"],
        ["publish", "FILE"],
        ["simulate", "--sample", "--publish"],
        ["derive"],
        ["project"],
    ],
)
def test_without_a_stack_and_without_an_address_no_kafka_is_guessed(
    arguments: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text('{"type":"user","sessionId":"s","message":{"content":"private"}}\n')
    done = CliRunner().invoke(app, [str(file) if each == "FILE" else each for each in arguments])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception) == (
        "no Kafka is named: start one with `contextgauge stack up`, "
        "or set CONTEXTGAUGE_BOOTSTRAP_SERVERS"
    )


@pytest.mark.usefixtures("folder")
def test_without_redis_sessions_are_those_of_this_machine() -> None:
    done = CliRunner().invoke(app, ["sessions"])
    nothing = "No sessions yet: they appear when a runtime writes a transcript"
    assert (done.exit_code, nothing in done.output) == (0, True)


@pytest.mark.usefixtures("folder")
def test_no_redis_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGAUGE_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    done = CliRunner().invoke(app, ["project"])
    assert isinstance(done.exception, ConfigError)
    assert "no Redis is named" in str(done.exception)
    assert str(done.exception).endswith("or set CONTEXTGAUGE_REDIS_URL")


@pytest.mark.usefixtures("folder")
def test_the_doctor_calls_services_without_an_address_not_configured() -> None:
    shown = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"}).stdout
    assert shown.count("`contextgauge stack up`") == 2
    assert "> Start one with `contextgauge stack up`, or set CONTEXTGAUGE_REDIS_URL" in shown
    assert "Kafka is not configured" in shown
    assert "Redis is not configured" in shown
    assert not re.search("does not answer|does not report|correct CONTEXTGAUGE|is named", shown)


@pytest.mark.usefixtures("folder")
def test_commands_without_services_need_no_address(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    run = CliRunner()
    assert run.invoke(app, ["simulate", "--sample", "--out", str(file)]).exit_code == 0
    assert run.invoke(app, ["replay", str(file)]).exit_code == 0


@pytest.mark.extended
@pytest.mark.usefixtures("stack_parts")
def test_up_status_and_down(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner()
    try:
        assert run.invoke(app, ["stack", "up", "--heap-mib", "256"]).exit_code == 0
        status = run.invoke(app, ["stack", "status", "--json"])
        assert status.exit_code == 0
        document = json.loads(status.stdout)
        chosen = wiring.settings()
        assert chosen.bootstrap_servers == document["kafka"]["address"]
        assert wiring.redis_url(chosen) == document["redis"]["address"]

        monkeypatch.setenv("CONTEXTGAUGE_BOOTSTRAP_SERVERS", "mine:9092")
        chosen = wiring.settings()
        assert chosen.bootstrap_servers == "mine:9092"
        assert wiring.redis_url(chosen) == document["redis"]["address"]

        again = run.invoke(app, ["stack", "up"])
        assert again.exit_code == 0
        assert str(document["kafka"]["pid"]) in again.stdout
    finally:
        down = run.invoke(app, ["stack", "down", "--delete"])
    assert "stopped kafka and redis" in down.stderr
    assert LocalStack(folder).services() == {}
    assert not folder.exists()


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize(
    "moment", ["as soon as a process runs", "while it comes up", "and once more"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_service_starts_leaves_no_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str, number: signal.Signals
) -> None:
    program = folder.parent / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncase $* in *format*) exit 0;; esac\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    jars_folder().mkdir(parents=True)
    started: list[Running] = []
    start = processes.start

    def interrupted(*arguments: Any, **options: Any) -> Running:
        started.append(start(*arguments, **options))
        if moment == "as soon as a process runs":
            signal.raise_signal(number)
        return started[-1]

    def wait(*_: object) -> bool:
        signal.raise_signal(number)
        return True

    def ignoring(handler: Handler) -> AbstractContextManager[None]:
        signal.raise_signal(signal.SIGTERM)
        return on_ending_signals(handler)

    monkeypatch.setattr(processes, "start", interrupted)
    monkeypatch.setattr(stack, "_wait", wait)
    if moment == "and once more":
        monkeypatch.setattr(stack, "on_ending_signals", ignoring)
    monkeypatch.setattr(stack, "_program", lambda name, *_: str(program.with_name(name)))
    former = signal.getsignal(number)
    try:
        assert CliRunner().invoke(app, ["stack", "up"]).exit_code == by_signal(number)
        assert [process.alive() for process in started] == [False]
    finally:
        for process in started:
            processes.stop(process, 0.0)
    assert signal.getsignal(number) == former
    assert LocalStack(folder).services() == {}
