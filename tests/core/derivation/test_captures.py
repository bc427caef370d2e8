"""Whole sessions in the shapes of real captures: the figures counted in their lines.

The counting here is independent of the derivation. Sessions of the project's own are made by the
simulator; the real ones, other projects' public test data, have figures counted by hand.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from contextgauge.normalise.signals import InputMessage
from contextgauge.windows import Catalog
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
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver
from tests import captures
from tests.core.given import every, kinds, one

RULES = Rules(Catalog.from_rows([]), default_window=200_000)
"""No catalog: the counted warnings are those of a window of 200 000."""

REAL = {
    "258c7280-ae70-4798-800f-63464d01a85d": (152, 11, (166_759, 167_094, 33_960)),
    "slopometry": (187, 13, (154_980, 155_317, 34_667)),
    "manual-compact": (1, None, (15_660, 15_808, None)),
    "subagent": (2, None, None),
}
"""Of each real transcript: readings, warnings, and the context around its only boundary."""


class Counted(NamedTuple):
    """What counting finds on a transcript's main chain."""

    readings: int
    around: tuple[int | None, int, int | None] | None
    """The last size before the boundary, the boundary's own, and the first after it."""


def derived(lines: Iterable[bytes], hint: str = "hint", again: int = 1) -> list[Record]:
    """The records of lines, each taken `again` times; there must be no dead letter."""
    deriver = Deriver(RULES)
    records: list[Record] = []
    for value in lines:
        for _ in range(again):
            taken = deriver.derive(InputMessage(value, hint))
            assert taken.dead is None, taken.dead
            records.extend(taken.records)
    return records


def main_chain(records: list[Record]) -> list[Record]:
    return [record for record in records if record.subject == "main"]


def counted(lines: Iterable[bytes]) -> Counted:
    """Count a transcript's responses, by the ids of their messages, and look around a boundary."""
    sizes: dict[str, int] = {}
    pre_tokens: int | None = None
    before: int | None = None
    after: int | None = None
    for body in map(json.loads, lines):
        if body.get("isSidechain"):
            continue
        if body.get("subtype") == "compact_boundary":
            before = next(reversed(sizes.values()), None)
            pre_tokens = body["compactMetadata"]["preTokens"]
        elif body["type"] == "assistant" and body["message"].get("id") not in {None, *sizes}:
            size = size_of(body["message"]["usage"])
            sizes[body["message"]["id"]] = size
            after = size if pre_tokens is not None and after is None else after
    return Counted(len(sizes), None if pre_tokens is None else (before, pre_tokens, after))


def size_of(usage: dict[str, object]) -> int:
    """The context's size: that of the last call, where one response made several."""
    calls = usage.get("iterations")
    if isinstance(calls, list) and calls:
        usage = calls[-1]
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(int(str(usage[name])) for name in names)


def of_records(records: list[Record]) -> Counted:
    """What the derivation says of the same."""
    main = main_chain(records)
    readings = every(main, ContextReading)
    boundaries = every(main, CompactBoundary)
    if not boundaries:
        return Counted(len(readings), None)
    bound = next(index for index, record in enumerate(main) if record.kind == "compact_boundary")
    sizes = [
        [reading.used_tokens for reading in every(part, ContextReading)]
        for part in (main[:bound], main[bound:])
    ]
    pre_tokens = boundaries[0].pre_tokens
    assert pre_tokens is not None
    return Counted(
        len(readings), (next(reversed(sizes[0]), None), pre_tokens, next(iter(sizes[1]), None))
    )


@pytest.mark.parametrize("name", captures.TRANSCRIPTS)
def test_a_transcript_gives_the_figures_counted_in_its_lines(name: str) -> None:
    lines = captures.TRANSCRIPTS[name]()
    assert of_records(derived(lines)) == counted(lines)


@pytest.mark.shared
def test_real_captures_give_the_figures_counted_by_hand(shared: Path) -> None:
    for name, (readings, warnings, around) in REAL.items():
        lines = (shared / f"fixtures/claude-code/{name}.jsonl").read_bytes().splitlines()
        records = derived(lines)
        assert of_records(records) == counted(lines) == (readings, around), name
        counts = Counter(kinds(main_chain(records)))
        assert warnings is None or counts["context_warning"] == warnings
        check_every_file(lines)
    check_rollout((shared / "fixtures/codex/crud.jsonl").read_bytes().splitlines())


def test_an_automatic_compaction_in_a_transcript() -> None:
    lines = captures.TRANSCRIPTS["auto_compaction"]()
    records = main_chain(derived(lines))
    assert Counter(kinds(records)).keys() == {
        *("session_info", "context_limits", "context_reading", "context_warning", "context_edit"),
        *("compact_boundary", "compaction_summary", "compaction_complete"),
    }
    counts = counted(lines)
    assert counts.around is not None
    _, pre_tokens, after = counts.around
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.pre_tokens, bound.pre_tokens_source) == (
        "auto", pre_tokens, "reported"
    )  # fmt: skip
    assert (bound.attempt_id, bound.number) == (None, 1)
    complete = one(records, CompactionComplete)
    assert after is not None
    assert (complete.tokens_before, complete.tokens_after) == (pre_tokens, after)
    assert complete.tokens_saved == pre_tokens - after
    assert one(records, CompactionSummary).boundary_id == complete.boundary_id
    assert not every(records, CompactionStart)
    assert one(records, SessionInfo).runtime == "claude-code"


