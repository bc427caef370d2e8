"""`contextgauge checkpoints` and `fork`: of files, of this machine, of kept conversations."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError
from schemas.records import Record
from streams import wiring
from streams.cli import fork as fork_command
from streams.cli.app import app
from streams.cli.inputs import sources_of
from streams.cli.transcripts import Replay, session_of
from streams.core.conversation.fold import ConversationFold
from streams.edge.files import known_forks
from tests.cli.test_context import conversation
from tests.core.given import Body, assistant, moment, user
from tests.edge.follower_kit import add
from tests.serve.kit import GrowingViews, sample_records
from tests.serve.text_kit import OneConversation

SESSION = "5b1f0c2e-0000-4000-8000-0000000000aa"
OWN = {"sessionId": SESSION, "messageUuid": "u0"}
PROJECT = ".claude/projects/-repo"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of someone without a pipeline."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONTEXTGAUGE_REDIS_URL", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def of_transcript(body: Body, at: float, **more: object) -> Body:
    common = {"isSidechain": False, "version": "2.1.332", "cwd": "/repo", "timestamp": moment(at)}
    return {**body, **common, **more}


def linked(*bodies: Body) -> list[Body]:
    """Return lines of a transcript, each after the one before it."""
    lines: list[Body] = []
    for number, body in enumerate(bodies):
        is_boundary = body.get("subtype") == "compact_boundary"
        parent = None if is_boundary or not lines else f"u{number - 1}"
        own = {"uuid": f"u{number}", "parentUuid": parent, "sessionId": SESSION}
        lines.append(of_transcript(body, number, **own))
    return lines


def boundary(trigger: str, tokens: int) -> Body:
    metadata = {"trigger": trigger, "preTokens": tokens}
    return {"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}


LINES = linked(
    user("Fix it."),
    assistant("1", read=166_000),
    boundary("auto", 167_000),
    user("What was done.", isCompactSummary=True),
    assistant("2", read=30_000),
    boundary("manual", 31_000),
    user("What was done then.", isCompactSummary=True),
    user("Go on."),
)


@pytest.fixture
def transcript(home: Path) -> Path:
    """A session that was compacted twice, where its runtime keeps it."""
    path = home / PROJECT / f"{SESSION}.jsonl"
    add(path, *map(json.dumps, LINES))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def shown(session: str | Path) -> dict[str, Any]:
    done = run("checkpoints", str(session), "--json")
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def counts(path: Path) -> tuple[int, int, int]:
    """Return a session's own and inherited compactions, and its own messages."""
    view = json.loads(run("status", str(path), "--json").stdout)
    own = view["compactions"]
    main = view["chains"]["main"]
    return own["manual"] + own["automatic"], own["inherited"], main["messages_total"]


def test_checkpoints_have_what_a_fork_would_hold(transcript: Path) -> None:
    listed = shown(SESSION[:8])  # without Redis, a session of this machine
    assert (listed["session_id"], listed["file"]) == (SESSION, str(transcript))
    first, second = listed["checkpoints"]
    assert (first["number"], first["trigger"], first["tokens_before"]) == (1, "auto", 167_000)
    assert first["before"] == {"messages": 2, "is_whole": True}
    assert second["after"] == {"messages": 1, "is_whole": True}
    table = run("checkpoints", str(transcript)).stdout
    assert table.splitlines()[1].split()[:4] == ["1", "auto", "167,000", "30,000"]
    assert "2 before, 1 after" in table


@pytest.mark.parametrize(("option", "inherited"), [("--before", 1), ("--after", 2)])
def test_an_installed_fork_inherits_and_counts_only_what_it_does_itself(
    transcript: Path, option: str, inherited: int
) -> None:
    done = run("fork", SESSION, "2", option, "--install")
    assert done.exit_code == 0, done.output
    (fork_id,) = done.stdout.split()
    path = transcript.with_name(f"{fork_id}.jsonl")
    assert f"cd /repo && claude --resume {fork_id}" in done.stderr
    assert path.stat().st_mode & 0o077 == 0
    assert counts(path) == (0, inherited, 0)
    last = json.loads(path.read_text().splitlines()[-2])
    own = {"sessionId": fork_id, "parentUuid": last["uuid"]}
    grown = of_transcript(assistant("3", read=40_000), 99, **own, uuid="own")
    ended = of_transcript(boundary("manual", 41_000), 100, **own, uuid="end")
    add(path, json.dumps(grown), json.dumps(ended))
    assert counts(path) == (1, inherited, 1)
    assert [each["session_id"] for each in shown(SESSION)["forks"]] == [fork_id]
    assert shown(path)["forked_from"] == SESSION


