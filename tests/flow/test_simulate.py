"""The simulator: the same seed gives the same messages; the sample shows every kind of record."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args

import pytest

from contextgauge.containers import Line
from contextgauge.window_catalog import bundled
from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    ContextLimits,
    ContextReading,
    Kind,
    Record,
    ToolUse,
    UserTurn,
)
from streams.core.derivation.rules_config import Rules
from streams.edge.files import reading as files
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay
from streams.flow.simulator import (
    DialectName,
    SessionPlan,
    SimulatedMessage,
    SimulationOptions,
    interleave,
    plans,
    sample_sessions,
    simulate,
)
from streams.flow.simulator.random_source import RandomSource
from tests.commands import Command

Data = TypeVar("Data")


def of(records: list[Record], kind: type[Data]) -> list[Data]:
    return [record.data for record in records if isinstance(record.data, kind)]


def derive(lines: Iterable[Line]) -> list[Record]:
    (derived,) = replay(Deriver(Rules(bundled())), [list(lines)])
    assert derived.dead == []
    return derived.records


def keyed(messages: Iterable[SimulatedMessage]) -> list[Line]:
    return [
        Line("simulated", number, each.value, len(each.value), each.session_id)
        for number, each in enumerate(messages)
    ]


@pytest.fixture(scope="module")
def sample() -> list[SimulatedMessage]:
    """The sample of the default seed."""
    return list(sample_sessions(SimulationOptions()))


def test_the_seed_determines_the_messages(sample: list[SimulatedMessage]) -> None:
    assert list(sample_sessions(SimulationOptions())) == sample
    other = list(sample_sessions(SimulationOptions(seed=2)))
    assert not {each.session_id for each in other} & {each.session_id for each in sample}
    assert list(simulate(SimulationOptions(sessions=3, turns=2))) == list(
        simulate(SimulationOptions(sessions=3, turns=2))
    )


def test_the_sample_is_small_and_shows_every_kind_of_record(sample: list[SimulatedMessage]) -> None:
    assert 1_000 <= len(sample) <= 3_000
    assert sum(len(each.value) for each in sample) < 20_000_000
    records = derive(keyed(sample))
    # The rule guard checks pins of sessions whose text is kept: no runtime reports them. What is
    # measured of content is derived only where it is asked for.
    elsewhere = {"pins_checked", ToolUse.kind, UserTurn.kind}
    assert {record.kind for record in records} == set(get_args(Kind)) - elsewhere


def test_the_sample_contains_every_compaction_outcome(sample: list[SimulatedMessage]) -> None:
    records = derive(keyed(sample))
    failed = {data.outcome for data in of(records, CompactionFailed)}
    assert failed == {"failed", "blocked", "unknown"}
    boundaries = of(records, CompactBoundary)
    assert {data.trigger for data in boundaries} == {"manual", "auto", None}
    assert {data.duration_source for data in boundaries} == {"reported", "paired", "derived", None}
    assert {data.attempt_id is None for data in boundaries} == {True, False}
    assert {data.pre_tokens_source for data in boundaries} == {"reported", "last_reading"}


def test_the_sample_has_every_runtime_subagents_and_large_windows(
    sample: list[SimulatedMessage],
) -> None:
    records = derive(keyed(sample))
    models = {data.model for data in of(records, ContextReading)}
    assert {"gpt-4", "gpt-5.2", "gemini-2.5-pro", "gpt-5.2-codex"} <= models
    assert len({record.subject for record in records}) > 5
    windows = {data.window for data in of(records, ContextLimits)}
    assert {8_192, 200_000, 1_000_000} <= windows
    assert not any(
        "[1m]" in data.model for data in of(records, ContextReading) if data.model is not None
    )


def test_no_window_is_ever_exceeded(sample: list[SimulatedMessage]) -> None:
    readings = of(derive(keyed(sample)), ContextReading)
    assert all(data.window_source != "exceeded" for data in readings)
    assert max(data.used_percent or 0 for data in readings) <= 100


def test_times_ascend_and_sessions_are_interleaved(sample: list[SimulatedMessage]) -> None:
    times = [each.at_ms for each in sample]
    assert times == sorted(times)
    changes = sum(a.session_id != b.session_id for a, b in pairwise(sample))
    assert changes > 100


def test_compactions_of_the_sample_take_as_long_as_real_ones(
    sample: list[SimulatedMessage],
) -> None:
    """The summary's call is the time that the boundary reports; what cost it had is known."""
    boundaries = of(derive(keyed(sample)), CompactBoundary)
    durations = [data.duration_ms for data in boundaries if data.duration_ms is not None]
    assert durations
    assert min(durations) >= 9_000
    of_calls = [data for data in boundaries if data.duration_source == "derived"]
    assert of_calls
    for data in of_calls:
        assert data.receipt is not None
        assert data.receipt.summary_output_tokens is not None


