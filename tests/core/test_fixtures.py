"""Real transcripts: the figures that were counted in them by hand.

The files are other projects' public test data. They stay where they are, beside the project; where
they are absent, these tests skip.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionStart,
    CompactionSummary,
    ContextReading,
    ContextReset,
    ContextWarning,
    Record,
    SessionInfo,
)
from streams import codec
from streams.core.derivation.rules import Rules
from streams.core.derivation.windows import Catalog
from streams.flow.derive.deriver import Funnel, Intake
from tests.core.given import every, kinds, one

FOLDER = Path(__file__).parents[3] / "shared" / "fixtures"
RULES = Rules(Catalog.from_rows([]), default_window=200_000)
"""No catalog: the counted warnings are those of a window of 200 000."""

AUTO = "258c7280-ae70-4798-800f-63464d01a85d"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the real transcripts (../shared/fixtures) are not on this machine"
)


def lines(name: str) -> Iterator[bytes]:
    yield from (FOLDER / name).read_bytes().splitlines()


def derived(*names: str, hint: str, again: int = 1) -> list[Record]:
    """The records of files of one session, each line taken `again` times; nothing may be dead."""
    funnel = Funnel(RULES)
    records: list[Record] = []
    for name in names:
        for value in lines(name):
            for _ in range(again):
                taken = funnel.take(Intake(value, hint))
                assert taken.dead is None, (name, taken.dead)
                records.extend(taken.records)
    return records


def auto() -> list[Record]:
    """The session of the automatic compaction, with its subagents after it."""
    folder = f"claude-code/{AUTO}"
    inner = sorted((FOLDER / folder / "subagents").glob("*.jsonl"))
    names = [f"{folder}.jsonl", *(f"{folder}/subagents/{path.name}" for path in inner)]
    return derived(*names, hint=AUTO)


def main_chain(records: list[Record]) -> list[Record]:
    return [record for record in records if record.subject == "main"]


def around(records: list[Record]) -> tuple[int, int]:
    """The last size measured before the only boundary, and the first after it."""
    bound = next(at for at, record in enumerate(records) if record.kind == "compact_boundary")
    before = every(records[:bound], ContextReading)[-1]
    after = every(records[bound:], ContextReading)[0]
    return before.used_tokens, after.used_tokens


def test_a_session_with_an_automatic_compaction() -> None:
    records = main_chain(auto())
    assert Counter(kinds(records)) == {
        "session_info": 1,
        "context_limits": 1,
        "context_reading": 152,
        "context_warning": 11,
        "compact_boundary": 1,
        "compaction_summary": 1,
        "compaction_complete": 1,
    }
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.pre_tokens, bound.pre_tokens_source) == (
        "auto", 167_094, "reported"
    )  # fmt: skip
    assert (bound.attempt_id, bound.duration_ms, bound.number) == (None, None, 1)
    assert around(records) == (166_759, 33_960)
    complete = one(records, CompactionComplete)
    assert (complete.tokens_before, complete.tokens_after) == (167_094, 33_960)
    assert complete.tokens_saved == 133_134
    info = one(records, SessionInfo)
    assert (info.runtime, info.runtime_version) == ("claude-code", "2.1.39")


def test_a_compactions_own_call_emits_nothing_and_the_other_subagent_its_own() -> None:
    records = auto()
    assert {record.subject for record in records} == {"main", "a881341"}
    of_agent = [record for record in records if record.subject == "a881341"]
    assert every(of_agent, ContextReading)
    assert not every(of_agent, CompactBoundary)
    assert {record.data.session_id for record in records} == {AUTO}


def test_a_session_whose_responses_span_several_lines() -> None:
    records = main_chain(derived("claude-code/slopometry.jsonl", hint="slopometry"))
    counted = Counter(kinds(records))
    assert (counted["context_reading"], counted["context_warning"]) == (187, 13)
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.pre_tokens) == ("auto", 155_317)
    assert around(records) == (154_980, 34_667)
    assert (
        one(records, CompactionSummary).boundary_id == one(records, CompactionComplete).boundary_id
    )
    assert not every(records, CompactionStart)


def test_a_manual_compaction_without_a_later_response() -> None:
    records = derived("claude-code/manual-compact.jsonl", hint="manual-compact")
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.pre_tokens) == ("manual", 15_808)
    assert kinds(records).index("context_reset") < kinds(records).index("context_reading")
    assert one(records, ContextReset).reason == "clear"
    assert one(records, CompactionSummary).summary
    assert not every(records, CompactionComplete)


def test_a_side_chain_without_an_agent_id() -> None:
    records = derived("claude-code/subagent.jsonl", hint="subagent")
    assert {record.subject for record in records} == {"main", "sidechain"}
    assert len(every(main_chain(records), ContextReading)) == 2
    assert len(every(records, ContextReading)) == 3


def test_a_codex_rollout() -> None:
    records = derived("codex/crud.jsonl", hint="crud")
    readings = every(records, ContextReading)
    assert len(readings) == 5
    assert sum(b'"last_token_usage"' in value for value in lines("codex/crud.jsonl")) == 9
    assert {told.response_id for told in readings} == {None}
    assert {told.window_source for told in readings} == {"runtime"}
    assert readings[0].previous_output_tokens is None
    assert all(told.previous_output_tokens for told in readings[1:])
    assert {told.runtime for told in every(records, SessionInfo)} == {"codex"}


@pytest.mark.parametrize(
    "name",
    [
        f"claude-code/{AUTO}.jsonl",
        "claude-code/slopometry.jsonl",
        "claude-code/manual-compact.jsonl",
        "claude-code/subagent.jsonl",
        "codex/crud.jsonl",
    ],
)
def test_each_file_holds_what_every_file_does(name: str) -> None:
    records = derived(name, hint="hint")
    assert len({record.id for record in records}) == len(records) > 0
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    assert derived(name, hint="hint", again=2) == records
    assert derived(name, name, hint="hint") == records
    for record in records:
        assert codec.from_structured(codec.loads(codec.to_structured(record))) == record
    for told in every(records, ContextReading):
        parts = (told.input_tokens, told.cache_creation_tokens, told.cache_read_tokens)
        assert told.used_tokens == sum(part or 0 for part in parts) > 0
    for warning in every(records, ContextWarning):
        assert warning.used_tokens * 100 >= warning.context_window * warning.threshold_percent
