"""What `status` and `sessions` show of a session that began with another one's history (R30)."""

import json
from pathlib import Path

import pytest

from streams.cli.sessions import sessions, status
from tests.core.given import AUTO, Body, assistant, boundary, line, user
from tests.edge.follower_kit import add

ORIGIN = {"sessionId": "origin", "messageUuid": "u"}
OWN = {"trigger": "manual", "pre_tokens": 61_000}


def _fork(path: Path, *own: Body) -> str:
    """Write a branch: a compaction and an answer that were copied, then lines of its own."""
    copied = [assistant("a", read=160_000), boundary(AUTO), user(), assistant("b", read=30_000)]
    lines = [line(each, number, forkedFrom=ORIGIN) for number, each in enumerate(copied)]
    lines += [line(each, 100 + number) for number, each in enumerate(own)]
    add(path, *map(json.dumps, lines))
    return str(path)


def test_an_inherited_compaction_is_not_shown_as_the_forks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _fork(tmp_path / "fork.jsonl", assistant("c", read=31_000))
    status(path)
    shown = capsys.readouterr().out
    assert "3 since the last compaction or reset, copied ones included, 1 its own" in shown
    assert "Compactions  1 inherited" in shown
    assert "#1 auto, inherited" in shown
    assert "Context compacted" not in shown
    sessions([path])
    assert " 3, 1 own " in capsys.readouterr().out


def test_the_receipt_is_that_of_the_forks_own_latest_compaction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = (assistant("c", read=60_000), boundary(OWN), assistant("d", read=9_000))
    status(_fork(tmp_path / "fork.jsonl", *own))
    shown = capsys.readouterr().out
    assert "Compactions  1 manual, 1 inherited" in shown
    assert "Context compacted #2 · 52,000 tokens freed" in shown
