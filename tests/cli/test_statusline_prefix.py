"""`contextgauge statusline` by hand: a session by its prefix."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.views_kit import records_of, write_views
from tests.commands import Command

ID = "258c7280-ae70-4798-800f-63464d01a85d"


@pytest.fixture
def home(command: Command, tmp_path: Path) -> Path:
    """A home folder with one transcript of 60,000 tokens."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 59_990}
    message = {"id": "msg_1", "model": "claude-sonnet-4-5", "usage": usage}
    line = {"type": "assistant", "sessionId": ID, "isSidechain": False, "message": message}
    path = tmp_path / ".claude" / "projects" / "-srv" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(line) + "\n")
    command.environment |= {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": ""}
    return tmp_path


@pytest.mark.usefixtures("home")
def test_a_prefix_of_an_id_stands_for_the_session(command: Command, home: Path) -> None:
    line = "claude-sonnet-4-5 ███░░░░░░░ 30% 60K/200K\n"
    for name in (ID, ID[:8], str(home / ".claude" / "projects" / "-srv" / f"{ID}.jsonl")):
        done = command("statusline", name)
        assert (done.returncode, done.stdout, done.stderr) == (0, line, "")
    done = command("statusline", "nobody")
    assert done.stdout == "·········· unknown\n"
    assert "nobody: no such file, and no session on this machine has or begins with" in done.stderr


def test_a_prefix_of_several_ids_names_them(command: Command, home: Path) -> None:
    folder = home / ".claude" / "projects" / "-srv"
    other = ID.replace("-ae70-", "-be70-")
    (folder / f"{other}.jsonl").write_text("")
    done = command("statusline", ID[:8])
    assert (done.returncode, done.stdout) == (1, "")
    assert f"2 sessions begin with {ID[:8]!r}: give more of the id ({ID}, {other})" in done.stderr


@pytest.mark.usefixtures("home")
def test_a_prefix_of_several_sessions_in_redis_names_them(
    command: Command, redis_url: str, key_prefix: str
) -> None:
    ids = [f"0e26ec2{number}-937e-482c-b889-bc126f996913" for number in range(7)]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 59_990}
    message = {"id": "msg_1", "model": "claude-sonnet-4-5", "usage": usage}
    line = json.dumps({"type": "assistant", "isSidechain": False, "message": message}).encode()
    records = records_of([(line, session_id) for session_id in ids])
    asyncio.run(write_views(redis_url, key_prefix, records))
    settings = {"REDIS_URL": redis_url, "KEY_PREFIX": key_prefix}
    done = command("statusline", "0e26", **settings)
    assert (done.returncode, done.stdout) == (1, "")
    shown = ", ".join(ids[:5])
    assert f"7 sessions begin with '0e26': give more of the id ({shown}, …)" in done.stderr
    assert " 30% 60K/200K" in command("statusline", "0e26ec21", **settings).stdout
    # A prompt gets its line, whatever it asks for.
    prompt = command("statusline", stdin='{"session_id": "0e26"}', **settings)
    assert (prompt.returncode, prompt.stdout) == (0, "·········· unknown\n")
