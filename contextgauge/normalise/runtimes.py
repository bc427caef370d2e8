"""The table of runtimes: what each writes about itself, by which it is known (R32).

One row is one format of one runtime. A row is added here, and nowhere else, to recognise another
runtime; to read it, also an adapter in this package. A message is recognised by its structure: the
fields that a runtime gives all its messages, or that name it, never by a text of a person.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast, get_args

from contextgauge.normalise.signals import Body
from contextgauge.record_words import Runtime

CLAUDE_CODE: Final[Runtime] = "claude-code"
CODEX: Final[Runtime] = "codex"
GEMINI: Final[Runtime] = "gemini"
QWEN_CODE: Final[Runtime] = "qwen-code"
OTHER: Final[Runtime] = "other"
"""One that is not read, or whose `init` has the signs of none that is known."""

ABSENT: Final = object()
"""What a sign wants of a field that must not be there."""

PRESENT: Final = object()
"""What a sign wants of a field whose value does not matter."""

Sign: TypeAlias = Mapping[str, object]
"""What identifies a message: wanted values by dotted path. A type stands for any value of it."""


class Format(NamedTuple):
    """One row of the table.

    `label` is the name for people. `signs`: one that fits is enough. `is_read`: this version reads
    it. `is_transcript`: its lines have a transcript's fields, which others have too.
    `has_default_window`: the default is assumed for a model that nothing is known of.
    `compacts_itself`: it replaces its own history, and sends what it knows itself, whatever others
    keep of it; of `other` that is not known, as agents of one's own are among them. `document` is
    the field that lists the messages where a file is a single JSON object, `files` the end of such
    a file's path, as a regular expression.
    """

    runtime: Runtime
    label: str
    signs: tuple[Sign, ...]
    is_read: bool = False
    is_transcript: bool = False
    has_default_window: bool = False
    compacts_itself: bool = False
    document: str | None = None
    files: str | None = None

    @property
    def session(self) -> str:
        """One of its sessions, in words: a pi session, an opencode session."""
        article = "an" if self.label[0].lower() in "aeiou" else "a"
        return f"{article} {self.label} session"


_INIT: Final = {"type": "system", "subtype": "init"}
_EVENT: Final = {"id": PRESENT, "timestamp": str, "source": frozenset({"agent", "user"})}

FORMATS: Final = (
    Format(
        QWEN_CODE,
        "Qwen Code",
        (
            {"sessionId": str, "version": str, "message.parts": PRESENT},
            {"sessionId": str, "version": str, "systemPayload": PRESENT},
            {"sessionId": str, "version": str, "provenance": str},
            {**_INIT, "qwen_code_version": str},
        ),
        is_read=True,
        compacts_itself=True,
        is_transcript=True,
    ),
    Format(
        GEMINI,
        "Gemini CLI",
        (
            {"sessionId": str, "projectHash": str},
            {"type": "gemini", "id": str, "timestamp": str},
        ),
        is_read=True,
        compacts_itself=True,
        is_transcript=True,
        document="messages",
        files=r"[/\\]chats[/\\]session-[^/\\]*\.json\Z",
    ),
    Format(
        CLAUDE_CODE,
        "Claude Code",
        (
            {"version": str, "isSidechain": bool, "message": ABSENT},
            {"version": str, "message.content": PRESENT},
            {**_INIT, "claude_code_version": str},
            {**_INIT, "claudeCodeVersion": str},
            # Before it reported its version.
            {**_INIT, "tools": list, "mcp_servers": list, "apiKeySource": str},
        ),
        is_read=True,
        compacts_itself=True,
        is_transcript=True,
        has_default_window=True,
    ),
    Format(
        CODEX,
        "Codex",
        (
            {"type": frozenset({"session_meta", "turn_context", "event_msg"}), "payload": dict},
            {"type": "thread.started", "thread_id": str},
            {"method": str, "params.threadId": str},
            {"method": str, "params.thread.id": str},
            {"result.thread.id": str},
        ),
        is_read=True,
        compacts_itself=True,
        has_default_window=True,
    ),
    Format(
        OTHER,
        "pi",
        ({"type": "session", "id": str, "timestamp": str, "cwd": str},),
    ),
    Format(
        OTHER,
        "Kimi CLI",
        (
            {"type": "metadata", "protocol_version": str},
            {"timestamp": float, "message.type": str, "message.payload": dict},
            {"role": "_usage", "token_count": int},
        ),
    ),
    Format(OTHER, "opencode", ({"type": str, "sessionID": str, "part": dict},)),
    Format(
        OTHER,
        "Copilot CLI",
        ({"type": "session.start", "data.sessionId": str},),
    ),
    Format(
        OTHER,
        "Cline",
        (
            {"ts": int, "type": "say", "say": str},
            {"ts": int, "type": "ask", "ask": str},
        ),
    ),
    Format(
        OTHER,
        "OpenHands",
        (
            {**_EVENT, "action": str, "args": dict},
            {**_EVENT, "observation": str, "extras": dict},
            {**_EVENT, "kind": str},
        ),
    ),
    Format(
        OTHER,
        "Gemini CLI stream",
        ({"type": "init", "timestamp": str, "session_id": str, "model": str},),
    ),
    Format(
        OTHER,
        "Cursor CLI",
        (
            {**_INIT, "apiKeySource": str, "model": str, "tools": ABSENT, "uuid": ABSENT},
            {"type": "thinking", "session_id": str, "timestamp_ms": int},
            {"type": "tool_call", "call_id": str, "tool_call": dict, "session_id": str},
        ),
    ),
)
"""The table, the more particular rows first: the first that fits counts."""

DEFAULT_WINDOW_OF: Final[frozenset[str | None]] = frozenset(
    {None, *(row.runtime for row in FORMATS if row.has_default_window)}
)
"""Runtimes of whose unknown models the default window is assumed; None: it was not reported."""

COMPACTING_THEMSELVES: Final[frozenset[str | None]] = frozenset(
    row.runtime for row in FORMATS if row.compacts_itself
)
"""Runtimes whose context only they can compact."""

_TRANSCRIPTS: Final = tuple(row for row in FORMATS if row.is_transcript)
_UNREAD: Final = tuple(row for row in FORMATS if not row.is_read)


def of_transcript(body: Body) -> Runtime | None:
    """Return which runtime wrote a line that has a transcript's fields; None: it does not say."""
    row = _first(_TRANSCRIPTS, body)
    return None if row is None else row.runtime


