"""R32: sessions of pi, and of oh-my-pi and OpenClaw, which write the same entries."""

import json
from pathlib import Path

import pytest

from contextgauge.containers import Scout
from contextgauge.errors import ConfigError
from contextgauge.normalise.pi.entries import usage_of
from contextgauge.normalise.runtimes import line_of
from contextgauge.normalise.signals import Usage
from contextgauge.normalise.user_words import words_of
from schemas.records import (
    CompactBoundary,
    CompactionSummary,
    ContextLimits,
    ContextReading,
    ContextReset,
    SessionInfo,
)
from streams.edge.files import reading as files
from streams.edge.files.names import is_no_transcript, name_of
from tests.core.given import Given, every, limits, one
from tests.edge.follower_kit import Bench
from tests.runtimes.pi_captures import (
    ORIGIN,
    SESSION,
    SESSION_ENTRIES,
    TITLE,
    Entry,
    answered,
    asked,
    compaction,
    conversation,
    entry,
    head,
    message,
    sizes,
    taken,
    usage,
)
from tests.runtimes.runtimes_kit import write


def test_r32_a_session_has_sizes_a_boundary_and_its_own_cost() -> None:
    records = taken(*SESSION_ENTRIES)
    facts = one(records, SessionInfo)
    assert (facts.runtime, facts.runtime_version, facts.cwd) == ("pi", None, "/repo")
    assert sizes(records) == [175_004, 31_003]
    first, second = every(records, ContextReading)
    assert (first.cache_read_tokens, first.cache_creation_tokens) == (170_000, 5_001)
    assert (first.response_id, first.model, first.messages) == ("msg_1", "claude-opus-5", 2)
    assert second.messages == 1
    boundary = one(records, CompactBoundary)
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (175_024, "reported")
    assert (boundary.post_tokens, boundary.trigger, boundary.duration_ms) == (None, None, None)
    assert boundary.metadata == {
        "tokensBefore": 175_024,
        "firstKeptEntryId": "a2",
        "fromHook": False,
    }
    assert one(records, CompactionSummary).summary == "What was done."


def test_r32_what_a_summary_cost_is_the_compactions_own() -> None:
    (signal,) = line_of(SESSION_ENTRIES[5]).read(SESSION_ENTRIES[5])
    receipt = signal.receipt  # type: ignore[union-attr]  # a boundary
    assert receipt is not None
    assert (receipt.summary_input_tokens, receipt.summary_cache_read_tokens) == (170_900, 170_000)
    assert receipt.summary_output_tokens == 700


def test_r32_no_window_is_assumed_for_a_model_that_is_not_listed() -> None:
    records = taken(head(), answered("a1", None, 11, usage(90_000), model="a-local-model"))
    assert limits(one(records, ContextLimits)) == (None, "unknown")
    assert one(records, ContextReading).window is None


def test_r32_the_field_case_of_a_pi_session(shared: Path) -> None:
    lines = (shared / "field" / "pi_session.jsonl").read_text().splitlines()
    records = taken(*map(json.loads, lines))
    assert sizes(records) == [175_004, 31_003]
    assert one(records, CompactBoundary).pre_tokens == 175_004


def test_r32_an_answer_that_failed_is_no_reading() -> None:
    failed = answered("a1", None, 11, usage(0, output=0), stopReason="error")
    assert not every(taken(head(), failed), ContextReading)
    assert not every(taken(head(), message("a1", None, 11, role="assistant")), ContextReading)


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        (usage(100, 40, 3), Usage(100, 3, 40)),
        ({"input": 100, "cacheRead": 40, "output": 5, "totalTokens": 105}, Usage(60, None, 40)),
        ({"input": 10, "cacheRead": 40, "output": 5, "totalTokens": 15}, Usage(0, None, 40)),
        ({"input": 100, "cacheRead": 40, "output": 5}, Usage(100, None, 40)),
        ({"output": 5}, None),
        # Kimi's cached part is rounded up to blocks of 64 (a public OpenClaw session has -144).
        ({"input": -16, "cacheRead": 64, "output": 5, "totalTokens": 53}, Usage(0, None, 48)),
    ],
)
def test_r07_cached_tokens_that_a_total_shows_to_be_inside_count_once(
    counts: Entry, wanted: Usage | None
) -> None:
    assert usage_of(counts) == wanted


