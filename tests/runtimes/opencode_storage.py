"""Sessions as opencode before 1.2 stores them: JSON files, which 1.2 takes into its database."""

import json
from pathlib import Path
from typing import Any

from tests.runtimes.documents_kit import write
from tests.runtimes.opencode_database import BEGIN_MS, OpencodeDatabase

HOME = ".local/share/opencode"


class OpencodeStorage:
    """The files of sessions; a second goes by before each message, and before each part of it.

    With `project`, they are where 0.5 has them.
    """

    def __init__(self, home: Path, folder: str = HOME, *, project: bool = False) -> None:
        self._home = home
        self._now_ms = BEGIN_MS
        storage = f"{folder}/project/repo/storage/session" if project else f"{folder}/storage"
        self.sessions = f"{storage}/info" if project else f"{storage}/session/global"
        self._messages = f"{storage}/message"
        self._parts = f"{storage}/part"
        self._in_project = project

    def session(self, name: str, *, parent: str | None = None, **own: Any) -> Path:
        created = {"created": self._passed(), "updated": self._now_ms}
        body = {"id": name, "version": "1.0.107", "title": "Parser", "time": created, **own}
        body |= {} if self._in_project else {"projectID": "global", "directory": "/repo"}
        body |= {} if parent is None else {"parentID": parent}
        return self._write(f"{self.sessions}/{name}.json", body)

    def message(self, session: str, role: str, *parts: dict[str, Any], **own: Any) -> str:
        name = self._id("msg")
        body = {"id": name, "sessionID": session, "role": role, **own}
        time = {"created": self._now_ms, **own.get("time", {})}
        for part in parts:
            self._part(session, name, **part)
        if role == "assistant" and "completed" not in time:
            time["completed"] = self._now_ms
        path = f"{self._messages}/{session}/{name}.json"
        self._write(path, {**body, "time": time})
        return name

    def prompt(self, session: str, text: str, **own: Any) -> str:
        return self.message(session, "user", {"type": "text", "text": text, **own})

    def answer(self, session: str, *, fresh: int, read: int = 0, **own: Any) -> str:
        """Write an answer of the model after a call of a tool."""
        tokens = self.tokens(fresh, read)
        finish = {"type": "step-finish", "reason": "stop", "cost": 0.1, "tokens": tokens}
        tool = {"type": "tool", "tool": "read", "state": {"output": "x" * 1_000}}
        texts = {"type": "text", "text": "Done."}
        return self.said(session, {"type": "step-start"}, tool, texts, finish, **own)

    def said(self, session: str, *parts: dict[str, Any], **own: Any) -> str:
        names = {"providerID": "anthropic", "modelID": "claude-sonnet-5"}
        cwd = {"path": {"cwd": "/repo", "root": "/"}}
        return self.message(session, "assistant", *parts, **names, **cwd, **own)

    @staticmethod
    def tokens(fresh: int, read: int = 0) -> dict[str, Any]:
        return {"input": fresh, "output": 10, "reasoning": 0, "cache": {"read": read, "write": 0}}

    def move_into(self, database: OpencodeDatabase) -> None:
        """Write what is there into a database, as 1.2 does when it begins one: in no order."""
        now_ms = self._now_ms + 86_400_000
        bodies = [json.loads(each.read_text()) for each in sorted(self._home.rglob("*_*.json"))]
        for own in (each for each in bodies if "version" in each):
            database.execute(
                "INSERT INTO session VALUES (?, 'p', ?, 's', ?, ?, ?, ?, ?, NULL)",
                *(own["id"], own.get("parentID"), own.get("directory", ""), own["title"]),
                *(own["version"], own["time"]["created"], now_ms),
            )
        for own in (each for each in bodies if "role" in each):
            keys = (own.pop("id"), own.pop("sessionID"), own["time"]["created"], now_ms)
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", *keys, json.dumps(own))
        for own in reversed([each for each in bodies if "messageID" in each]):
            values = (own.pop("id"), own.pop("messageID"), own.pop("sessionID"), now_ms, now_ms)
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", *values, json.dumps(own))

    def _part(self, session: str, message: str, **own: Any) -> None:
        name = self._id("prt")
        folder = f"{session}/{message}" if self._in_project else message
        body = {"id": name, "sessionID": session, "messageID": message, **own}
        self._write(f"{self._parts}/{folder}/{name}.json", body)

    def _write(self, name: str, body: dict[str, Any]) -> Path:
        write(self._home, {name: body})
        return self._home / name

    def _id(self, kind: str) -> str:
        return f"{kind}_{(self._passed() << 12 | 1) % (1 << 48):012x}ItSo6w06kYUItS"

    def _passed(self) -> int:
        self._now_ms += 1_000
        return self._now_ms
