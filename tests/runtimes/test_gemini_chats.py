"""R32: chats of Gemini CLI, whose compactions show by the snapshot that follows them."""

import json
from typing import Any

import pytest

from contextgauge.delivery.privacy import without_text
from contextgauge.normalise.runtimes import line_of
from schemas.records import (
    CompactBoundary,
    CompactionSummary,
    ContextReading,
    ContextReset,
    Record,
    SessionInfo,
)
from tests.core.given import SESSION, Given, every, one
from tests.library.privacy_kit import check_no_text, check_same_records

Body = dict[str, Any]

HEAD: Body = {"sessionId": SESSION, "projectHash": "f00", "startTime": "2026-11-01T12:00:00Z"}
SNAPSHOT = "<state_snapshot>\n<goal>Mend the parser.</goal>\n</state_snapshot>"


def message(kind: str, key: str, minute: int, content: object, **fields: object) -> Body:
    own = {"id": key, "timestamp": f"2026-11-01T12:{minute:02}:00Z", "type": kind}
    return {**own, "content": content, **fields}


def asked(key: str, minute: int, text: str, **fields: object) -> Body:
    return message("user", key, minute, [{"text": text}], **fields)


def answered(key: str, minute: int, size: int, **fields: object) -> Body:
    tokens = {"input": size, "cached": size // 2, "output": 12, "total": size + 12}
    own = {"model": "gemini-3-pro", "tokens": tokens}
    return message("gemini", key, minute, "Done.", **own, **fields)


def written(minute: int, *messages: Body) -> Body:
    return {"$set": {"messages": list(messages), "lastUpdated": f"2026-11-01T12:{minute:02}:00Z"}}


ACKNOWLEDGED = message("gemini", "k1", 3, [{"text": "Got it."}])
CONTEXT = asked("u0", 0, "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n</session_context>")  # fmt: skip  # noqa: E501
BEFORE = (HEAD, written(0, CONTEXT), asked("u1", 1, "mend the parser"), answered("g1", 2, 90_000))


def taken(*bodies: Body) -> list[Record]:
    given = Given()
    given.take(*bodies, hint=SESSION)
    return given.records


def sizes(records: list[Record]) -> list[int]:
    return [each.used_tokens for each in every(records, ContextReading)]


@pytest.mark.parametrize(
    "after",
    [
        # Of several versions: each message is a line, the history is one, or both are there.
        (asked("s1", 3, SNAPSHOT), ACKNOWLEDGED),
        (written(3, CONTEXT, asked("s1", 3, SNAPSHOT), ACKNOWLEDGED),),
        (asked("s1", 3, SNAPSHOT), ACKNOWLEDGED, written(3, asked("s1", 3, SNAPSHOT))),
    ],
)
def test_r29_the_snapshot_that_a_history_begins_with_is_a_compaction(after: tuple[Body]) -> None:
    records = taken(*BEFORE, *after, asked("u2", 4, "go on"), answered("g2", 5, 20_000))
    assert sizes(records) == [90_000, 20_000]
    boundary = one(records, CompactBoundary)
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (90_000, "last_reading")
    assert (boundary.trigger, boundary.post_tokens, boundary.metadata) == (None, None, {})
    assert one(records, CompactionSummary).summary == SNAPSHOT
    (record,) = (each for each in records if isinstance(each.data, CompactBoundary))
    assert record.time_ms == 1_793_534_580_000


def test_r04_a_history_that_is_written_again_is_no_other_compaction() -> None:
    """As after a failed request, with messages masked, or when a chat is taken up again."""
    given = Given()
    given.take(*BEFORE, asked("s1", 3, SNAPSHOT), answered("g2", 4, 20_000), hint=SESSION)
    again = written(5, CONTEXT, asked("s9", 5, SNAPSHOT), ACKNOWLEDGED)
    assert not given.take(again, asked("s8", 6, SNAPSHOT), hint=SESSION)
    assert given.chain().used == 20_000
    other = asked("s7", 7, f"<scratchpad>Think.</scratchpad>\n{SNAPSHOT} more")
    assert one(given.take(other, hint=SESSION), CompactBoundary).pre_tokens == 20_000


def test_r23_the_words_of_a_person_are_no_snapshot() -> None:
    records = taken(
        *BEFORE,
        asked("u2", 3, f"What is {SNAPSHOT}?"),
        asked("u3", 3, "<scratchpad>notes</scratchpad>"),
        message("gemini", "g2", 4, SNAPSHOT),
        {"$set": {"lastUpdated": "2026-11-01T12:04:00Z"}},
        {"$set": None},
        answered("g3", 5, 91_000),
    )
    assert not every(records, CompactBoundary)
    assert [each.messages for each in every(records, ContextReading)] == [2, 5]


def test_r04_a_message_that_is_written_again_counts_once() -> None:
    """As when the lines take the place of a chat that was one JSON document."""
    given = Given()
    given.take(*BEFORE, hint=SESSION)
    again = (asked("u1", 1, "mend the parser", displayContent=None), BEFORE[-1] | {"toolCalls": []})
    assert not given.take(*again, hint=SESSION)
    assert given.chain().messages == 2


def test_r32_a_rewind_leaves_the_size_unknown() -> None:
    records = taken(*BEFORE, {"$rewindTo": "u1"})
    assert one(records, ContextReset).reason == "rollback"
    assert one(records, SessionInfo).runtime == "gemini"


def test_a_title_is_what_a_person_wrote() -> None:
    shown = asked("u1", 1, "mend @parser.py\n--- parser.py ---", displayContent="mend @parser.py")
    read = line_of(shown).prompt
    assert read is not None
    assert read(shown) == "mend @parser.py"
    assert read(BEFORE[2]) == [{"text": "mend the parser"}]
    assert read(asked("s1", 3, SNAPSHOT)) is None


def test_r04_snapshots_without_texts_are_known_apart() -> None:
    """Those of equal lengths too; the same one is the same in other lines."""
    snapshots = [asked(f"s{each}", 3, f"{SNAPSHOT} {each}") for each in (1, 2)]
    again = written(6, CONTEXT, snapshots[1])
    spoken = (*BEFORE, snapshots[0], answered("g2", 4, 20_000), snapshots[1], again)
    bodies = [without_text(each, json.dumps(each).encode(), b"key") for each in spoken]
    assert len(every(taken(*bodies), CompactBoundary)) == 2


WORDS = "a S3cret of mine"


def test_without_texts_the_records_are_the_same() -> None:
    snapshot = asked("s1", 3, f"{SNAPSHOT} {WORDS}")
    spoken = (
        HEAD,
        written(0, CONTEXT),
        asked("u1", 1, WORDS, displayContent=WORDS),
        answered("g1", 2, 90_000, toolCalls=[{"name": "read", "args": {"path": WORDS}}]),
        written(3, asked("u0", 3, WORDS), snapshot),
        snapshot,
        answered("g2", 4, 20_000),
    )
    lines = [json.dumps(each).encode() for each in spoken]
    assert check_same_records(lines) > 5
    check_no_text(lines)
