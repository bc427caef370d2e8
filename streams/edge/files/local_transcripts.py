"""Transcripts of sessions on this machine: found by session id, and titled by their first prompt.

A title is read only to be shown on this machine: it enters no record and no topic.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from streams.edge.files.objects import object_of

_READ_BYTES: Final = 1_048_576
"""The first prompt is within the first kilobytes, unless attachments come before it."""

_CHARACTERS: Final = 200
"""Of a title: more than any screen has room for."""

_SESSION: Final = re.compile(
    r"(?:rollout-.*-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl\Z"
)
"""Names of transcripts: Claude Code's `<id>.jsonl`, Codex's `rollout-<time>-<id>.jsonl`."""

_NOT_TYPED: Final = ("<", "Caveat:", "# AGENTS.md", "[Request interrupted")
"""Beginnings of what runtimes write in the user's name: commands, their output, instructions."""


def transcript_folders(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders in which the runtimes of this machine keep transcripts, if they exist."""
    home = Path.home()
    claude = environment.get("CLAUDE_CONFIG_DIR") or home / ".claude"
    codex = environment.get("CODEX_HOME") or home / ".codex"
    folders = (Path(claude) / "projects", Path(codex) / "sessions")
    return [folder for folder in folders if folder.is_dir()]


class LocalTranscripts:
    """The transcripts below folders, by session; what was created since the last look is found."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders
        self._paths: dict[str, Path] = {}
        self._titles: dict[str, str] = {}
        self._unknown: frozenset[str] = frozenset()

    def path(self, session_id: str) -> Path | None:
        """Return the session's transcript; None where it is not on this machine."""
        if not self._paths:
            self._look()
        return self._paths.get(session_id)

    def beginning_with(self, prefix: str) -> list[str]:
        """Return the sessions whose ids begin so."""
        self._look()
        return sorted(session for session in self._paths if session.startswith(prefix))

    def titles(self, session_ids: list[str]) -> dict[str, str]:
        """Return the titles of those sessions whose transcripts have a first prompt."""
        missing = frozenset(session_ids) - self._titles.keys()
        if missing != self._unknown:
            self._look()
            for session_id in missing:
                path = self._paths.get(session_id)
                title = None if path is None else first_prompt(path)
                if title is not None:
                    self._titles[session_id] = title
            self._unknown = missing - self._titles.keys()
        return {each: self._titles[each] for each in session_ids if each in self._titles}

    def _look(self) -> None:
        for folder in self._folders:
            for parent, _, names in os.walk(folder):
                for name in names:
                    match = _SESSION.match(name)
                    if match is not None:
                        self._paths[match[1]] = Path(parent, name)


def first_prompt(path: Path) -> str | None:
    """Return the first prompt that a user typed, as one line; None where there is none (yet)."""
    try:
        with path.open("rb") as file:
            prompts = (prompt for line in _lines(file) if (prompt := _prompt(line)) is not None)
            return next(prompts, None)
    except OSError:
        return None


def _lines(file: BinaryIO) -> Iterator[dict[str, Any]]:
    for line in file.read(_READ_BYTES).split(b"\n"):
        if b'"user"' in line or b'"user_message"' in line:
            body = object_of(line)
            if body is not None:
                yield body


def _prompt(body: dict[str, Any]) -> str | None:
    """Return what a line of a transcript or a rollout says that the user typed."""
    if body.get("isSidechain") or body.get("isMeta") or body.get("isCompactSummary"):
        return None
    is_claude = body.get("type") == "user"
    message = body.get("message" if is_claude else "payload")
    if not isinstance(message, dict) or message.get("role", "user") != "user":
        return None
    if not is_claude and message.get("type") not in {"message", "user_message"}:
        return None
    content = message.get("content", message.get("message"))
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = next((part for part in parts if isinstance(part, str)), None)
    if not isinstance(content, str):
        return None
    text = " ".join(content.split())
    if not text or text.startswith(_NOT_TYPED):
        return None
    return text[:_CHARACTERS]