def test_texts_begin_with_a_sentence() -> None:
    source = RandomSource("any")
    texts = [source.text(40) for _ in range(200)]
    assert {len(text) for text in texts} == {40}
    assert all(text.lstrip('"')[0].isupper() for text in texts)


def test_no_text_has_terminal_escapes(sample: list[SimulatedMessage]) -> None:
    assert not any(b"\\u001b" in each.value or b"\x1b" in each.value for each in sample)


@pytest.mark.extended
def test_a_folder_a_stream_and_keyed_messages_give_the_same_readings(
    command: Command, tmp_path: Path, sample: list[SimulatedMessage]
) -> None:
    folder = tmp_path / "out"
    assert command("simulate", "--sample", "--out", str(folder)).returncode == 0
    stream = tmp_path / "out.jsonl"
    assert command("simulate", "--sample", "--out", str(stream)).returncode == 0

    def sizes(records: list[Record]) -> Counter[tuple[str, str, int]]:
        return Counter(
            (data.session_id, data.chain, data.used_tokens) for data in of(records, ContextReading)
        )

    def read(path: Path) -> list[Record]:
        return derive(line for block in files.read(files.expand([str(path)])) for line in block)

    by_key = derive(keyed(sample))
    assert sizes(read(folder)) == sizes(by_key)
    assert {record.id for record in read(folder)} == {record.id for record in by_key}
    assert sizes(read(stream)) == sizes(by_key)


def test_standard_output_equals_the_file(command: Command, tmp_path: Path) -> None:
    stream = tmp_path / "out.jsonl"
    options = ("--sessions", "2", "--messages", "60", "--seed", "9")
    command("simulate", *options, "--out", str(stream))
    result = command("simulate", *options)
    assert result.stdout == stream.read_text(encoding="utf-8")
    assert len(result.stdout.splitlines()) == 60
    assert all(
        "session_id" in body or "sessionId" in body or body["type"] in _UNNAMED
        for body in map(json.loads, result.stdout.splitlines())
    )


_UNNAMED = {"file-history-snapshot", "summary"}


@pytest.mark.parametrize("provider", ["claude", "openai", "gemini", "codex"])
def test_one_provider_can_be_selected(provider: str) -> None:
    messages = list(simulate(SimulationOptions(sessions=3, turns=3, providers=(provider,))))
    runtimes = {_runtime(json.loads(each.value)) for each in messages} - {None}
    assert runtimes == {provider}


def _runtime(body: dict[str, Any]) -> str | None:
    if "payload" in body:
        return "codex"
    if "usageMetadata" in body or "usage_metadata" in body:
        return "gemini"
    if str(body.get("object")).startswith(("chat.completion", "response")):
        return "openai"
    return "claude" if body.get("type") == "assistant" else None


def test_the_requested_number_of_messages_and_concurrent_sessions_is_simulated() -> None:
    messages = list(simulate(SimulationOptions(sessions=4, turns=2), 2_000))
    assert len(messages) == 2_000
    assert len({each.session_id for each in messages}) > 4
    ends = {each.session_id: each.at_ms for each in messages}
    begins: dict[str, int] = {}
    for each in messages:
        begins.setdefault(each.session_id, each.at_ms)
    seventh_begin = sorted(begins.values())[6]
    assert sum(begins[name] <= seventh_begin <= ends[name] for name in begins) <= 5


def test_without_a_number_of_messages_each_session_is_complete() -> None:
    messages = list(simulate(SimulationOptions(sessions=4, turns=2)))
    assert len({each.session_id for each in messages}) == 4


def test_plans_are_endless_and_all_different() -> None:
    some = list(islice(plans(SimulationOptions()), 50))
    assert len({plan.session_id for plan in some}) == 50
    assert {plan.dialect for plan in some} == set(get_args(DialectName))


