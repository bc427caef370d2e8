"""The command line: help, exit codes, and one clear line for what went wrong."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from streams.cli.app import app
from streams.cli.lazy import LazyCommand
from tests.commands import Command
from tests.patience import PATIENCE_S


def _all_commands() -> dict[str, TyperCommand | TyperGroup]:
    commands: dict[str, TyperCommand | TyperGroup] = {}

    def walk(name: str, item: object) -> None:
        if isinstance(item, LazyCommand):
            item = item.load()
        assert isinstance(item, TyperCommand | TyperGroup)
        commands[name] = item
        for child_name, child in getattr(item, "commands", {}).items():
            walk(f"{name} {child_name}".strip(), child)

    walk("", typer.main.get_command(app))
    return commands


COMMANDS = _all_commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    item = COMMANDS[name]
    assert item.help
    silent = [parameter.name for parameter in item.params if not getattr(parameter, "help", True)]
    assert not silent


@pytest.mark.extended
def test_help_is_printed(command: Command) -> None:
    done = command("--help")
    assert done.returncode == 0
    assert "derive" in done.stdout


def test_commands_are_grouped_by_purpose(command: Command) -> None:
    groups = re.findall(r"^(\w+):$", command("--help").stdout, re.MULTILINE)
    assert groups == ["Options", "Look", "Collect", "Compact", "Run", "Maintain"]


@pytest.mark.extended
def test_lines_in_a_pipe_are_not_filled_up_with_spaces(command: Command) -> None:
    lines = command("doctor").stdout.splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) < 500


def test_version(command: Command) -> None:
    assert command("--version").stdout.strip() == f"contextgauge {version('contextgauge')}"


def test_a_wrong_setting_is_exit_2_and_one_line(command: Command) -> None:
    done = command("topics", "list", PARTITIONS="0")
    assert done.returncode == 2
    assert done.stderr.startswith("contextgauge: CONTEXTGAUGE_PARTITIONS='0'")
    assert len(done.stderr.strip().splitlines()) == 1


def test_characters_that_the_encoding_lacks_are_replaced() -> None:
    script = (
        "import sys\n"
        "from streams.cli import app\n"
        "app.__version__ = '\\u2588'\n"
        "sys.argv = ['contextgauge', '--version']\n"
        "app.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "contextgauge #", "")


def test_an_unknown_command_is_exit_2(command: Command) -> None:
    assert command("gauge").returncode == 2


def test_an_unavailable_broker_is_exit_75_with_the_remedy(command: Command) -> None:
    done = command("topics", "create")
    assert done.returncode == 75
    assert "127.0.0.1:1: no broker answers\n" in done.stderr
    assert "contextgauge stack up" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_host_is_reported(command: Command) -> None:
    done = command("topics", "list", BOOTSTRAP_SERVERS="kafka.invalid:9092")
    assert done.returncode == 75
    assert "kafka.invalid:9092: no broker answers; no such host: kafka.invalid" in done.stderr


def test_a_server_of_another_protocol_is_not_taken_for_redis(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        thread = threading.Thread(target=_answer_as_http, args=(other,), daemon=True)
        thread.start()
        done = command("sessions", REDIS_URL=f"redis://127.0.0.1:{other.getsockname()[1]}/0")
    assert done.returncode == 2
    assert "the server there is not Redis" in done.stderr
    assert "CONTEXTGAUGE_REDIS_URL" in done.stderr


def _answer_as_http(other: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = other.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.extended
def test_topics_are_created_once_and_listed(command: Command, kafka: str, prefix: str) -> None:
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": prefix, "PARTITIONS": "3"}
    missing = command("topics", "list", **settings)
    assert missing.returncode == 1
    assert "missing" in missing.stdout
    created = command("topics", "create", **settings)
    assert (created.returncode, "created 5 of 5" in created.stderr) == (0, True)
    assert "created 0 of 5" in command("topics", "create", **settings).stderr
    command.environment["COLUMNS"] = "80"
    assert f"{prefix}agent.messages.dead " in command("topics", "list", **settings).stdout
    listed = command("topics", "list", "--json", **settings)
    assert listed.returncode == 0
    assert {item["name"]: item["partitions"] for item in json.loads(listed.stdout)} == {
        f"{prefix}{name}": 3
        for name in (
            "agent.messages",
            "context.events",
            "context.state",
            "agent.messages.dead",
            "context.commands",
        )
    }


@pytest.mark.extended
def test_a_derive_worker_without_topics_stops_with_the_remedy(
    command: Command, kafka: str, prefix: str
) -> None:
    done = command("derive", BOOTSTRAP_SERVERS=kafka, TOPIC_PREFIX=prefix)
    assert done.returncode == 2
    assert "contextgauge topics create" in done.stderr.splitlines()[-1]


@pytest.mark.extended
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_serves_metrics_and_stops_gracefully(
    command: Command, kafka: str, prefix: str, ending: signal.Signals
) -> None:
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix}
    assert command("topics", "create", PARTITIONS="1", **settings).returncode == 0
    worker = command.start("derive", LOG_FORMAT="json", **settings)
    assert worker.stderr is not None
    seen = []
    for line in worker.stderr:
        seen.append(json.loads(line))
        if seen[-1]["event"] == "partition is running":
            break
    with urllib.request.urlopen(seen[0]["metrics"], timeout=PATIENCE_S) as answer:
        assert b"contextgauge_worker_partitions" in answer.read()
    worker.send_signal(ending)
    _, rest = worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 0
    assert [json.loads(line)["event"] for line in rest.splitlines()][-1] == "stopped"


@pytest.mark.extended
def test_a_worker_waits_for_an_unavailable_broker(command: Command) -> None:
    worker = command.start("derive", LOG_FORMAT="json")
    assert worker.stderr is not None
    tries = (json.loads(line) for line in worker.stderr)
    pause_s = next(line["pause_s"] for line in tries if line["event"] == "trying again")
    assert pause_s > 0
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 0


def test_a_taken_metrics_port_is_reported(command: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = command("derive", METRICS_PORT=str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert re.search(r"port \d+ is taken: name another with CONTEXTGAUGE_METRICS_PORT", done.stderr)


def test_a_metrics_address_of_another_machine_is_reported(command: Command) -> None:
    done = command("derive", METRICS_HOST="192.0.2.1")  # for documentation: nobody has it
    assert done.returncode == 2
    assert "CONTEXTGAUGE_METRICS_HOST=192.0.2.1 is not an address of this machine" in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_not_an_internal_error(unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "streams", "--version"],
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == ("contextgauge: cannot write the output: No space left on device\n")
