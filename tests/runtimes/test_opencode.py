"""opencode: its database's rows, and the events of `opencode run --format json`."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contextgauge.containers import Line
from contextgauge.delivery.privacy import strip_text
from schemas.records import (
    CompactBoundary,
    CompactionStart,
    ContextLimits,
    ContextReading,
    SessionInfo,
)
from streams.edge.files.database import open_database
from tests.core.given import Given, every, limits, one
from tests.runtimes.opencode_database import OpencodeDatabase

SESSION = "ses_1"


@pytest.fixture
def written(tmp_path: Path) -> Iterator[OpencodeDatabase]:
    runtime = OpencodeDatabase(tmp_path / "opencode.db")
    runtime.session(SESSION)
    yield runtime
    runtime.close()


def lines_of(written: OpencodeDatabase) -> list[dict[str, Any]]:
    with closing(open_database(str(written.path))) as content:
        return [json.loads(line) for line in content.read(content.size(), 0).splitlines()]


def derived(written: OpencodeDatabase) -> Given:
    given = Given()
    given.take(*lines_of(written))
    return given


def test_sizes_are_the_input_and_what_was_cached_of_it(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=14_406, read=1_840, write=7, output=51)
    reading = one(derived(written).records, ContextReading)
    assert (reading.used_tokens, reading.output_tokens) == (16_253, 51)
    assert (reading.input_tokens, reading.cache_read_tokens) == (14_406, 1_840)


def test_the_stream_of_a_run_has_the_same_sizes() -> None:
    tokens = {"input": 14_406, "output": 21, "cache": {"write": 0, "read": 1_840}}
    part = {"id": "prt_1", "messageID": "msg_1", "type": "step-finish", "tokens": tokens}
    event = {"type": "step_finish", "timestamp": 1_777_197_446_660, "sessionID": SESSION}
    given = Given()
    given.take({**event, "part": part}, {**event, "part": {"id": "prt_2"}})
    reading = one(given.records, ContextReading)
    assert (reading.used_tokens, reading.output_tokens, reading.model) == (16_246, 21, None)


def test_counts_that_a_provider_does_not_report_are_no_size(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=0, output=0)
    assert every(derived(written).records, ContextReading) == []


def test_a_compaction_begins_with_its_part_and_ends_with_its_summary(
    written: OpencodeDatabase,
) -> None:
    written.answer(SESSION, fresh=1_000, read=150_000)
    asked = written.message(SESSION, "user")
    written.part(SESSION, asked, "compaction", auto=True)
    written.answer(SESSION, fresh=152_000, output=900, summary=True, parentID=asked)
    written.answer(SESSION, fresh=9_000)
    records = derived(written).records
    started, boundary = one(records, CompactionStart), one(records, CompactBoundary)
    assert (boundary.trigger, boundary.attempt_id) == ("auto", started.attempt_id)
    assert (boundary.pre_tokens, boundary.duration_ms) == (151_000, 4_000)
    assert [each.used_tokens for each in every(records, ContextReading)] == [151_000, 9_000]


def test_a_compaction_that_a_person_asked_for_is_manual(written: OpencodeDatabase) -> None:
    asked = written.message(SESSION, "user")
    written.part(SESSION, asked, "compaction", auto=False)
    written.answer(SESSION, fresh=10, summary=True, parentID=asked)
    assert one(derived(written).records, CompactBoundary).trigger == "manual"


@pytest.mark.parametrize(
    ("provider", "model", "shown", "window"),
    [
        ("anthropic", "claude-sonnet-5", "claude-sonnet-5", (200_000, "catalog")),
        ("github-copilot", "claude-sonnet-5", "github-copilot:claude-sonnet-5", None),
        ("openai", "gpt-4", "openai:gpt-4", None),
    ],
)
def test_a_window_is_known_where_the_models_maker_serves_it(
    written: OpencodeDatabase,
    provider: str,
    model: str,
    shown: str,
    window: tuple[int, str] | None,
) -> None:
    written.answer(SESSION, fresh=10, provider=provider, model=model)
    records = derived(written).records
    assert one(records, ContextReading).model == shown
    assert limits(every(records, ContextLimits)[-1]) == (window or (None, "unknown"))


def test_a_subagents_session_is_a_chain_of_the_one_that_it_works_for(
    written: OpencodeDatabase,
) -> None:
    written.session("ses_2", parent=SESSION)
    written.session("ses_3", parent="ses_2")
    written.answer(SESSION, fresh=100)
    written.answer("ses_2", fresh=200)
    written.session("ses_4", parent="ses_3")
    written.answer("ses_3", fresh=300)
    written.answer("ses_4", fresh=400)
    chains = [
        (each.session_id, each.chain) for each in every(derived(written).records, ContextReading)
    ]
    assert chains == [(SESSION, "main"), (SESSION, "ses_2"), (SESSION, "ses_3"), (SESSION, "ses_4")]


def test_a_part_that_gets_another_field_later_is_the_same_line(written: OpencodeDatabase) -> None:
    asked = written.message(SESSION, "user")
    written.part(SESSION, asked, "compaction", auto=True)
    with closing(open_database(str(written.path))) as content:
        before = content.read(content.size(), 0)
        written.execute("UPDATE part SET data = json_set(data, '$.tail_start_id', 'msg_1')")
        assert content.read(content.size(), 0) == before
    with closing(open_database(str(written.path))) as content:
        assert content.read(content.size(), 0) == before


def test_a_row_that_is_no_json_hides_no_other(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=100)
    written.execute("UPDATE part SET data = '{' WHERE json_extract(data, '$.type') = 'tool'")
    nested = '{"type":"tool","x":' + "[" * 3_000 + "]" * 3_000 + "}"
    written.execute("UPDATE part SET data = ? WHERE data = '{'", nested)
    assert one(derived(written).records, ContextReading).used_tokens == 100


def test_what_a_fork_copied_is_the_other_sessions(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=100)
    written.session("ses_fork")
    written.answer("ses_fork", fresh=100, created_ms=1_793_534_400_000)
    written.answer("ses_fork", fresh=120)
    readings = every(derived(written).records, ContextReading)
    assert [(each.session_id, each.used_tokens) for each in readings] == [
        (SESSION, 100),
        ("ses_fork", 120),
    ]


def test_only_what_a_person_wrote_is_a_prompt(written: OpencodeDatabase) -> None:
    written.prompt(SESSION, "Fix the parser")
    written.prompt(SESSION, "Continue", synthetic=True)
    written.answer(SESSION, fresh=10)
    given = derived(written)
    assert one(given.records, ContextReading).messages == 2


@pytest.mark.parametrize("runtime", ["opencode", "kilo"])
def test_without_texts_a_line_is_still_of_its_session(tmp_path: Path, runtime: str) -> None:
    written = OpencodeDatabase(tmp_path / f"{runtime}.db")
    for name, parent in ((SESSION, None), ("ses_2", SESSION)):
        written.session(name, parent=parent)
        written.prompt(name, "Fix the parser")
        written.answer(name, fresh=10)
    stripped = Given()
    for number, line in enumerate(lines_of(written)):
        value = json.dumps(line).encode()
        made = strip_text(Line("file", number, value, len(value), None), b"key")
        assert isinstance(made, Line)
        assert b"parser" not in made.value
        stripped.take(json.loads(made.value))
    facts = every(stripped.records, SessionInfo)
    assert {(each.session_id, each.runtime) for each in facts} == {(SESSION, runtime)}
    assert [each.chain for each in every(stripped.records, ContextReading)] == ["main", "ses_2"]
    written.close()


def test_a_row_is_the_same_whatever_becomes_of_its_session(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=10)
    before = derived(written).records
    written.execute("UPDATE session SET directory = '/moved', version = '2.0.26'")
    assert [each.id for each in derived(written).records] == [each.id for each in before]


def test_a_sessions_facts_are_those_of_its_row(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=10)
    facts = one(derived(written).records, SessionInfo)
    assert (facts.runtime, facts.runtime_version, facts.cwd) == ("opencode", "1.18.15", "/repo")
