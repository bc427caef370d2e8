"""`contextgauge doctor` as a command: exit codes, options, what is shown. Needs no service."""

import json
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from streams.cli import doctor as doctor_command
from streams.cli.app import app
from streams.cli.doctor import show
from streams.flow import doctor as flow
from streams.flow.doctor import CHECKS, SEVERITIES, Facts
from tests.commands import Command
from tests.doctor.cases import AWAY, EXPECTED, HEALTHY, facts, redis, topic

WARNING = redis({"aof_enabled": "0"})
ERROR = facts(store=AWAY)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command over given facts instead of services."""

    def run(given_facts: Facts, *options: str) -> Any:
        async def gather(*_: object) -> Facts:
            return given_facts

        monkeypatch.setattr(flow, "gather", gather)
        monkeypatch.setattr(doctor_command, "doctor_expected", lambda _: EXPECTED)
        return CliRunner().invoke(app, ["doctor", *options])

    return run


@pytest.mark.parametrize(
    ("given_facts", "code", "strict_code"),
    [(HEALTHY, 0, 0), (WARNING, 0, 1), (ERROR, 1, 1)],
)
def test_exit_code_is_1_for_errors_and_with_strict_for_warnings(
    run: Any, given_facts: Facts, code: int, strict_code: int
) -> None:
    assert run(given_facts).exit_code == code
    assert run(given_facts, "--strict").exit_code == strict_code


def test_json_document_counts_all_findings_and_has_those_that_are_shown(run: Any) -> None:
    document = json.loads(run(WARNING, "--json").stdout)
    assert list(document) == ["format", "contextgauge", "at_ms", "counts", "settings", "checks"]
    assert document["format"] == 1
    assert list(document["counts"]) == list(SEVERITIES)
    assert sum(document["counts"].values()) == len(document["checks"]) == len(CHECKS)
    problems = json.loads(run(WARNING, "--json", "--problems").stdout)
    assert problems["counts"] == document["counts"]
    (warning,) = problems["checks"]
    assert list(warning) == ["id", "severity", "subject", "found", "why", "remedy", "figures"]
    assert (warning["id"], warning["severity"]) == ("redis.persistence", "warning")
    assert warning["subject"] is None


def test_no_service_is_an_error_and_a_wrong_setting_another(command: Command) -> None:
    command.environment = {"COLUMNS": "200"}
    done = command("doctor", REDIS_URL="redis://user:hidden-word@127.0.0.1:1/0")
    assert done.returncode == 1
    assert "2 errors" in done.stdout
    assert "contextgauge stack up" in done.stdout
    assert "hidden-word" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    wrong = command("doctor", PARTITIONS="none")
    assert wrong.returncode == 2
    assert "CONTEXTGAUGE_PARTITIONS" in wrong.stderr


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_screen(columns: int) -> None:
    console = Console(width=columns, file=StringIO())
    given_facts = topic("context.state", **{"cleanup.policy": "delete"})
    findings = flow.judge(given_facts, EXPECTED)
    show(console, findings, Counter(item.severity for item in findings), {"CONTEXTGAUGE_X": "y"})
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # a StringIO
    assert max(map(len, lines)) <= columns
    assert any("cleanup" in line for line in lines)


def test_same_finding_of_several_topics_is_one_row() -> None:
    console = Console(width=200, file=StringIO())
    findings = flow.judge(facts(cluster=AWAY), EXPECTED)
    show(console, findings, Counter(item.severity for item in findings), {})
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert text.count(AWAY.text) < 5
    assert "present and 10 more" in text
