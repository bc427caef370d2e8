"""Costs in SQL, in `status` and in `events`: equal to what the records say."""

import json
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from contextgauge.pricing import price_of
from streams import codec
from streams.core.costs import SessionCosts, session_costs
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.commands import Command


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with transcripts, of which one is there twice, and streams without times."""
    folder = tmp_path_factory.mktemp("projects")
    files = list(sample_sessions(SimulationOptions(providers=("claude",))))
    write_folder(folder, ((each.file, each.value) for each in files))
    first = min(folder.rglob("*.jsonl"))
    (folder / "copied").mkdir()
    (folder / "copied" / first.name).write_bytes(first.read_bytes() * 2)
    return folder


def rows_of(command: Command, question: str, path: Path) -> list[dict[str, Any]]:
    done = command("query", "--format", "ndjson", question, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def costs_by_session(command: Command, path: Path) -> dict[str, SessionCosts]:
    """Return the costs that the records say, by session."""
    done = command("replay", str(path))
    assert done.returncode == 0
    records = defaultdict(list)
    for line in done.stdout.splitlines():
        record = codec.from_structured(json.loads(line))
        records[record.data.session_id].append(record)
    return {session: session_costs(own, price_of) for session, own in records.items()}


def rounded(cost: Any) -> str | None:
    return None if cost is None else f"{cost.amount.quantize(Decimal('0.000001'), ROUND_HALF_UP):f}"


@pytest.mark.extended
def test_sql_gives_the_costs_that_the_records_give(command: Command, projects: Path) -> None:
    known = costs_by_session(command, projects)
    known = {session: costs for session, costs in known.items() if costs.models}
    rows = {row["session_id"]: row for row in rows_of(command, "cost-by-session", projects)}
    assert rows.keys() == known.keys()
    assert rows_of(command, 'FROM calls WHERE "time" IS NULL', projects)
    for session, costs in known.items():
        row = rows[session]
        assert row["cost_usd"] == rounded(costs.cost)
        assert row["calls"] == sum(each.calls for each in costs.models)
        assert row["is_complete"] == bool(costs.cost and costs.cost.is_complete)
    profits = {each.boundary_id: each for costs in known.values() for each in costs.compactions}
    assert len(profits) > 2
    for row in rows_of(command, "FROM profits", projects):
        profit = profits.pop(row["id"])
        assert row["responses"] == profit.responses
        assert row["break_even_responses"] == profit.break_even
        for name in ("summary", "rewrite", "saving", "net"):
            cost, amount = getattr(profit, name), row[f"{name}_usd"]
            assert (cost is None) == (amount is None)
            assert cost is None or Decimal(amount) == cost.amount
        if profit.net is not None:
            assert row["is_net_complete"] == profit.net.is_complete
        assert row["cache_share_before"] == profit.cache_share_before
        assert row["cache_share_after"] == profit.cache_share_after
        assert row["waited_ms"] == profit.waited_ms
    assert not profits


@pytest.mark.extended
def test_sums_by_day_model_and_folder_are_those_of_the_sessions(
    command: Command, projects: Path
) -> None:
    def total(question: str) -> tuple[Decimal, int]:
        rows = rows_of(command, question, projects)
        return sum((Decimal(row["cost_usd"] or 0) for row in rows), Decimal(0)), sum(
            row["calls"] for row in rows
        )

    amount, calls = total("cost-by-session")
    for question in ("cost-by-day", "cost-by-model", "cost-by-project"):
        other, same = total(question)
        assert abs(other - amount) < Decimal("0.001")
        assert same == calls


TRANSCRIPT = [
    {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "go"}},
    *(
        {
            "type": "assistant",
            "uuid": f"a{number}",
            "timestamp": f"2026-11-20T10:00:0{number}Z",
            "requestId": f"r{number}",
            "message": {"id": f"m{number}", "role": "assistant", "model": model, "usage": usage},
        }
        for number, (model, usage) in enumerate(
            [
                ("claude-opus-4-6", {"input_tokens": 1_000, "output_tokens": 100}),
                ("my-own-model", {"input_tokens": 1_000, "output_tokens": 100}),
                (
                    "claude-opus-4-8",
                    {"input_tokens": 1_000, "output_tokens": 100, "speed": "fast"},
                ),
                (
                    "claude-opus-4-8",
                    {"input_tokens": 1_000, "output_tokens": 100, "service_tier": "priority"},
                ),
                ("claude-opus-4-6", {"input_tokens": 10, "output_tokens": 100}),
            ]
        )
    ),
]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    common = {"sessionId": "4f1c0d4e-8a2b-4c67-9d11-0a5b6c7d8e9f", "version": "2.1.0", "cwd": "/w"}
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line | common) + "\n" for line in TRANSCRIPT))
    return path


def test_an_unknown_price_is_null_and_a_tier_has_its_own(
    command: Command, transcript: Path
) -> None:
    rows = rows_of(command, "cost-by-model", transcript)
    assert {(row["model"], row["service_tier"]): row["cost_usd"] for row in rows} == {
        ("claude-opus-4-6", "standard"): "0.007550",
        ("claude-opus-4-8", "fast"): "0.015000",
        ("claude-opus-4-8", "priority"): None,
        ("my-own-model", "standard"): None,
    }
    assert {row["price_source"] for row in rows if row["cost_usd"] is None} == {"unknown price"}


@pytest.mark.extended
def test_own_prices_count_everywhere(command: Command, transcript: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[[price]]\nmodel = "my-own-model"\ninput = 2000\noutput = 0\n'
        'source = "a contract"\nchecked = 2026-11-01\n'
    )
    own = {"PRICES_FILE": str(prices)}
    done = command("query", "cost-by-model", str(transcript), **own)
    assert "my-own-model,standard,1,1000,0,0,100,2.000000,0,true,a contract,2026-11-01" in (
        done.stdout.replace("True", "true")
    )
    assert "~$2.00 · 1 call" in command("status", str(transcript), **own).stdout
    prices.write_text('[[price]]\nmodel = "x"\n')
    refused = command("status", str(transcript), **own)
    assert refused.returncode == 2
    assert "x has no source and no date" in refused.stderr


def test_status_shows_what_a_session_cost(command: Command, transcript: Path) -> None:
    shown = command("status", str(transcript)).stdout
    assert "at least ~$0.023" in shown
    assert "my-own-model     price unknown · 1 call" in shown
    costs = json.loads(command("status", "--json", str(transcript)).stdout)["costs"]
    assert costs["cost"] == {"usd": "0.022550", "basis": "derived", "is_complete": False}
    assert {"usd": None, "basis": "unknown", "is_complete": False} in [
        each["cost"] for each in costs["models"]
    ]


@pytest.mark.extended
def test_events_and_receipt_show_what_a_compaction_cost(command: Command, projects: Path) -> None:
    known = costs_by_session(command, projects)
    session = next(
        session
        for session, costs in known.items()
        if any(each.net and each.chain == "main" for each in costs.compactions)
    )
    path = next(each for each in projects.rglob("*.jsonl") if each.stem == session)
    events = command("events", str(path)).stdout
    assert " · rewrite ~$" in events
    assert " a response · net " in events
    status = command("status", str(path)).stdout
    assert "Pays after" in status
    assert "tokens · ~$" in status
