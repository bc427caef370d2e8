"""OpenClaw: the entries of an agent's sessions as rows of its database."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contextgauge.compaction.reading.transcripts import read_conversation
from schemas.records import CompactBoundary, ContextReading, SessionInfo
from streams.edge.files.database import open_database, titles_in
from tests.core.given import Given, every, one
from tests.runtimes.pi_captures import (
    ORIGIN,
    SESSION,
    Entry,
    answered,
    asked,
    compaction,
    head,
    message,
    usage,
)

OTHER = "01a01ae5-0000-7000-8000-000000000009"


class OpenClawDatabase:
    """Writes entries as OpenClaw does: a rewritten session has all its rows anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.executescript(
            """
            CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL,
                display_name TEXT) STRICT;
            CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL,
                event_json TEXT NOT NULL, created_at INTEGER NOT NULL,
                PRIMARY KEY (session_id, seq)) STRICT;
            """
        )

    def write(self, session: str, *entries: Entry) -> None:
        self.connection.execute(
            "INSERT OR IGNORE INTO session_windows VALUES (?, 'agent:main:main', 'Parser')",
            (session,),
        )
        self.connection.execute("DELETE FROM transcript_events WHERE session_id = ?", (session,))
        for seq, entry in enumerate(entries):
            self.connection.execute(
                "INSERT INTO transcript_events VALUES (?, ?, ?, 0)",
                (session, seq, json.dumps(entry)),
            )


ENTRIES = (
    head(),
    asked("m1", None, 11, "Fix the parser"),
    answered("m2", "m1", 12, usage(14_000, 2_000)),
    message("m3", "m2", 13, role="assistant", provider="openclaw", content=[], usage=usage(9)),
    compaction("m4", "m3", 14),
    answered("m5", "m4", 15, usage(5_000)),
)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[OpenClawDatabase]:
    runtime = OpenClawDatabase(tmp_path / "openclaw-agent.sqlite")
    yield runtime
    runtime.connection.close()


def lines_of(written: OpenClawDatabase) -> list[bytes]:
    with closing(open_database(str(written.path))) as content:
        return content.read(content.size(), 0).splitlines()


def derived(written: OpenClawDatabase) -> Given:
    given = Given()
    given.take(*map(json.loads, lines_of(written)))
    return given


def test_rows_say_what_the_lines_of_a_file_say(written: OpenClawDatabase) -> None:
    written.write(SESSION, *ENTRIES)
    records = derived(written).records
    assert [each.used_tokens for each in every(records, ContextReading)] == [16_000, 5_000]
    boundary = one(records, CompactBoundary)
    assert boundary.pre_tokens == 175_024
    facts = every(records, SessionInfo)
    assert {each.session_id for each in facts} == {SESSION}
    assert (facts[-1].runtime, facts[-1].cwd) == ("openclaw", "/repo")
    assert titles_in(str(written.path)) == {SESSION: "Parser"}


def test_sessions_of_one_database_are_apart(written: OpenClawDatabase) -> None:
    written.write(SESSION, *ENTRIES[:3])
    written.write(
        OTHER,
        head(id=OTHER, parentSession=f"/x/{ORIGIN}.jsonl"),
        answered("k1", None, 5, usage(700)),
        answered("k2", "k1", 16, usage(800)),
    )
    records = derived(written).records
    readings = [
        (each.session_id, each.used_tokens, each.inherited)
        for each in every(records, ContextReading)
    ]
    assert readings == [(SESSION, 16_000, None), (OTHER, 700, True), (OTHER, 800, None)]


def test_what_is_no_entry_says_nothing(written: OpenClawDatabase) -> None:
    written.write(SESSION, *ENTRIES[:3])
    written.connection.executemany(
        "INSERT INTO transcript_events VALUES ('x', ?, ?, 0)",
        [(0, "{"), (1, "[1]"), (2, '{"type":"label"}')],
    )
    assert len(lines_of(written)) == 3


def test_a_session_that_is_written_again_gives_the_same_records(written: OpenClawDatabase) -> None:
    written.write(SESSION, *ENTRIES)
    before = derived(written).records
    written.write(SESSION, *ENTRIES)
    assert [each.id for each in derived(written).records] == [each.id for each in before]


def test_its_conversation_is_that_of_a_file(written: OpenClawDatabase) -> None:
    written.write(SESSION, *ENTRIES)
    read = read_conversation(b"\n".join(lines_of(written)))
    assert "What was done." in str(read.request.messages[0])