def copied(session: str, lines: list[Body], **more: object) -> list[str]:
    return [json.dumps({**each, "sessionId": session, **more}) for each in lines]


def test_an_origin_is_no_fork_of_its_fork(transcript: Path) -> None:
    (fork_id,) = run("fork", SESSION, "2", "--install").stdout.split()
    assert shown(transcript.with_name(f"{fork_id}.jsonl"))["forks"] == []
    unmarked = transcript.with_name("copy.jsonl")
    add(unmarked, *copied("copy", LINES))
    for path, other in ((transcript, "copy"), (unmarked, SESSION)):
        says_origin = {each["session_id"]: each["says_origin"] for each in shown(path)["forks"]}
        assert says_origin[other] is False
    assert says_origin == {SESSION: False}
    listed = run("checkpoints", str(transcript)).stdout
    assert "1 fork on this machine:" in listed
    assert "1 session on this machine with the same beginning:" in listed


def test_a_number_of_forks_is_the_least_where_not_all_transcripts_were_looked_at(
    transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        add(transcript.with_name(f"f{number}.jsonl"), *copied(f"f{number}", LINES, forkedFrom=OWN))
    add(transcript.with_suffix("") / "subagents" / "agent-a1.jsonl", json.dumps(LINES[1]))
    monkeypatch.setattr(known_forks, "_MOST_FILES", 1)
    assert "At least 1 fork on this machine:" in run("checkpoints", str(transcript)).stdout
    assert shown(transcript)["forks_are_all"] is False
    monkeypatch.setattr(known_forks, "_MOST_FILES", 2)  # subagents' transcripts are not of these
    assert "2 forks on this machine:" in run("checkpoints", str(transcript)).stdout
    assert shown(transcript)["forks_are_all"] is True


def test_of_several_sessions_in_a_folder_the_chosen_one_is_forked_where_it_is(home: Path) -> None:
    projects = home / ".claude" / "projects"
    for name in ("one", "two"):
        path = projects / f"-w-{name}" / f"{name}.jsonl"
        add(path, *copied(name, LINES, cwd=f"/w/{name}"))
        add(path.with_suffix("") / "subagents" / "agent-a1.jsonl", *copied(name, LINES[1:2]))
    one = ("--session", "two")
    listed = json.loads(run("checkpoints", str(projects), *one, "--json").stdout)
    assert listed["file"] == str(projects / "-w-two" / "two.jsonl")
    assert str(session_of(str(projects), "two").source.path) == listed["file"]
    done = run("fork", str(projects), "1", *one, "--install")
    (fork_id,) = done.stdout.split()
    assert (projects / "-w-two" / f"{fork_id}.jsonl").exists()
    assert "cd /w/two && " in done.stderr
    assert "and 1 transcript of subagents." in done.stderr


def test_limits_of_a_fork_are_reported(transcript: Path) -> None:
    add(transcript.with_suffix("") / "subagents" / "agent-a1.jsonl", json.dumps(LINES[1]))
    done = run("fork", SESSION, "1", "--to", "messages")
    assert [each["role"] for each in json.loads(done.stdout)] == ["user", "assistant"]
    assert "Left out: 6 later lines and 1 transcript of subagents." in done.stderr
    assert "With 167,000 tokens, this is where it was compacted" in done.stderr
    transcript.write_text("\n".join(map(json.dumps, LINES[1:])))
    done = run("fork", str(transcript), "1", "--to", "anthropic")
    assert "A part of what the model saw there is missing" in done.stderr
    assert "1 message, as 1 item in the form anthropic, just before compaction 1" in done.stderr
    assert [set(each) for each in json.loads(done.stdout)] == [{"role", "content"}]


@pytest.mark.usefixtures("transcript")
def test_the_marker_of_a_compaction_has_what_is_known_of_it_and_nothing_else() -> None:
    (message,) = json.loads(run("fork", SESSION, "1", "--after", "--to", "messages").stdout)
    (marker,) = message["content"]
    assert marker["timestamp"] == LINES[2]["timestamp"].replace(".000Z", "Z")
    assert (marker["context_size_before"], marker["messages_archived"]) == (167_000, None)


def test_a_prompt_that_only_the_queue_has_is_in_the_fork_where_the_model_saw_it(
    transcript: Path,
) -> None:
    queue = {"type": "queue-operation", "sessionId": SESSION, "timestamp": moment(1)}
    queued = [
        {**queue, "operation": "enqueue", "content": "Hurry."},
        {**queue, "operation": "remove"},
    ]
    transcript.write_text(
        "".join(f"{json.dumps(each)}\n" for each in [LINES[0], *queued, *LINES[1:]])
    )
    assert shown(SESSION)["checkpoints"][0]["before"] == {"messages": 3, "is_whole": True}
    done = run("fork", SESSION, "1")
    assert "3 messages in session" in done.stderr
    asked, prompt, answer, _ = map(json.loads, done.stdout.splitlines())
    assert (prompt["type"], prompt["message"]["content"]) == ("user", "Hurry.")
    assert [each["parentUuid"] for each in (prompt, answer)] == [asked["uuid"], prompt["uuid"]]
    assert prompt["cwd"] == "/repo"


def test_a_session_goes_on_in_another_runtime(transcript: Path, home: Path) -> None:
    done = run("fork", str(transcript), "2", "--to", "codex", "--install")
    (fork_id,) = done.stdout.split()
    (path,) = (home / ".codex" / "sessions").rglob(f"rollout-*{fork_id}.jsonl")
    assert counts(path)[:2] == (0, 1)
    assert shown(path)["forked_from"] == SESSION
    status = json.loads(run("status", str(path), "--json").stdout)
    assert status["identity"]["runtime"] == "codex"


def test_a_fork_overwrites_nothing(transcript: Path, tmp_path: Path) -> None:
    target = tmp_path / "fork.jsonl"
    assert run("fork", SESSION, "1", "--output", str(target)).exit_code == 0
    written = target.read_bytes()
    done = run("fork", SESSION, "1", "--output", str(target))
    assert target.read_bytes() == written
    assert "is there: a fork overwrites nothing" in str(done.exception)
    assert "Not a directory" in str(
        run("fork", SESSION, "1", "-o", str(transcript / "x")).exception
    )


@pytest.mark.usefixtures("transcript")
def test_a_fork_that_cannot_be_written_as_a_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "folder" / "fork.jsonl"
    target.parent.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert "No space left" in str(run("fork", SESSION, "1", "-o", str(target)).exception)
        assert list(target.parent.iterdir()) == []
    with monkeypatch.context() as patch:  # as on a file system without links
        patch.setattr(os, "link", lambda *_: (tmp_path / "nothing").stat())
        assert run("fork", SESSION, "1", "-o", str(target)).exit_code == 0
    assert list(target.parent.iterdir()) == [target]
    assert counts(target)[:2] == (0, 0)


@pytest.mark.parametrize("arguments", [("fork", SESSION, "1", "-o"), ("checkpoints",)])
@pytest.mark.usefixtures("transcript")
def test_the_folder_of_an_unknown_user_is_not_there(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "~nosuch/x.jsonl")
    assert isinstance(done.exception, ConfigError)
    assert "no such file" in str(done.exception).lower()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([SESSION, "3"], "has no compaction 3: it has 1, 2"),
        ([SESSION, "1", "--to", "cobol"], "--to cobol: one of "),
        ([SESSION, "1", "--install", "--output", "x"], "without --output"),
        ([SESSION, "1", "--install", "--to", "messages"], "with --to "),
        (["0"], "no session on this machine begins with '0'"),
        (["5", "1"], "begin with"),
        (["-", "1"], "name a file"),
    ],
)
def test_what_cannot_be_forked_is_refused_with_the_reason(
    transcript: Path, arguments: list[str], reason: str
) -> None:
    add(transcript.with_name(f"{SESSION[:-2]}bb.jsonl"), json.dumps(LINES[0]))
    command = ["fork", *arguments] if len(arguments) > 1 else ["checkpoints", *arguments]
    done = run(*command)
    assert done.exit_code != 0
    assert reason in str(done.exception)


