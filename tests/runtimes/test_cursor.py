"""Cursor: the size that its editor keeps with each conversation."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.records import ContextLimits, ContextReading
from streams.edge.files.database import open_database, titles_in
from tests.core.given import Given, every, limits, one
from tests.edge.follower_kit import Bench

CONVERSATION = "8a1f0c2e-0000-4000-8000-000000000001"
CHANGED_MS = 1_793_534_400_000


class CursorDatabase:
    """Writes values as Cursor does: a new one takes the place of the former."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True)
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(
            "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
        )

    def put(self, key: str, value: bytes) -> None:
        self.connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, value))

    def conversation(self, name: str, used: int | None, **own: Any) -> None:
        value = {
            "composerId": name,
            "name": "Parser",
            "lastUpdatedAt": CHANGED_MS,
            "contextTokensUsed": used,
            "contextTokenLimit": 176_000,
            "modelConfig": {"modelName": "claude-sonnet-5"},
            **own,
        }
        self.put(f"composerData:{name}", json.dumps(value).encode())


@pytest.fixture
def written(tmp_path: Path) -> Iterator[CursorDatabase]:
    runtime = CursorDatabase(tmp_path / "Cursor/User/globalStorage/state.vscdb")
    yield runtime
    runtime.connection.close()


def derived(written: CursorDatabase) -> Given:
    given = Given()
    with closing(open_database(str(written.path))) as content:
        given.take(*map(json.loads, content.read(content.size(), 0).splitlines()))
    return given


def test_a_conversation_has_its_size_and_cursors_own_limit(written: CursorDatabase) -> None:
    written.put(f"bubbleId:{CONVERSATION}:1", b'{"type":1}')
    written.conversation(CONVERSATION, 44_000)
    records = derived(written).records
    reading = one(records, ContextReading)
    assert (reading.session_id, reading.used_tokens) == (CONVERSATION, 44_000)
    assert reading.model == "claude-sonnet-5"
    assert limits(every(records, ContextLimits)[-1]) == (176_000, "runtime")
    assert titles_in(str(written.path)) == {CONVERSATION: "Parser"}


def test_an_older_conversation_has_the_size_of_its_last_answer(written: CursorDatabase) -> None:
    answers = [("a", 8_000), ("c", 9_500), ("b", 0), ("d", None)]
    for name, sent in reversed(answers):
        counts = {} if sent is None else {"tokenCount": {"inputTokens": sent, "outputTokens": 50}}
        written.put(f"bubbleId:{CONVERSATION}:{name}", json.dumps({"type": 2, **counts}).encode())
    headers = [{"bubbleId": name} for name, _ in (*answers, ("gone", None))]
    own = {"contextTokenLimit": None, "modelConfig": None}
    written.conversation(CONVERSATION, None, fullConversationHeadersOnly=headers, **own)
    written.conversation("none", None, fullConversationHeadersOnly={})
    assert one(derived(written).records, ContextReading).used_tokens == 9_500
    assert titles_in(str(written.path)) == {CONVERSATION: "Parser"}


def test_no_window_is_taken_from_a_models_name(written: CursorDatabase) -> None:
    written.conversation(CONVERSATION, 44_000, contextTokenLimit=None)
    records = derived(written).records
    assert limits(every(records, ContextLimits)[-1]) == (None, "unknown")


def test_a_model_that_cursor_chooses_is_unknown(written: CursorDatabase) -> None:
    written.conversation(CONVERSATION, 44_000, modelConfig={"modelName": "default"})
    assert one(derived(written).records, ContextReading).model is None


def test_what_has_no_size_is_left_out(written: CursorDatabase) -> None:
    written.conversation("empty", 0)
    written.conversation("new", None)
    written.put("composerData:broken", b"{")
    written.put("composerData:", b"{}")
    assert derived(written).records == []
    assert titles_in(str(written.path)) == {}


def test_each_size_is_seen_while_it_is_followed(written: CursorDatabase) -> None:
    bench = Bench([str(written.path)])
    seen = []
    for used in (1_000, 2_000, 2_000, 3_000):
        written.conversation(CONVERSATION, used)
        written.put(f"bubbleId:{CONVERSATION}:{used}", b"{}")
        seen += [json.loads(line.value)["used"] for piece in bench.pieces() for line in piece.lines]
    bench.restart()
    written.conversation("other", 500)
    seen += [json.loads(line.value)["used"] for piece in bench.pieces() for line in piece.lines]
    assert seen == [1_000, 2_000, 2_000, 3_000, 500]