def test_a_compactions_own_call_gives_no_record_and_other_subagents_theirs() -> None:
    files = captures.auto_compaction()
    agents = {Path(name).stem.removeprefix("agent-") for name in files if "subagents" in name}
    own = {agent for agent in agents if agent.startswith("acompact")}
    assert (len(own), len(agents) > 1) == (1, True)
    records = derived([line for lines in files.values() for line in lines], captures.SESSION)
    assert {record.subject for record in records} == {"main", *(agents - own)}
    assert {record.data.session_id for record in records} == {captures.SESSION}
    for agent in agents - own:
        of_agent = [record for record in records if record.subject == agent]
        assert every(of_agent, ContextReading)
        assert not every(of_agent, CompactBoundary)


def test_a_manual_compaction_without_a_later_response() -> None:
    records = derived(captures.manual_compaction())
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.pre_tokens) == ("manual", 15_808)
    assert kinds(records).index("context_reset") < kinds(records).index("context_reading")
    assert one(records, ContextReset).reason == "clear"
    assert one(records, CompactionSummary).summary
    assert not every(records, CompactionComplete)


def test_a_side_chain_without_an_agent_id() -> None:
    records = derived(captures.side_chain())
    assert {record.subject for record in records} == {"main", "sidechain"}
    sizes = [reading.used_tokens for reading in every(main_chain(records), ContextReading)]
    assert sizes == [15_600, 16_029]
    assert len(every(records, ContextReading)) == 3


def check_rollout(lines: list[bytes]) -> None:
    """Five responses, whose counts are repeated."""
    records = derived(lines)
    readings = every(records, ContextReading)
    assert len(readings) == 5
    assert sum(b'"last_token_usage"' in value for value in lines) == 9
    assert {entry.response_id for entry in readings} == {None}
    assert {entry.window_source for entry in readings} == {"runtime"}
    assert readings[0].previous_output_tokens is None
    assert all(entry.previous_output_tokens for entry in readings[1:])
    assert {entry.runtime for entry in every(records, SessionInfo)} == {"codex"}
    check_every_file(lines)


def test_a_codex_rollout() -> None:
    check_rollout(captures.rollout())


def check_every_file(lines: list[bytes]) -> None:
    """What is true of the records of every file."""
    records = derived(lines)
    assert len({record.id for record in records}) == len(records) > 0
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    assert derived(lines, again=2) == records
    assert derived([*lines, *lines]) == records
    for record in records:
        assert codec.from_structured(codec.loads(codec.to_structured(record))) == record
    for reading in every(records, ContextReading):
        parts = (reading.input_tokens, reading.cache_creation_tokens, reading.cache_read_tokens)
        assert reading.used_tokens == sum(part or 0 for part in parts) > 0
    for warning in every(records, ContextWarning):
        assert warning.used_tokens * 100 >= warning.context_window * warning.threshold_percent


NOT_SIMULATED = {
    *("slug", "permissionMode", "todos", "sourceToolAssistantUUID", "toolUseID"),
    *("hookInfos", "hasOutput", "preventedContinuation", "stopReason", "level", "isMeta"),
    *("cause", "error", "payload.git", "payload.source", "payload.status"),
    *("payload.local_images", "payload.text_elements", "payload.collaboration_mode"),
    *("payload.sandbox_policy", "payload.truncation_policy"),
}
"""Fields of real lines that no rule looks at."""


def shapes(lines: Iterable[bytes]) -> dict[tuple[str, str | None], set[str]]:
    """The fields of each kind of line."""
    fields: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for body in map(json.loads, lines):
        inner = {name: body.get(name) or {} for name in ("message", "payload", "compactMetadata")}
        kind = (body["type"], inner["payload"].get("type") or body.get("subtype"))
        fields[kind] |= body.keys()
        fields[kind] |= {f"{name}.{field}" for name, part in inner.items() for field in part}
    return fields


@pytest.mark.shared
def test_the_simulator_makes_every_kind_of_line_that_real_captures_have(shared: Path) -> None:
    files = [*captures.auto_compaction().values(), captures.several_lines(), captures.rollout()]
    own = shapes([line for lines in files for line in lines])
    paths = (shared / "fixtures").rglob("*.jsonl")
    for kind, fields in shapes(
        [line for path in paths for line in path.read_bytes().splitlines()]
    ).items():
        assert fields - own[kind] <= NOT_SIMULATED, kind


@pytest.mark.parametrize("name", captures.TRANSCRIPTS)
def test_each_file_holds_what_every_file_does(name: str) -> None:
    check_every_file(captures.TRANSCRIPTS[name]())
