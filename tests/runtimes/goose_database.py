"""A database as goose writes it (schema 17), with the columns that matter here."""

import json
from pathlib import Path

from tests.runtimes.written_database import WrittenDatabase

BEGIN_S = 1_793_534_400
"""2026-11-01T12:00:00Z."""

_SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '',
    working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    total_tokens INTEGER, input_tokens INTEGER, output_tokens INTEGER, provider_name TEXT,
    model_config_json TEXT, parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
    session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, metadata_json TEXT);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    created_timestamp INTEGER NOT NULL, model TEXT, input_tokens INTEGER, output_tokens INTEGER,
    total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL,
    cost_source TEXT, is_compaction INTEGER DEFAULT 0);
"""


class GooseDatabase(WrittenDatabase):
    """Writes rows as goose does: each is committed at once, and each second has its row."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA)

    def session(
        self,
        name: str,
        *,
        parent: str | None = None,
        provider: str | None = "anthropic",
        model: str = "claude-sonnet-5",
        limit: int | None = None,
    ) -> None:
        config = {"model_name": model, "context_limit": limit}
        self.execute(
            "INSERT INTO sessions (id, name, working_dir, created_at, provider_name, "
            "model_config_json, parent_session_id) "
            "VALUES (?, 'Parser', '/repo', '2026-11-01 12:00:00', ?, ?, ?)",
            name,
            provider,
            json.dumps(config),
            parent,
        )

    def call(
        self,
        session: str,
        sent: int | None,
        output: int | None = 10,
        *,
        read: int | None = None,
        write: int | None = None,
        model: str | None = "claude-sonnet-5",
        source: str | None = "estimated",
        compacts: bool = False,
    ) -> None:
        self._rows += 1
        self.execute(
            "INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, "
            "output_tokens, cache_read_tokens, cache_write_tokens, cost_source, is_compaction) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            session,
            str(BEGIN_S + self._rows),
            model,
            sent,
            output,
            read,
            write,
            source,
            compacts,
        )
