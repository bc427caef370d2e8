"""A home in which every runtime that is read has a session, and what each of these shows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.runtimes import (
    documents_kit,
    pi_captures,
    runtimes_kit,
    test_amp_threads,
    test_cline_sessions,
    test_cline_tasks,
    test_copilot_cli,
    test_cursor,
    test_gemini_chats,
    test_goose,
    test_kimi_cli,
    test_kimi_code,
    test_openhands,
    test_qwen_chats,
)
from tests.runtimes.goose_database import GooseDatabase
from tests.runtimes.opencode_database import OpencodeDatabase

Body = dict[str, Any]


class Shown(NamedTuple):
    """What a session shows: its last size and window, compactions, folder and title."""

    runtime: str
    session: str
    used_tokens: int
    window: int | None
    compactions: int
    cwd: str | None
    title: str | None


def _uuid(number: int) -> str:
    return f"0ea0e000-0000-4000-8000-{number:012d}"


CLAUDE, CODEX, GEMINI, QWEN, OPENCLAW, OMP = map(_uuid, range(6))
TASK = "1793534400000"
ROO = "01a00ae5-0000-7000-8000-000000000001"
CODE = ".config/Code/User/globalStorage"


def claude() -> list[Body]:
    own: Body = {"sessionId": CLAUDE, "cwd": "/srv/claude", "version": "2.1.300"}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 64_990, "output_tokens": 9}
    answer = {"id": "msg_1", "role": "assistant", "model": "claude-sonnet-5", "usage": usage}
    time = "2026-11-01T12:00:01Z"
    return [
        {**own, "type": "user", "uuid": "u1", "isSidechain": False, "timestamp": time,
         "message": {"role": "user", "content": "fix the gate"}},
        {**own, "type": "assistant", "uuid": "u2", "isSidechain": False, "timestamp": time,
         "message": {**answer, "content": [{"type": "text", "text": "Done."}]}},
    ]  # fmt: skip


def codex() -> list[Body]:
    time = "2026-11-01T12:00:00.000Z"
    counts = {"input_tokens": 41_000, "cached_input_tokens": 40_000, "output_tokens": 9}
    info = {"total_token_usage": counts, "last_token_usage": counts,
            "model_context_window": 272_000}  # fmt: skip
    asked = {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": "sort the list"}]}  # fmt: skip
    meta = {"id": CODEX, "timestamp": time, "cwd": "/srv/codex", "cli_version": "0.150.0"}
    lines = [
        ("session_meta", meta),
        ("turn_context", {"cwd": "/srv/codex", "model": "gpt-5.5"}),
        ("response_item", asked),
        ("event_msg", {"type": "token_count", "info": info}),
    ]
    return [{"timestamp": time, "type": kind, "payload": payload} for kind, payload in lines]


def _named(bodies: Sequence[Body], session: str) -> list[Body]:
    """Return the lines of a capture as another session's."""
    named: list[Body] = []
    for each in bodies:
        fields = {"sessionId"} & each.keys() | ({"id"} if each.get("type") == "session" else set())
        named.append({**each, **dict.fromkeys(fields, session)})
    return named


def _qwen() -> list[Body]:
    boundary = test_qwen_chats.compressed("a4", "a3")
    last = test_qwen_chats.answered("a5", "a4", 31_000)
    return _named((*test_qwen_chats.BEFORE, boundary, last), QWEN)


def _gemini() -> list[Body]:
    snapshot = test_gemini_chats.asked("s1", 3, test_gemini_chats.SNAPSHOT)
    last = test_gemini_chats.answered("g2", 5, 20_000)
    return _named((*test_gemini_chats.BEFORE, snapshot, last), GEMINI)


def _openclaw() -> list[Body]:
    own = {"customType": "model-snapshot", "data": {}}
    mark = pi_captures.entry("custom", "x1", "m1", 10, **own)
    first, *rest = pi_captures.SESSION_ENTRIES
    return _named((first, mark, *rest), OPENCLAW)


def _omp() -> list[Body]:
    first, *rest = pi_captures.SESSION_ENTRIES
    title = {"type": "title", "v": 1, "title": "Tests", "updatedAt": pi_captures.moment(10)}
    return _named((title, first, *rest), OMP)