def _plan(dialect: DialectName, **more: object) -> SessionPlan:
    settings: dict[str, Any] = {
        "seed": "s", "session_id": "one", "start_ms": 1_767_225_600_000, "model": "gpt-4o",
        "window": 128_000, "turns": 30, "growth_tokens": 900, **more,
    }  # fmt: skip
    return SessionPlan(dialect=dialect, **settings)


def test_repeats_and_resumes_give_the_same_bytes_again() -> None:
    plain = [each.value for each in interleave([_plan("claude-stream")])]
    assert len(set(plain)) == len(plain)
    doubled = Counter(each.value for each in interleave([_plan("claude-stream", repeats=0.5)]))
    assert set(doubled.values()) == {1, 2}
    resumed = [each.value for each in interleave([_plan("claude-stream", resume_each=10)])]
    again = Counter(resumed)
    assert sum(count > 1 for count in again.values()) >= 40


def test_repeats_change_no_record() -> None:
    plain = derive(keyed(interleave([_plan("openai-chat")])))
    seen: dict[str, list[str]] = defaultdict(list)
    for each in interleave([_plan("openai-chat", resume_each=7)]):
        seen[each.session_id].append(each.value.decode())
    assert len(seen["one"]) > len(set(seen["one"]))
    resumed = derive(keyed(interleave([_plan("openai-chat", resume_each=7)])))
    assert [record.id for record in resumed] == [record.id for record in plain]


def test_without_timestamps_no_record_has_a_time() -> None:
    records = derive(keyed(interleave([_plan("gemini", has_timestamps=False)])))
    assert {record.time_ms for record in records} == {None}


def test_a_folder_that_is_not_empty_is_rejected(command: Command, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    result = command("simulate", "--sample", "--out", str(tmp_path))
    assert result.returncode == 2
    assert "not empty" in result.stderr


@pytest.mark.extended
def test_a_file_that_is_not_empty_is_not_overwritten(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.touch()
    assert command("simulate", "--sample", "--out", str(file)).returncode == 0
    written = file.read_bytes()
    assert written
    again = command("simulate", "--sample", "--seed", "2", "--out", str(file))
    assert again.returncode == 2
    assert "talk.jsonl is not empty: name a new file" in again.stderr
    assert file.read_bytes() == written


@pytest.mark.extended
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--publish", "--out", "x"), "exclude each other"),
        (("--start", "tomorrow"), "not a time"),
        (("--recent", "--duration", "1"), "--rate or --messages"),
        (("--out", "folder", "--rate", "5"), "one stream"),
        (("--out", "no/such/folder/x.jsonl"), "No such file"),
    ],
)
def test_contradictory_options_are_rejected(
    command: Command, options: tuple[str, ...], message: str
) -> None:
    result = command("simulate", *options)
    assert result.returncode == 2
    assert message in result.stderr


def test_start_and_recent_set_the_simulated_time(command: Command) -> None:
    started = command("simulate", "--sample", "--provider", "codex", "--start", "2030-05-01T10:00")
    first = json.loads(started.stdout.splitlines()[0])
    assert first["timestamp"].startswith("2030-05-01T10:0")
    recent = command("simulate", "--sample", "--provider", "codex", "--recent")
    last = json.loads(recent.stdout.splitlines()[-1])
    assert last["timestamp"][:4] >= "2026"
    assert not last["timestamp"].startswith("2026-01-01")


def test_rate_and_duration_limit_the_messages(command: Command) -> None:
    result = command("simulate", "--rate", "40", "--duration", "0.5", "--sessions", "2")
    assert 10 <= len(result.stdout.splitlines()) <= 30


@pytest.mark.extended
@pytest.mark.parametrize("option", ["--sessions", "--messages", "--turns"])
def test_the_sample_takes_no_option_that_it_would_ignore(command: Command, option: str) -> None:
    done = command("simulate", "--sample", option, "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--sample has sessions of its own: leave out --sessions" in done.stderr


def test_a_wrong_choice_is_named_in_plain_words(command: Command) -> None:
    for arguments in (("simulate", "--provider", "foo"), ("dead", "list", "--reason", "foo")):
        done = command(*arguments)
        assert done.returncode == 2
        assert f"Invalid value for '{arguments[-2]}': 'foo' is not one of" in done.stderr
