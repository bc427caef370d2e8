"""A database as opencode 1.2 and later write it, with the columns that matter here."""

import json
from pathlib import Path
from typing import Any

from tests.runtimes.written_database import WrittenDatabase

BEGIN_MS = 1_793_534_400_000
"""2026-11-01T12:00:00Z."""

_SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text,
    directory text NOT NULL, title text, version text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
    FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
    FOREIGN KEY (message_id) REFERENCES message(id) ON DELETE CASCADE);
"""


class OpencodeDatabase(WrittenDatabase):
    """Writes rows as opencode does: each is committed at once, and each second has its row."""

    def __init__(self, path: Path, begin_ms: int = BEGIN_MS) -> None:
        super().__init__(path, _SCHEMA, has_foreign_keys=True)
        self._begin_ms = begin_ms

    def session(
        self,
        name: str,
        *,
        parent: str | None = None,
        directory: str = "/repo",
        title: str = "Parser",
    ) -> None:
        now_ms = self._now_ms()
        self._connection.execute(
            "INSERT INTO session VALUES (?, 'p', ?, 's', ?, ?, '1.18.15', ?, ?, NULL)",
            (name, parent, directory, title, now_ms, now_ms),
        )

    def message(self, session: str, role: str, *, created_ms: int | None = None, **own: Any) -> str:
        now_ms = self._now_ms()
        name = f"msg_{self._rows}"
        data = {"role": role, "time": {"created": created_ms or now_ms}, **own}
        self._connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
            (name, session, now_ms, now_ms, json.dumps(data)),
        )
        return name

    def part(self, session: str, message: str, kind: str, **own: Any) -> None:
        now_ms = self._now_ms()
        self._connection.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
            (
                f"prt_{self._rows}",
                message,
                session,
                now_ms,
                now_ms,
                json.dumps({"type": kind, **own}),
            ),
        )

    def prompt(self, session: str, text: str, **own: Any) -> str:
        message = self.message(session, "user", agent="build")
        self.part(session, message, "text", text=text, **own)
        return message

    def answer(
        self,
        session: str,
        *,
        fresh: int,
        read: int = 0,
        write: int = 0,
        output: int = 10,
        provider: str = "anthropic",
        model: str = "claude-sonnet-5",
        created_ms: int | None = None,
        **own: Any,
    ) -> None:
        message = self.message(
            session,
            "assistant",
            created_ms=created_ms,
            providerID=provider,
            modelID=model,
            **own,
        )
        self.part(session, message, "step-start")
        self.part(session, message, "tool", tool="read", state={"status": "running"})
        tokens = {
            "total": fresh + read + write + output,
            "input": fresh,
            "output": output,
            "reasoning": 0,
            "cache": {"read": read, "write": write},
        }
        self.part(session, message, "step-finish", reason="stop", cost=0.1, tokens=tokens)

    def _now_ms(self) -> int:
        self._rows += 1
        return self._begin_ms + 1_000 * self._rows