def test_r32_sessions_from_before_entries_were_a_tree_are_read() -> None:
    entries = [
        {name: value for name, value in each.items() if name not in ("parentId", "version")}
        for each in SESSION_ENTRIES
    ]
    for each in entries[1:]:
        del each["id"]
    entries[0] |= {"provider": "anthropic", "modelId": "claude-opus-5"}
    entries[5]["firstKeptEntryIndex"] = 2
    records = taken(*entries)
    assert sizes(records) == [175_004, 31_003]
    assert one(records, CompactBoundary).metadata["firstKeptEntryIndex"] == 2
    # What is kept cannot be found: entries have no ids.
    assert conversation(*entries) == ["user: What was done.", "assistant: Answer a4."]


@pytest.mark.parametrize(
    "parent",
    [ORIGIN, f"/r/.pi/agent/sessions/--r--/2026-08-19T16-00-00-000Z_{ORIGIN}.jsonl",
     f"C:\\u\\sessions\\{ORIGIN}.jsonl"],
)  # fmt: skip
def test_r30_a_fork_begins_with_its_origins_entries(parent: str) -> None:
    records = taken(
        head(parentSession=parent),
        answered("a1", None, 5, usage(90_000)),
        compaction("c1", "a1", 6),
        answered("a2", "c1", 11, usage(40_000)),
    )
    assert one(records, SessionInfo).forked_from == ORIGIN
    copied, own = every(records, ContextReading)
    assert (copied.inherited, own.inherited) == (True, None)
    assert one(records, CompactBoundary).inherited is True


def test_r32_going_back_to_an_earlier_entry_leaves_the_size_unknown() -> None:
    given = Given()
    given.take(head(), answered("a1", None, 11, usage(90_000)), hint=SESSION)
    left = entry("branch_summary", "b1", "a1", 12, fromId="a9", summary="It did not work.")
    assert one(given.take(left, hint=SESSION), ContextReset).reason == "rollback"
    assert given.chain(session_id=SESSION).used is None


def test_r32_what_the_model_does_not_see_is_not_counted() -> None:
    records = taken(
        head(),
        entry("custom_message", "x1", None, 10, customType="plan", content="Plan.", display=True),
        message("b1", "x1", 11, role="bashExecution", command="ls", output="a"),
        message("b2", "b1", 11, role="bashExecution", command="ls", excludeFromContext=True),
        answered("a1", "b2", 12, usage(9_000)),
    )
    assert one(records, ContextReading).messages == 3


def test_a_model_that_is_chosen_is_the_main_chains() -> None:
    changed = entry("model_change", "m2", "a1", 12, provider="openai", modelId="gpt-4")
    given = Given()
    given.take(head(), answered("a1", None, 11, usage(90)), changed, hint=SESSION)
    assert given.chain(session_id=SESSION).model == "gpt-4"
    given.take(entry("model_change", "m3", "m2", 13), hint=SESSION)
    assert given.chain(session_id=SESSION).model == "gpt-4"


@pytest.mark.parametrize(
    ("entries", "runtime"),
    [
        ([TITLE, head()], "oh-my-pi"),
        ([head(title="Tests", titleSource="auto")], "oh-my-pi"),
        ([head(), entry("session_init", "i1", None, 10, systemPrompt="", task="")], "oh-my-pi"),
        ([head(), entry("model_change", "m1", None, 10, model="openai/gpt-4")], "oh-my-pi"),
        ([head(), entry("custom", "x", None, 10, customType="model-snapshot")], "openclaw"),
        ([head(), answered("a", None, 10, usage(0), provider="openclaw", model="m")], "openclaw"),
        ([head(), entry("custom", "x", None, 10, customType="plan")], "pi"),
    ],
)
def test_r32_who_writes_a_session_is_known_by_what_only_it_writes(
    entries: list[Entry], runtime: str
) -> None:
    assert every(taken(*entries), SessionInfo)[-1].runtime == runtime


def test_r32_openclaws_own_messages_are_no_responses() -> None:
    mirror = answered("a2", "a1", 12, usage(0), provider="openclaw", model="delivery-mirror")
    records = taken(head(), answered("a1", None, 11, usage(90)), mirror)
    assert {each.model for each in every(records, ContextLimits)} == {"claude-opus-5"}
    assert every(records, SessionInfo)[-1].runtime == "openclaw"


def test_r32_a_model_of_oh_my_pi_is_named_after_its_provider() -> None:
    given = Given()
    given.take(head(), entry("model_change", "m", None, 1, model="a/b/c"), hint=SESSION)
    given.take(entry("model_change", "n", "m", 1, model="a/small", role="smol"), hint=SESSION)
    assert given.chain(session_id=SESSION).model == "a:b/c"


