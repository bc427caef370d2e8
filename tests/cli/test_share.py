"""`contextgauge share`: a session for others, without what says whose it is."""

import json
import re
from pathlib import Path

import pytest

from contextgauge.errors import StopError
from schemas.views import STREAM_ENTRIES
from streams.cli import stored
from streams.cli.session_checkpoints import checkpoint_session
from streams.cli.share.cleaning import Cleaning, names_of
from streams.cli.share.share_command import share
from tests.commands import Command
from tests.core.history import History
from tests.linear_time import is_linear
from tests.runtimes.opencode_database import OpencodeDatabase

CANARIES = (
    "canary-prompt",
    "canary-answer",
    "canary-result",
    "canary-summary",
    "canary-error",
    "canary-tool",
    "canary-argument",
    "canary-type",
    "canary-version",
    "canary-user",
    "canary-project",
    "canary-model",
    "canary-branch",
    "canary@example.org",
    "sk-canary0123456789abcdef",
    "canary-session",
    "canary-agent",
)
"""Each stands in the transcript where something of that name stands."""

HOMES = "/" + "home"
HOME = f"{HOMES}/canary-user"


def transcript(folder: Path) -> Path:
    """Write a session that has a canary in each place where a text or a name may be."""
    lines: list[dict[str, object]] = []

    def add(type_: str, minute: int, **fields: object) -> None:
        lines.append(
            {
                "type": type_,
                "sessionId": "canary-session",
                "uuid": f"canary-{len(lines)}",
                "timestamp": f"2031-07-09T10:{minute:02}:00.000Z",
                "cwd": f"{HOME}/canary-project",
                "version": "2.0.0-canary-version",
                "gitBranch": "canary-branch",
                "isSidechain": False,
                **fields,
            }
        )

    def user(minute: int, content: object) -> None:
        add("user", minute, message={"role": "user", "content": content})

    def answer(number: int, minute: int, tokens: int, content: list[object]) -> None:
        add(
            "assistant",
            minute,
            message={
                "id": f"msg_{number}",
                "role": "assistant",
                "model": "canary-model",
                "content": content,
                "usage": {
                    "input_tokens": 5,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": tokens - 5,
                    "output_tokens": 20,
                },
            },
        )

    user(0, f"canary-prompt: mail canary@example.org, see {HOME}/canary-project/a.py")
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "canary-tool",
        "input": {"command": "canary-argument", "key": "sk-canary0123456789abcdef"},
    }
    answer(1, 1, 20_000, [{"type": "text", "text": "canary-answer"}, call])
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "canary-result"}
    user(2, [result])
    answer(2, 3, 165_000, [{"type": "text", "text": "canary-answer"}])
    add(
        "system",
        4,
        subtype="compact_boundary",
        compactMetadata={"trigger": "auto", "preTokens": 165_000, "why": "canary-error"},
    )
    user(4, "This session is being continued from a previous conversation. canary-summary")
    lines[-1]["isCompactSummary"] = True
    answer(3, 5, 30_000, [{"type": "text", "text": "canary-answer"}])
    path = folder / "canary-session.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def test_nothing_of_a_text_or_a_name_leaves_without_text(command: Command, tmp_path: Path) -> None:
    target = tmp_path / "shared.html"
    done = command("share", str(transcript(tmp_path)), "--out", str(target), "--yes")
    assert done.returncode == 0, done.stderr
    page = target.read_text("utf-8")
    assert [each for each in (*CANARIES, "canary", "2031", HOME) if each in page] == []
    assert '"used":165000' in page
    assert "Compaction 1, auto: 165K to 30K tokens" in page


def test_texts_leave_on_request_without_secrets_paths_and_names(
    command: Command, tmp_path: Path
) -> None:
    target = tmp_path / "shared.html"
    arguments = ("share", str(transcript(tmp_path)), "--out", str(target), "--text", "--yes")
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    page = target.read_text("utf-8")
    said = {"canary-prompt", "canary-answer", "canary-result", "canary-summary", "canary-argument"}
    tools = {"canary-tool"}  # the model's words, not a person's
    assert {each for each in CANARIES if each in page} == said | tools
    assert HOME not in page
    assert re.search("taken out of texts: .*secret 1", done.stderr)
    assert re.search(r"  texts: [0-9]+ texts of [0-9]+ characters, 0 shortened\n", done.stderr)
    assert re.search("  left out: .*, dates, errors, except in the texts\n", done.stderr)
    steps = json.loads(page.partition('id="steps">')[2].partition("</script>")[0])
    assert [each["of"] for each in steps[0]["texts"]] == ["user", "assistant", "tool call"]
    assert [each["of"] for each in steps[1]["texts"]] == ["tool result", "assistant"]


def test_what_leaves_is_shown_and_asked_for_first(command: Command, tmp_path: Path) -> None:
    target = tmp_path / "shared.html"
    done = command("share", str(transcript(tmp_path)), "--out", str(target))
    assert done.returncode == 2
    assert "responses: 3" in done.stderr
    assert "texts: none" in done.stderr
    assert "add --yes" in done.stderr
    assert not target.exists()


