"""opencode 2: a row for each message, next to the tables of older versions or without them."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.records import CompactBoundary, CompactionFailed, ContextReading, Record, SessionInfo
from streams.edge.files.database import open_database, titles_in
from tests.core.given import Given, every, one
from tests.runtimes.opencode_database import BEGIN_MS, OpencodeDatabase

SESSION = "ses_1"

_SCHEMA = """
CREATE TABLE session_v2 (id text PRIMARY KEY, parent_id text, fork_session_id text,
    directory text NOT NULL, title text, version text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
    seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
    data text NOT NULL, FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE);
"""


class MessagesDatabase:
    """Writes messages as opencode 2 does: one is there from its begin, and completed later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.executescript(_SCHEMA)
        self._rows = 0

    def session(self, name: str, parent: str | None = None) -> None:
        self.connection.execute(
            "INSERT INTO session_v2 VALUES (?, ?, NULL, '/repo', 'Parser', '2.0.26', ?, ?)",
            (name, parent, BEGIN_MS, BEGIN_MS),
        )

    def message(
        self, session: str, kind: str, *, name: str = "", at_ms: int | None = None, **data: Any
    ) -> str:
        self._rows += 1
        name, time_ms = name or f"msg_new_{self._rows}", at_ms or BEGIN_MS + 1_000 * self._rows
        self.connection.execute(
            "INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                name,
                session,
                kind,
                self._rows,
                time_ms,
                time_ms,
                json.dumps({"time": {"created": time_ms}, **data}),
            ),
        )
        return name

    def change(self, name: str, after_ms: int = 500, **fields: Any) -> None:
        for path, value in fields.items():
            self.connection.execute(
                "UPDATE session_message SET time_updated = time_created + ?, "
                "data = json_set(data, ?, json(?)) WHERE id = ?",
                (after_ms, f"$.{path.replace('__', '.')}", json.dumps(value), name),
            )

    def answer(self, session: str, fresh: int, **own: Any) -> str:
        name = self.message(
            session, "assistant", model={"id": "claude-sonnet-5", "providerID": "anthropic"}, **own
        )
        self.complete(name, fresh)
        return name

    def complete(self, name: str, fresh: int) -> None:
        cache = {"read": 200, "write": 7}
        tokens = {"input": fresh, "output": 40, "reasoning": 11, "cache": cache}
        self.change(name, tokens=tokens, time__completed=BEGIN_MS + 90_000)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[MessagesDatabase]:
    runtime = MessagesDatabase(tmp_path / "opencode.db")
    runtime.session(SESSION)
    yield runtime
    runtime.connection.close()


def derived(written: MessagesDatabase) -> list[Record]:
    given = Given()
    with closing(open_database(str(written.path))) as content:
        given.take(*map(json.loads, content.read(content.size(), 0).splitlines()))
    return given.records


def sizes(written: MessagesDatabase) -> list[tuple[str, str, int]]:
    readings = every(derived(written), ContextReading)
    return [(each.session_id, each.chain, each.used_tokens) for each in readings]


def test_a_message_is_a_size_once_it_is_complete(written: MessagesDatabase) -> None:
    written.message(SESSION, "user", text="Fix the parser", files=[])
    name = written.message(SESSION, "assistant", model={"id": "m", "providerID": "google"})
    with closing(open_database(str(written.path))) as content:
        before = content.size()
        written.complete(name, 1_000)
        line = json.loads(content.read(content.size() - before, before))
    assert line["part"]["id"] == name
    records = derived(written)
    reading = one(records, ContextReading)
    assert (reading.used_tokens, reading.output_tokens, reading.messages) == (1_207, 51, 2)
    assert (reading.input_tokens, reading.cache_read_tokens) == (1_000, 200)
    facts = one(records, SessionInfo)
    assert (facts.runtime_version, facts.cwd) == ("2.0.26", "/repo")


def test_a_compaction_has_its_duration_summary_and_cost(written: MessagesDatabase) -> None:
    written.answer(SESSION, 150_000)
    name = written.message(SESSION, "compaction", status="running", reason="auto", summary="")
    assert every(derived(written), CompactBoundary) == []
    tokens = {"input": 900, "output": 50, "reasoning": 0, "cache": {"read": 100, "write": 0}}
    written.change(name, 7_000, status="completed", summary="What was done.", tokens=tokens)
    boundary = one(derived(written), CompactBoundary)
    assert (boundary.trigger, boundary.pre_tokens, boundary.duration_ms) == ("auto", 150_207, 7_000)
    assert boundary.receipt is not None
    cost = boundary.receipt
    assert (cost.summary_input_tokens, cost.summary_output_tokens) == (1_000, 50)


def test_a_compaction_that_failed_says_why(written: MessagesDatabase) -> None:
    error = {"type": "compaction.failed", "message": "Nothing to compact yet"}
    written.message(SESSION, "compaction", status="failed", reason="manual", error=error)
    failed = one(derived(written), CompactionFailed)
    assert failed.error == "Nothing to compact yet"


def test_what_is_no_message_of_a_person_or_a_model_says_nothing(written: MessagesDatabase) -> None:
    for kind in ("synthetic", "system", "idle", "agent-switched"):
        written.message(SESSION, kind, text="<system-reminder>")
    written.connection.execute("UPDATE session_message SET data = '{' WHERE type = 'idle'")
    assert derived(written) == []


def test_what_a_fork_copied_is_the_other_sessions(written: MessagesDatabase) -> None:
    written.answer(SESSION, 1_000, at_ms=BEGIN_MS - 1)
    written.answer(SESSION, 2_000)
    assert sizes(written) == [(SESSION, "main", 2_207)]


def test_a_subagents_session_is_a_chain(written: MessagesDatabase) -> None:
    written.session("ses_2", SESSION)
    written.session("ses_3", "ses_2")
    written.answer("ses_3", 1_000)
    assert sizes(written) == [(SESSION, "ses_3", 1_207)]
    assert titles_in(str(written.path)) == {SESSION: "Parser"}


def test_messages_that_were_copied_from_the_older_tables_count_once(tmp_path: Path) -> None:
    older = OpencodeDatabase(tmp_path / "opencode.db")
    older.session(SESSION)
    older.answer(SESSION, fresh=1_000)
    copied = "msg_2"
    newer = MessagesDatabase(older.path)
    newer.session(SESSION)
    newer.session("ses_new")
    newer.answer(SESSION, 1_000, name=copied)
    newer.answer(SESSION, 2_000, name="msg_own")
    newer.answer("ses_new", 3_000, name="msg_new")
    older.answer(SESSION, fresh=4_000)
    older.close()
    expected = [
        (SESSION, "main", 1_000),
        (SESSION, "main", 4_000),
        (SESSION, "main", 2_207),
        ("ses_new", "main", 3_207),
    ]
    assert sizes(newer) == expected
    assert set(titles_in(str(newer.path))) == {SESSION, "ses_new"}
    newer.connection.close()