def write(home: Path) -> None:
    """Write the home."""
    pi = f"sessions/--repo--/2026-08-19T16-10-00-000Z_{pi_captures.SESSION}.jsonl"
    runtimes_kit.write(
        home,
        {
            f".claude/projects/-srv-claude/{CLAUDE}.jsonl": claude(),
            f".codex/sessions/2026/11/01/rollout-2026-11-01T12-00-00-{CODEX}.jsonl": codex(),
            f".gemini/tmp/f00/chats/session-2026-11-01T12-00-{GEMINI[:8]}.jsonl": _gemini(),
            f".qwen/projects/-repo/chats/{QWEN}.jsonl": _qwen(),
            f".pi/agent/{pi}": list(pi_captures.SESSION_ENTRIES),
            f".omp/agent/sessions/-repo/2026-08-19T16-10-00-000Z_{OMP}.jsonl": _omp(),
            f".openclaw/agents/main/sessions/{OPENCLAW}.jsonl": _openclaw(),
            **test_copilot_cli.CAPTURE,
            **test_kimi_cli.CAPTURE,
            **test_kimi_code.CAPTURE,
        },
    )
    tasks = "tasks/{}/ui_messages.json"
    documents_kit.write(
        home,
        {
            f"{CODE}/saoudrizwan.claude-dev/{tasks.format(TASK)}": test_cline_tasks.CLINE,
            f"{CODE}/rooveterinaryinc.roo-cline/{tasks.format(ROO)}": test_cline_tasks.ROO,
            **test_cline_sessions.CAPTURE,
            test_amp_threads.FILE: test_amp_threads.thread(*test_amp_threads.LISTED),
            **test_openhands.CAPTURE,
        },
    )
    for name, session in (("opencode", "ses_1"), ("kilo", "ses_2")):
        folder = home / ".local/share" / name
        folder.mkdir(parents=True)
        database = OpencodeDatabase(folder / f"{name}.db")
        database.session(session, directory=f"/srv/{name}")
        database.prompt(session, "go")
        database.answer(session, fresh=100, read=29_900)
        database.session(f"{session}b", directory=f"/srv/{name}", title="Gate")
        database.prompt(f"{session}b", "go")
        database.answer(f"{session}b", fresh=7_000)
        database.close()
    goose = GooseDatabase(home / ".local/share/goose/sessions/sessions.db")
    goose.session(test_goose.SESSION)
    goose.call(test_goose.SESSION, 16_253, 51, read=1_840, write=7)
    goose.close()
    cursor = test_cursor.CursorDatabase(home / ".config/Cursor/User/globalStorage/state.vscdb")
    cursor.conversation(test_cursor.CONVERSATION, 25_000)
    cursor.connection.close()


_M: Final = 1_000_000
SHOWN: Final = (
    Shown("claude-code", CLAUDE, 65_000, _M, 0, "/srv/claude", "fix the gate"),
    Shown("codex", CODEX, 41_000, 272_000, 0, "/srv/codex", "sort the list"),
    Shown("gemini", GEMINI, 20_000, None, 1, None, "mend the parser"),
    Shown("qwen-code", QWEN, 31_000, 262_144, 1, "/repo", "make the tests pass"),
    Shown("pi", pi_captures.SESSION, 31_003, _M, 1, "/repo", "make the tests pass"),
    Shown("oh-my-pi", OMP, 31_003, _M, 1, "/repo", "make the tests pass"),
    Shown("openclaw", OPENCLAW, 31_003, _M, 1, "/repo", "make the tests pass"),
    Shown("copilot-cli", test_copilot_cli.SESSION, 41_500, 200_000, 1, "/repo",
          "Read Meier's contract"),
    Shown("kimi-cli", test_kimi_cli.SESSION, 12_000, 262_144, 1, None, "Read Meier's contract"),
    Shown("kimi-code", test_kimi_code.SESSION, 9_000, None, 1, "/repo", "Read Meier's contract"),
    Shown("cline", TASK, 20_009, _M, 1, None, "make the tests pass"),
    Shown("cline", test_cline_sessions.SESSION, 20_000, _M, 1, "/repo", "mend the parser"),
    Shown("roo", ROO, 20_009, None, 1, None, "make the tests pass"),
    Shown("amp", test_amp_threads.THREAD, 20_009, 168_000, 1, "/srv/my repo", "mend the parser"),
    Shown("openhands", test_openhands.SESSION, 20_000, 128_000, 1, "/repo", "mend the parser"),
    Shown("opencode", "ses_1", 30_000, _M, 0, "/srv/opencode", "Parser"),
    Shown("opencode", "ses_1b", 7_000, _M, 0, "/srv/opencode", "Gate"),
    Shown("kilo", "ses_2", 30_000, _M, 0, "/srv/kilo", "Parser"),
    Shown("kilo", "ses_2b", 7_000, _M, 0, "/srv/kilo", "Gate"),
    Shown("goose", test_goose.NAMED, 16_253, _M, 0, "/repo", "Parser"),
    Shown("cursor", test_cursor.CONVERSATION, 25_000, 176_000, 0, None, "Parser"),
)  # fmt: skip