def of_init(body: Body) -> Runtime:
    """Return which runtime sent an `init`: the one that it names, or whose signs it has."""
    named = body.get("runtime")
    for runtime in get_args(Runtime):
        if runtime == named:
            return cast("Runtime", runtime)
    row = _first(FORMATS, body)
    return OTHER if row is None else row.runtime


def is_known(body: Body) -> bool:
    """Return whether a message is recognised, of a runtime that is read or not."""
    return _first(FORMATS, body) is not None


def unread(body: Body) -> Format | None:
    """Return the format of a message that this version does not read; None of any other."""
    return _first(_UNREAD, body)


def document_of(header: Body) -> Format | None:
    """Return the format of a JSON object that lists its messages, by its other fields."""
    row = _first(FORMATS, header)
    return row if row is not None and row.document is not None else None


def _first(rows: tuple[Format, ...], body: Body) -> Format | None:
    for row in rows:
        for sign in row.signs:
            if _fits(sign, body):
                return row
    return None


def _fits(sign: Sign, body: Body) -> bool:
    for path, wanted in sign.items():
        value: Any = body
        for name in path.split("."):
            value = value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
        if not _is_wanted(wanted, value):
            return False
    return True


def _is_wanted(wanted: object, value: object) -> bool:
    if wanted is ABSENT or wanted is PRESENT:
        return (value is ABSENT) is (wanted is ABSENT)
    if isinstance(wanted, frozenset):
        return isinstance(value, str) and value in wanted
    if isinstance(wanted, type):
        # A number is a float or a whole one; true is neither.
        return type(value) is wanted or (wanted is float and type(value) is int)
    return value == wanted
