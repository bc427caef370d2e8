"""R32: tasks of Cline and Roo Code, as the messages that a person sees."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextgauge.normalise.cline.tasks import cause, usage_of
from contextgauge.normalise.runtimes import line_of
from contextgauge.normalise.signals import Usage
from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    CompactionSummary,
    ContextEdit,
    ContextLimits,
    ContextReading,
    Record,
    SessionInfo,
)
from streams.edge.files import reading
from tests.core.given import SESSION, Given, every, limits, one
from tests.library.privacy_kit import check_no_text, check_same_records
from tests.runtimes.documents_kit import Publishing, write

Body = dict[str, Any]

START = 1_793_534_400_000
MODEL = {"providerId": "anthropic", "modelId": "claude-sonnet-5", "mode": "act"}


def say(kind: str, minute: int, text: str | None = None, **fields: object) -> Body:
    own: Body = {"ts": START + minute * 60_000, "type": "say", "say": kind}
    return {**own, **({} if text is None else {"text": text}), **fields}


def request(minute: int, sent: int, reads: int, writes: int = 0, **fields: object) -> Body:
    """A request as Cline writes it; with `apiProtocol` as Roo Code does."""
    info = {"request": "<task>words</task>", "tokensIn": sent, "tokensOut": 40}
    counts = {"cacheWrites": writes, "cacheReads": reads, "cost": 0.01}
    protocol = fields.pop("apiProtocol", None)
    own = {} if protocol is None else {"apiProtocol": protocol}
    return say("api_req_started", minute, json.dumps(own | info | counts), **fields)


def begun(minute: int) -> Body:
    return say("api_req_started", minute, json.dumps({"request": "<task>words</task>"}))


ASKED = {"ts": START, "type": "ask", "ask": "tool", "text": "{}"}
TASK = say("task", 0, "make the tests pass")
CLINE = (
    TASK,
    request(1, 12, 150_000, 3_000, modelInfo=MODEL),
    ASKED,
    say("tool", 2, json.dumps({"tool": "summarizeTask", "content": "What was done."})),
    request(3, 9, 20_000, modelInfo=MODEL),
)
CONDENSE = {"cost": 0.2, "prevContextTokens": 153_052, "newContextTokens": 9_000,
            "summary": "What was done.", "condenseId": "c1"}  # fmt: skip
ROO = (
    say("text", 0, "make the tests pass"),
    request(1, 153_012, 150_000, 3_000, apiProtocol="anthropic"),
    say("condense_context", 2, contextCondense=CONDENSE, partial=False),
    request(3, 20_009, 20_000, apiProtocol="anthropic"),
)


def taken(*bodies: Body) -> list[Record]:
    given = Given()
    given.take(*bodies, hint=SESSION)
    return given.records


def sizes(records: list[Record]) -> list[int]:
    return [each.used_tokens for each in every(records, ContextReading)]


def test_r32_a_task_of_cline_has_sizes_its_model_and_a_boundary() -> None:
    records = taken(*CLINE)
    assert sizes(records) == [153_012, 20_009]
    first = every(records, ContextReading)[0]
    assert (first.model, first.messages) == ("claude-sonnet-5", 2)
    assert limits(one(records, ContextLimits)) == (200_000, "catalog")
    assert one(records, SessionInfo).runtime == "cline"
    boundary = one(records, CompactBoundary)
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (153_012, "last_reading")
    assert one(records, CompactionSummary).summary == "What was done."
    assert [each.time_ms for each in records if isinstance(each.data, ContextReading)] == [
        START + 60_000,
        START + 180_000,
    ]


def test_r32_a_task_of_roo_code_has_sizes_and_boundaries_and_no_window() -> None:
    records = taken(*ROO)
    assert sizes(records) == [153_012, 20_009]
    assert one(records, SessionInfo).runtime == "roo"
    assert limits(one(records, ContextLimits)) == (None, "unknown")
    boundary = one(records, CompactBoundary)
    assert (boundary.pre_tokens, boundary.post_tokens) == (153_052, 9_000)
    assert boundary.metadata == {name: CONDENSE[name] for name in CONDENSE if name != "summary"}
    assert one(records, CompactionSummary).summary == "What was done."


@pytest.mark.parametrize(
    ("counts", "provider", "is_inside", "wanted"),
    [
        ((5, 900, 40), "anthropic", False, Usage(5, 40, 900)),
        ((5, 900, 40), "openai", False, Usage(5, 40, 900)),
        ((1_000, 0, 0), "openai", False, Usage(1_000, 0, 0)),
        ((1_000, 900, 40), "anthropic", False, Usage(1_000, 40, 900)),
        # Whether these are part of the input is not known.
        ((1_000, 900, 40), "openai", False, None),
        ((1_000, 900, 40), None, False, None),
        ((1_000, 900, 40), None, True, Usage(60, 40, 900)),
        # Before its version 3.30 they were next to it.
        ((5, 900, 40), None, True, Usage(5, 40, 900)),
    ],
)
def test_r07_cached_tokens_count_once(
    counts: tuple[int, int, int], provider: str | None, *, is_inside: bool, wanted: Usage | None
) -> None:
    info: Body = dict(zip(("tokensIn", "cacheReads", "cacheWrites"), counts, strict=True))
    assert usage_of(info, provider, is_inside=is_inside) == wanted


def test_r09_a_request_that_is_written_again_is_one_response() -> None:
    given = Given()
    given.take(TASK, begun(1), hint=SESSION)
    assert given.chain().messages == 1
    given.take(request(1, 0, 0), request(1, 12, 150_000), hint=SESSION)
    again = request(1, 12, 150_000, conversationHistoryIndex=3)
    assert not given.take(again, TASK | {"lastCheckpointHash": "f"}, hint=SESSION)
    assert given.chain().messages == 2
    assert given.chain().used == 150_012


def test_r32_what_is_not_complete_or_of_the_model_says_nothing() -> None:
    records = taken(
        say("text", 0, "The model's words."),
        say("tool", 1, json.dumps({"tool": "summarizeTask", "content": "What"}), partial=True),
        say("tool", 1, json.dumps({"tool": "readFile"})),
        say("tool", 1, "[" * 100_000),
        say("tool", 2, "[1]"),
        say("tool", 2),
        say("condense_context", 3, contextTruncation="no object", contextCondense=None),
        {"type": "say", "say": "user_feedback", "text": "no time"},
    )
    assert not every(records, CompactBoundary)


def test_r17_a_condensation_that_failed_is_no_boundary() -> None:
    records = taken(*ROO[:2], say("condense_context_error", 2, "The summary is larger."))
    assert one(records, CompactionFailed).error == "The summary is larger."


@pytest.mark.parametrize(
    ("counts", "saved"),
    [({"prevContextTokens": 90_000, "newContextTokens": 50_000}, 40_000), ({}, None)],
)
def test_r26_a_truncation_is_an_edit_of_the_context(counts: Body, saved: int | None) -> None:
    truncation = {"truncationId": "t1", "messagesRemoved": 4, **counts}
    records = taken(*ROO[:2], say("sliding_window_truncation", 2, contextTruncation=truncation))
    assert one(records, ContextEdit).cleared_input_tokens == saved


def test_a_title_is_what_a_person_wrote() -> None:
    read = line_of(TASK).prompt
    assert read is not None
    assert [read(each) for each in (TASK, ROO[0], CLINE[3])] == [TASK["text"], ROO[0]["text"], None]


def test_a_tasks_folder_is_its_session(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "1793534400000"
    task.mkdir(parents=True)
    (task / "ui_messages.json").write_text(json.dumps(CLINE))
    (task / "api_conversation_history.json").write_text(json.dumps([{"role": "user"}]))
    sources = reading.expand([str(tmp_path)])
    assert [each.path.name for each in sources if each.path is not None] == ["ui_messages.json"]
    lines = [line for block in reading.read(sources) for line in block]
    assert {each.session_hint for each in lines} == {"1793534400000"}
    assert len(lines) == len(CLINE)


def test_of_a_task_that_is_written_again_only_what_is_new_is_sent(tmp_path: Path) -> None:
    name = "tasks/1793534400000/ui_messages.json"
    write(tmp_path, {name: [TASK, begun(1)]})
    publishing = Publishing(tmp_path)
    assert len(publishing.sent()) == 2
    write(tmp_path, {name: [TASK, request(1, 12, 150_000), ASKED]})
    assert [each["type"] for each in publishing.sent()] == ["say", "ask"]
    # As older versions wrote it: in its place.
    (tmp_path / name).write_text(json.dumps([TASK, request(1, 13, 150_000), ASKED]))
    assert [json.loads(each["text"])["tokensIn"] for each in publishing.sent()] == [13]
    assert publishing.reported == []


WORDS = "a S3cret of mine"


def test_without_texts_the_records_are_the_same() -> None:
    spoken = (
        say("task", 0, WORDS),
        request(1, 12, 150_000, modelInfo=MODEL) | {"reasoning": WORDS},
        say("text", 1, WORDS),
        say("tool", 2, json.dumps({"tool": "summarizeTask", "content": WORDS})),
        request(3, 12, 20_000, apiProtocol="openai"),
        say("condense_context", 4, contextCondense={**CONDENSE, "summary": WORDS}),
        say("sliding_window_truncation", 5, contextTruncation={"truncationId": "t1"}),
        say("condense_context_error", 6, WORDS),
        request(7, 12, 30_000, apiProtocol=WORDS),
    )
    lines = [json.dumps(each).encode() for each in spoken]
    assert check_same_records(lines) > 6
    check_no_text(lines)


def test_a_message_whose_kind_is_no_word_is_identified_by_its_time() -> None:
    nested: Any = []
    for _ in range(900):
        nested = [nested]
    assert cause({"type": "say", "ts": START, "say": nested}) == f"{START} None"
    assert cause({"type": "say", "ts": START, "say": "x" * 5_000}) == f"{START} None"