def test_a_terminal_gets_no_lines_unless_it_asks_for_them(
    transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_command, "is_terminal", lambda: True)
    assert "add --install" in str(run("fork", str(transcript), "1").exception)


def test_a_session_without_compactions_has_nothing_to_fork_from(home: Path) -> None:
    path = home / "one.jsonl"
    add(path, json.dumps(LINES[0]), json.dumps(LINES[1]))
    assert run("checkpoints", str(path)).stdout == "No compaction yet: there is no checkpoint.\n"
    assert "no compaction to fork from yet" in str(run("fork", str(path), "1").exception)


def test_a_session_of_a_folder_with_a_long_name_is_written_elsewhere(home: Path) -> None:
    path = home / "one.jsonl"
    add(path, *(json.dumps({**each, "cwd": "/a" * 101}) for each in LINES))
    assert "is too long: write it with --output" in str(
        run("fork", str(path), "1", "--install").exception
    )


def test_a_runtime_without_a_form_of_its_own_gives_messages(
    transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_command, "_RUNTIMES", {})
    assert run("fork", str(transcript), "1").stdout.startswith("[")
    assert "--install: add --to " in str(run("fork", str(transcript), "1", "--install").exception)


def kept_session(
    monkeypatch: pytest.MonkeyPatch,
    kept: SessionConversation | None,
    records: list[Record] | None = None,
) -> str:
    """Let the views and kept conversations have a session; return its id."""
    views, records = GrowingViews(), records or sample_records()
    views.add(*records)
    compacted = next(each for each in records if each.kind == "compact_boundary")
    known = conversation(is_cut=False) if kept is None else kept
    reader = OneConversation("" if kept is None else compacted.data.session_id, known)
    monkeypatch.setenv("CONTEXTGAUGE_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(wiring, "redis_views", lambda _settings: views)
    monkeypatch.setattr(wiring, "redis_conversations", lambda _settings: reader)
    return compacted.data.session_id


@pytest.mark.usefixtures("home")
def test_a_session_elsewhere_is_forked_from_its_kept_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = kept_session(monkeypatch, conversation(is_cut=False))
    first, *_ = shown(session)["checkpoints"]
    assert (first["before"], first["after"]) == (
        {"messages": 1, "is_whole": True},
        {"messages": 1, "is_whole": True},
    )
    done = run("fork", session, "1", "--to", "claude-code")
    first, *_ = map(json.loads, done.stdout.splitlines())
    assert first["message"]["content"] == "turn 0"
    assert first["forkedFrom"]["sessionId"] == session


def test_a_compaction_is_forked_by_what_it_is_and_not_by_its_number(
    transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Replay(sources_of([str(transcript)])).records()
    kept_session(monkeypatch, None, [each for block in records for each in block])
    transcript.write_text("".join(f"{json.dumps(each)}\n" for each in LINES[3:]))
    first, second = shown(SESSION)["checkpoints"]
    assert (first["number"], first["before"], second["number"]) == (1, None, 2)
    assert second["before"] == {"messages": 2, "is_whole": True}
    assert "nor its messages up to that compaction" in str(run("fork", SESSION, "1").exception)
    done = run("fork", SESSION, "2", "--to", "messages")
    assert "What was done." in done.stdout
    assert "What was done then." not in done.stdout


@pytest.mark.usefixtures("home")
def test_a_kept_conversation_that_begins_later_has_other_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fold = ConversationFold()
    fold.add(LINES[0], 0)
    fold.add(LINES[2], 1)
    fold.add(LINES[3], 2)
    session = kept_session(monkeypatch, fold.result)
    assert not any(each["before"] for each in shown(session)["checkpoints"])


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_session_of_which_nothing_is_here_cannot_be_forked(
    monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    silent = conversation(is_cut=False)._replace(state="without_text") if is_kept else None
    session = kept_session(monkeypatch, silent)
    done = run("fork", session, "1")
    reason = "published without text" if is_kept else "nor its messages up to that compaction"
    assert reason in str(done.exception)
    if not is_kept:
        listed = run("checkpoints", session)
        assert "not here" in listed.stdout
        assert "so it cannot be forked" in listed.stderr
