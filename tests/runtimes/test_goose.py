"""goose: its database's ledger of calls, and the files of lines that older versions wrote."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.records import (
    CompactBoundary,
    ContextLimits,
    ContextReading,
    Record,
    SessionInfo,
)
from streams.edge.files.database import open_database, titles_in
from tests.core.given import Given, every, limits, one
from tests.runtimes.goose_database import BEGIN_S, GooseDatabase
from tests.runtimes.runtimes_kit import records_of, sizes, without_texts

SESSION = "20261101_1"
NAMED = f"{SESSION}-{BEGIN_S}"


@pytest.fixture
def written(tmp_path: Path) -> Iterator[GooseDatabase]:
    runtime = GooseDatabase(tmp_path / "sessions" / "sessions.db")
    yield runtime
    runtime.close()


def lines_of(written: GooseDatabase) -> list[dict[str, Any]]:
    with closing(open_database(str(written.path))) as content:
        return [json.loads(line) for line in content.read(content.size(), 0).splitlines()]


def derived(written: GooseDatabase) -> list[Record]:
    given = Given()
    given.take(*lines_of(written))
    return given.records


def test_sizes_are_the_input_which_includes_what_was_cached(written: GooseDatabase) -> None:
    written.session(SESSION)
    written.call(SESSION, 16_253, 51, read=1_840, write=7)
    written.call(SESSION, 20_000)
    first, second = every(derived(written), ContextReading)
    assert (first.used_tokens, first.output_tokens) == (16_253, 51)
    assert (first.input_tokens, first.cache_read_tokens) == (14_406, 1_840)
    assert second.used_tokens == 20_000


def test_a_compaction_is_the_call_that_made_it(written: GooseDatabase) -> None:
    written.session(SESSION)
    written.call(SESSION, 150_000)
    written.call(SESSION, 152_000, 900, compacts=True)
    written.call(SESSION, 9_000)
    records = derived(written)
    boundary = one(records, CompactBoundary)
    assert (boundary.pre_tokens, boundary.trigger) == (150_000, None)
    assert boundary.receipt is not None
    cost = boundary.receipt
    assert (cost.summary_input_tokens, cost.summary_output_tokens) == (152_000, 900)
    assert [each.used_tokens for each in every(records, ContextReading)] == [150_000, 9_000]


def test_sums_and_calls_without_counts_are_no_sizes(written: GooseDatabase) -> None:
    written.session(SESSION)
    written.call(SESSION, 900_000, source="carried_forward")
    written.call(SESSION, None, None)
    written.call(SESSION, 0, 0)
    assert derived(written) == []


@pytest.mark.parametrize(
    ("provider", "limit", "shown", "window"),
    [
        ("anthropic", None, "claude-sonnet-5", (200_000, "catalog")),
        ("databricks", None, "databricks:claude-sonnet-5", (None, "unknown")),
        ("databricks", 128_000, "databricks:claude-sonnet-5", (128_000, "runtime")),
        (None, None, "claude-sonnet-5", (200_000, "catalog")),
    ],
)
def test_a_window_is_that_of_gooses_settings_or_of_a_maker(
    written: GooseDatabase,
    provider: str | None,
    limit: int | None,
    shown: str,
    window: tuple[int | None, str],
) -> None:
    written.session(SESSION, provider=provider, limit=limit)
    written.call(SESSION, 1_000)
    records = derived(written)
    assert one(records, ContextReading).model == shown
    assert limits(every(records, ContextLimits)[-1]) == window


def test_a_window_of_another_model_is_none_of_this_one(written: GooseDatabase) -> None:
    written.session(SESSION, model="gpt-4", provider="openai", limit=8_000)
    written.call(SESSION, 1_000, model="o9")
    assert limits(every(derived(written), ContextLimits)[-1]) == (None, "unknown")


def test_a_subagents_session_is_a_chain_of_the_one_that_it_works_for(
    written: GooseDatabase,
) -> None:
    for name, parent in ((SESSION, None), ("b", SESSION), ("c", "b"), ("d", "gone")):
        written.session(name, parent=parent)
        written.call(name, 1_000)
    chains = [(each.session_id, each.chain) for each in every(derived(written), ContextReading)]
    assert chains == [
        (NAMED, "main"),
        (NAMED, f"b-{BEGIN_S}"),
        (NAMED, f"c-{BEGIN_S}"),
        (f"d-{BEGIN_S}", "main"),
    ]


def test_a_row_is_the_same_whatever_becomes_of_its_session(written: GooseDatabase) -> None:
    written.session(SESSION)
    written.call(SESSION, 1_000)
    before = derived(written)
    written.execute("UPDATE sessions SET provider_name = 'openai', model_config_json = '{'")
    after = derived(written)
    assert [each.id for each in after] == [each.id for each in before]


def test_sessions_have_the_names_of_the_lines(written: GooseDatabase) -> None:
    written.session(SESSION)
    written.session("empty")
    written.session("b", parent=SESSION)
    written.session("c", parent="gone")
    for name in (SESSION, "c"):
        written.call(name, 1_000)
    assert titles_in(str(written.path)) == {NAMED: "Parser", f"c-{BEGIN_S}": "Parser"}
    written.execute("DELETE FROM sessions WHERE id = 'c'")
    facts = one(derived(written), SessionInfo)
    assert (facts.session_id, facts.runtime, facts.cwd) == (NAMED, "goose", "/repo")


HEAD = {
    "working_dir": "/repo",
    "description": "Parser",
    "schedule_id": None,
    "message_count": 2,
    "total_tokens": 16_304,
    "input_tokens": 16_253,
    "output_tokens": 51,
    "accumulated_total_tokens": 90_000,
    "accumulated_input_tokens": 80_000,
    "accumulated_output_tokens": 10_000,
}
WORDS = "Fix the parser"
CAPTURE: dict[str, list[Any]] = {
    ".local/share/goose/sessions/20250910_101112.jsonl": [
        HEAD,
        {
            "role": "user",
            "created": BEGIN_S,
            "content": [{"type": "text", "text": WORDS}],
        },
        {
            "role": "assistant",
            "created": BEGIN_S + 1,
            "content": [{"type": "toolRequest", "id": "t1", "toolCall": {"status": "success"}}],
        },
        {
            "role": "user",
            "created": BEGIN_S + 2,
            "content": [{"type": "toolResponse", "id": "t1", "toolResult": {"value": []}}],
        },
    ]
}


def test_a_file_of_lines_has_the_size_of_its_last_call(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert sizes(records) == [(16_253, None)]
    facts = one(records, SessionInfo)
    assert (facts.session_id, facts.runtime) == ("20250910_101112", "goose")
    assert sizes(without_texts(tmp_path, CAPTURE, WORDS)) == [(16_253, None)]


def test_a_file_of_lines_without_counts_has_no_size(tmp_path: Path) -> None:
    (path,) = CAPTURE
    records = records_of(tmp_path, {path: [HEAD | {"input_tokens": None}]})
    assert one(records, SessionInfo).cwd == "/repo"
    assert sizes(records) == []