def test_a_session_of_this_machine_is_found_by_its_id(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CONTEXTGAUGE_REDIS_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    projects = tmp_path / ".claude" / "projects" / "-home"
    projects.mkdir(parents=True)
    first = "258c7280-1111-4111-8111-111111111111"
    transcript(projects).rename(projects / f"{first}.jsonl")
    target = tmp_path / "shared.html"
    share(first[:5], target=target, yes=True)
    assert '"used":165000' in target.read_text("utf-8")
    with pytest.raises(StopError, match="no session on this machine begins with 'other'"):
        share("other", target=target, yes=True)
    transcript(projects).rename(projects / f"{first.replace('1', '2')}.jsonl")
    with pytest.raises(StopError, match="2 sessions begin with '258c7'"):
        share(first[:5], target=target, yes=True)


def test_a_session_of_a_runtimes_database_is_found_by_its_id(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CONTEXTGAUGE_REDIS_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    database = OpencodeDatabase(folder / "opencode.db")
    for session, tokens in (("ses_first", 1_000), ("ses_other", 2_000)):
        database.session(session)
        database.answer(session, fresh=tokens)
    database.close()
    target = tmp_path / "shared.html"
    share("ses_oth", target=target, yes=True)
    assert '"used":2000' in target.read_text("utf-8")
    assert checkpoint_session("ses_f", None).view.session_id == "ses_first"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"see {HOMES}/ann/garden/x.py:12", "see [path]:12"),
        (r"in C:\Users\ann\x.py and \\share\dir\x", "in [path] and [path]"),
        ("by Ann and annual", "by [name] and annual"),
        ("~/notes.md, ./a.py, a/b.py", "[path], ./a.py, a/b.py"),
        ("ann@example.org or git@host.example:ann/site.git", "[address] or [address]"),
        ("https://host.example/x?y=1, </div>", "[address] </div>"),
        ("key sk-0123456789abcdefghij", "key [redacted key]"),
        ("drwxr-xr-x. 2 beth staff 96 a\nby beth", "drwxr-xr-x. 2 [name] staff 96 a\nby [name]"),
        (f"... of {HOMES}/...", "... of [path]"),
        (
            r'{"command": "a\n/srv/x/y b\nann\nsk-0123456789abcdefghij"}',
            r'{"command": "a\n[path] b\n[name]\n[redacted key]"}',
        ),
        (r'{"command": "a\nD:\\work\\ann\\x.py"}', r'{"command": "a\n[path]"}'),
        (f"-v /a:{HOMES}/ann/site PATH=/usr/bin:/srv/x", "-v [path]:[path] PATH=[path]:[path]"),
        (f'open "{HOMES}/ann/My Papers/Will.md" now', 'open "[path]" now'),
        (rf'{{"path": "{HOMES}/ann/My Papers/Will.md"}}', '{"path": "[path]"}'),
        (rf"cat {HOMES}/ann/My\ Papers/Will.md now", "cat [path] now"),
        ("ping6 fe80::1%eth0, [2001:db8::8a2e:370:7334]:8", "ping6 [address]%eth0, [[address]]:8"),
        ("from fe80::aede:48ff:fe00:1122: icmp_seq=1", "from [address]: icmp_seq=1"),
        ("IP6 fe80::aede:48ff:fe00:1122.5353 > ff02::fb1.53", "IP6 [address] > [address]"),
        ("IPv6:2001:db8::1, at 0:1b:44:1:3a:b7", "IPv6:[address], at [address]"),
        ("001b.4411.3ab7 is v1.2.3 of 2026.11.29", "[address] is v1.2.3 of 2026.11.29"),
        ("2001:0db8:0000:0000:0000:8a2e:0370:7334 is up", "[address] is up"),
        (r'{"ether": "\n00:1b:44:11:3a:b7"}', r'{"ether": "\n[address]"}'),
        ("a[1::2], std::face, 12:34:56, 1:2:3", "a[1::2], std::face, 12:34:56, 1:2:3"),
        ("ssh 192.168.1.17 and version 2.1.332", "ssh [address] and version 2.1.332"),
        (r'{"text": "E\n10.1.2.3 db\t192.168.0.7."}', r'{"text": "E\n[address] db\t[address]."}'),
    ],
)
def test_texts_are_cleaned_by_shape(text: str, clean: str) -> None:
    names = names_of([text], [f"{HOMES}/ann/garden"], ())
    assert Cleaning(names).text(text) == clean


def test_the_newest_part_of_a_session_is_not_presented_as_the_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History()
    early = history.boundary()
    records = [early, *(history.reading(1_000 + each) for each in range(STREAM_ENTRIES))]
    monkeypatch.setenv("CONTEXTGAUGE_REDIS_URL", "redis://unused")
    monkeypatch.setattr(stored, "read_views", lambda _: records)
    target = tmp_path / "shared.html"
    share("s-1", target=target, yes=True)
    text = target.read_text("utf-8")
    assert "the newest 2,000 responses" in text
    assert "Compaction 1" not in text  # its responses are not there
    assert "Older responses were no longer stored, and times count from the first one" in text
    shown = " ".join(capsys.readouterr().err.split())
    assert "responses: the newest 2,000 (older ones are not stored" in shown
    records = records[:-1]
    share("s-1", target=target, yes=True)
    text = target.read_text("utf-8")
    assert "newest" not in text
    assert "Compaction 1" in text


def test_a_session_without_a_response_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "compacted.jsonl"
    lines = transcript(tmp_path).read_text().splitlines(keepends=True)
    path.write_text("".join(each for each in lines if "compact_boundary" in each))
    with pytest.raises(StopError, match="no response has a size"):
        share(str(path), target=tmp_path / "shared.html", yes=True)


@pytest.mark.parametrize(
    "unit", ["/a", '"/a b', '"/a b/', "\\n/", "1.", "a@b.", "C:\\\\", "/a\\ ", "a://", "/home/"]
)
def test_cleaning_takes_linear_time(unit: str) -> None:
    assert is_linear(lambda size: Cleaning(["ann"]).text(unit * (size // len(unit))), 200_000)