def test_r27_a_cleared_session_of_oh_my_pi_is_a_reset() -> None:
    cleared = entry("reset_boundary", "r1", "a1", 12)
    records = taken(head(), answered("a1", None, 11, usage(90_000)), cleared)
    assert one(records, ContextReset).reason == "clear"
    assert conversation(head(), asked("a1", None, 11, "go"), entry("reset_boundary", "r", "a1", 12),
                        asked("a2", "r", 13, "on")) == ["user: on"]  # fmt: skip


def test_a_compaction_of_oh_my_pi_reports_the_size_after_it() -> None:
    records = taken(head(), compaction("c1", None, 12, tokensAfter=30_000, method="summary"))
    assert one(records, CompactBoundary).post_tokens == 30_000


def test_r01_a_head_after_a_title_names_the_session() -> None:
    scout = Scout()
    assert not scout.look(TITLE)
    assert scout.look(head())
    assert scout.container(None, None).hint == SESSION


def test_a_title_is_what_a_person_wrote() -> None:
    titles = [line_of(each).prompt for each in SESSION_ENTRIES]
    prompts = [read and read(each) for read, each in zip(titles, SESSION_ENTRIES, strict=True)]
    assert [each for each in prompts if each] == [SESSION_ENTRIES[2]["message"]["content"]]


@pytest.mark.parametrize("text", ["make the tests pass", ""])
def test_r31_what_openclaw_writes_before_a_persons_words_is_not_theirs(text: str) -> None:
    known = 'Sender (untrusted metadata):\n```json\n{\n  "label": "tui"\n}\n```\n\n'
    info = 'Conversation info (untrusted metadata):\n```json\n{\n  "id": "1"\n}\n```\n\n'
    for before in (known, info + known, f"{known}[Sun 2026-03-08 22:03 GMT+9] "):
        assert [each.of_user for each in words_of([before + text])] == [text]
    quoted = f"Look: {text}\n{known}"
    assert words_of([quoted])[0].of_user == quoted


def test_r01_entries_without_a_head_are_of_the_session_that_a_runtimes_path_names(
    tmp_path: Path,
) -> None:
    """As of a session whose beginning was lost, of which there is a public one."""
    path = f".openclaw/agents/main/sessions/{SESSION}.jsonl"
    write(tmp_path, {path: SESSION_ENTRIES[3:], "other.jsonl": SESSION_ENTRIES[3:]})
    (own,) = files.read(files.expand([str(tmp_path / path)]))
    assert {line.session_hint for line in own} == {SESSION}
    (other,) = files.read(files.expand([str(tmp_path / "other.jsonl")]))
    assert {line.session_hint for line in other} == {None}


def test_a_session_that_openclaw_reset_is_read_as_one_of_its_own(tmp_path: Path) -> None:
    """As in a public folder, where another session has the name of the file that was renamed."""
    path = f".openclaw/agents/main/sessions/{SESSION}.jsonl"
    ending = "2026-04-09T02-00-35.114Z"
    other = [{**SESSION_ENTRIES[0], "id": ORIGIN}, *SESSION_ENTRIES[3:]]
    write(tmp_path, {path: SESSION_ENTRIES})
    following = Bench([str(tmp_path)])
    assert len(following.lines()) == len(SESSION_ENTRIES)
    (tmp_path / path).rename(tmp_path / f"{path}.reset.{ending}")
    write(tmp_path, {path: other, f"{path}.deleted.{ending}": other})
    following.clock.at_s += 60
    assert len(following.lines()) == len(other)
    endings = {each.name[len(str(tmp_path / path)) :] for each in files.expand([str(tmp_path)])}
    assert endings == {"", f".reset.{ending}"}
    assert name_of(f"/h/{path}.reset.{ending}.zst").session == SESSION
    read = {
        line.session_hint for block in files.read(files.expand([str(tmp_path)])) for line in block
    }
    assert read == {SESSION, ORIGIN}


def test_openclaws_traces_are_refused_with_what_to_read_instead(tmp_path: Path) -> None:
    trace = {"traceSchema": "openclaw-trajectory", "type": "model.completed", "sessionId": SESSION}
    path = write(tmp_path, {f"{SESSION}.trajectory.jsonl": [trace]})
    with pytest.raises(ConfigError, match=r"without `\.trajectory`"):
        files.expand([str(path / f"{SESSION}.trajectory.jsonl")])


def test_what_lies_next_to_openclaws_sessions_is_no_transcript() -> None:
    folder = "/h/.openclaw/agents/main/sessions"
    assert name_of(f"{folder}/{SESSION}.jsonl").session == SESSION
    assert name_of(f"{folder}/{SESSION}-topic-7.jsonl").session == SESSION
    for other in ("trajectory", "checkpoint.11111111-2222-4333-8444-555555555555"):
        assert is_no_transcript(f"{folder}/{SESSION}.{other}.jsonl")
