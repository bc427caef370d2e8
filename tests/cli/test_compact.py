"""`contextgauge compact FILE`: what is written, and what is printed."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from contextgauge.compaction import recall_tool_schema
from contextgauge.compaction.formats import write_messages
from streams.cli.app import app
from tests.compaction.conversations import session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    messages = write_messages(session(20, characters=2_000), "openai-chat")
    (tmp_path / "talk.json").write_text(json.dumps(messages))
    return tmp_path


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["compact", *arguments], input=text)


def test_the_compacted_conversation_is_written_next_to_the_receipt(folder: Path) -> None:
    result = run("talk.json", "--window", "8000")
    assert result.exit_code == 0, result.output
    before = json.loads((folder / "talk.json").read_text())
    after = json.loads((folder / "talk.compacted.json").read_text())
    assert after[0] == before[0]
    assert len(after) < len(before) == 81
    assert after[-1] == before[-1]
    assert "Before" in result.stdout
    assert "summarise" in result.stdout
    assert "Written to talk.compacted.json" in result.stdout


def test_standard_output_has_nothing_but_the_conversation(folder: Path) -> None:
    result = run("-", "--window", "8000", text=(folder / "talk.json").read_text())
    assert json.loads(result.stdout)[0]["role"] == "system"
    assert "Before" in result.stderr
    assert not (folder / "-.compacted.json").exists()


def test_the_receipt_as_json_has_its_steps(folder: Path) -> None:
    result = run("talk.json", "--window", "8000", "--json", "-o", "out.json")
    receipt = json.loads(result.stdout)
    assert receipt["number"] == 1
    assert receipt["summariser"] == "extractive"
    assert receipt["steps"][-1]["rung"] == "summarise"
    assert (folder / "out.json").exists()


def test_what_is_written_names_no_recall_though_the_request_has_a_tool_of_this_name(
    folder: Path,
) -> None:
    messages = [{"role": "user", "content": f"{n}: " + "x" * 4_000} for n in range(30)]
    body = {"model": "m", "messages": messages, "tools": [recall_tool_schema("openai-chat")]}
    (folder / "body.json").write_text(json.dumps(body))
    result = run("body.json", "--window", "20000")
    assert result.exit_code == 0, result.output
    after = json.loads((folder / "body.compacted.json").read_text())
    assert "[Compaction 1" in str(after["messages"])
    assert "recall" not in str(after["messages"])


def test_an_existing_file_is_overwritten_only_by_force(folder: Path) -> None:
    (folder / "talk.compacted.json").write_text("mine")
    result = run("talk.json")
    assert result.exit_code != 0
    assert "--force" in str(result.exception)
    assert (folder / "talk.compacted.json").read_text() == "mine"
    assert run("talk.json", "--force").exit_code == 0


def test_a_short_conversation_has_nothing_to_compact(folder: Path) -> None:
    (folder / "short.json").write_text('[{"role": "user", "content": "hi"}]')
    result = run("short.json")
    assert result.exit_code == 1
    assert "Nothing to compact: 1 of 1 messages are recent" in result.stderr
    assert not (folder / "short.compacted.json").exists()


def test_short_older_messages_are_no_recent_ones(folder: Path) -> None:
    short = [{"role": "user", "content": f"hi {number}"} for number in range(12)]
    (folder / "short.json").write_text(json.dumps(short))
    result = run("short.json", "--keep", "2")
    assert "Nothing to compact: the 10 older messages have 30 tokens" in result.stderr


def test_a_receipt_names_window_and_goal_and_what_is_not_messages(folder: Path) -> None:
    _write_body(folder, "x" * 4_000)
    result = run("body.json", "--window", "8000")
    assert result.exit_code == 0, result.output
    assert "Window 8,000 tokens (given), goal 4,000" in result.stdout
    assert "1,000 tokens" in result.stdout
    assert "The goal was not reached" not in result.stderr


def test_a_profile_without_a_goal_shows_none(folder: Path) -> None:
    shown = run(str(folder / "talk.json"), "--profile", "seed-001", "--window", "8000").output
    assert "Window 8,000 tokens (given)\n" in shown
    assert "goal" not in shown


def test_a_conversation_that_still_does_not_fit_is_no_silent_success(folder: Path) -> None:
    _write_body(folder, "x" * 40_000)
    assert "still does not fit the window" in run("body.json", "--window", "8000").stderr


def _write_body(folder: Path, system: str) -> None:
    messages = write_messages(session(20, characters=2_000)[1:], "anthropic")
    body = {"model": "m", "max_tokens": 1_000, "system": system, "messages": messages}
    (folder / "body.json").write_text(json.dumps(body))


def write_transcript(path: Path, answer: dict[str, Any], words: int) -> None:
    """Write twenty turns of so many words; `answer` is what the assistant's messages have too."""
    lines = [
        {
            "type": role,
            "message": {
                "role": role,
                "content": [{"type": "text", "text": f"{number} " * words}],
                **({**answer, "id": f"msg_{number}"} if role == "assistant" else {}),
            },
        }
        for number in range(20)
        for role in ("user", "assistant")
    ]
    path.write_text("\n".join(map(json.dumps, lines)))


def test_what_only_answers_have_is_not_written(folder: Path) -> None:
    answer = {"id": "msg_1", "type": "message", "stop_reason": "end_turn", "usage": {}}
    write_transcript(folder / "own.jsonl", answer, words=500)
    result = run("own.jsonl", "--window", "8000")
    assert result.exit_code == 0, result.output
    after = json.loads((folder / "own.compacted.json").read_text())
    assert {tuple(sorted(each)) for each in after} == {("content", "role")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', "the JSON is no conversation"),
        ("[]", "the conversation has no messages"),
        ('{"messages": []}', "the conversation has no messages"),
        (" \n", "the file is empty"),
        ('[\n{"role": "user",\n"content": "hi"},\n{]', "not a supported conversation"),
    ],
)
def test_an_error_names_the_file_and_what_is_wrong(folder: Path, text: str, message: str) -> None:
    (folder / "bad.json").write_text(text)
    shown = str(run("bad.json").exception)
    assert shown.startswith(f"bad.json: {message}")
    assert ("; the JSON cannot be read: " in shown and "line 4" in shown) == ("hi" in text)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("no/such/folder.json", "cannot be written: No such file or directory"),
        ("talk.json/x.json", "cannot be written: Not a directory"),
        (".", "cannot be written: Is a directory"),
    ],
)
def test_where_nothing_can_be_written_nothing_is_compacted(
    folder: Path, output: str, message: str
) -> None:
    result = run("talk.json", "--window", "8000", "--force", "-o", output)
    assert message in str(result.exception)
    assert "Compaction complete" not in result.stderr
    assert [each.name for each in folder.iterdir()] == ["talk.json"]


@pytest.mark.parametrize("keep", [0, 1, 20])
def test_exactly_as_many_messages_stay_as_are_kept(folder: Path, keep: int) -> None:
    before = json.loads((folder / "talk.json").read_text())
    result = run("talk.json", "--window", "8000", "--keep", str(keep))
    assert result.exit_code == 0, result.output
    after = json.loads((folder / "talk.compacted.json").read_text())
    assert len(after) == 2 + keep
    assert [each["role"] for each in after[2:]] == [each["role"] for each in before[81 - keep :]]
    assert after[2:][-1:] == before[81 - keep :][-1:]


@pytest.mark.parametrize(("options", "hint"), [((), False), (("--keep", "60"), True)])
def test_less_to_keep_is_a_hint_only_where_it_was_asked_for(
    folder: Path, options: tuple[str, ...], hint: bool
) -> None:
    _write_body(folder, "x" * 40_000)
    shown = run("body.json", "--window", "8000", *options).stderr
    assert ("less --keep may help" in shown) == hint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.json",), "missing.json: cannot be read: No such file or directory"),
        (("talk.json", "--profile", "seed-9"), "unknown profile 'seed-9'"),
        (("talk.json", "--summariser", "gpt"), "PROVIDER:MODEL"),
        (("talk.json", "--url", "http://x"), "name it with --summariser"),
        (("talk.json", "--key-variable", "KEY"), "name it with --summariser"),
        (
            ("talk.json", "--summariser", "openai:m", "--key-variable", "NO_SUCH_KEY"),
            "the environment has no NO_SUCH_KEY",
        ),
        (("talk.json", "-o", "no/such/folder.json"), "cannot be written"),
        (("talk.json", "--if-due", "--instructions", "x"), "--if-due takes no --instructions"),
    ],
)
def test_wrong_arguments_are_errors_that_say_what_to_do(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in str(result.exception)
    assert [each.name for each in folder.iterdir()] == ["talk.json"]


def test_the_window_is_that_of_the_model_which_a_transcript_names(folder: Path) -> None:
    lines = [
        {
            "type": role,
            "sessionId": "s",
            "message": {"role": role, "model": "claude-opus-4-5", "content": f"{n} " * 500},
        }
        for n in range(20)
        for role in ("user", "assistant")
    ]
    (folder / "talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = run("talk.jsonl", "--json", "-o", "out.json")
    assert json.loads(result.stdout)["window"][0] == 200_000


def test_a_window_that_the_runtime_reported_wins_over_the_catalogs(folder: Path) -> None:
    write_transcript(folder / "own.jsonl", {"model": "claude-opus-4-5"}, words=500)
    ended = {"type": "result", "modelUsage": {"claude-opus-4-5": {"contextWindow": 150_000}}}
    with (folder / "own.jsonl").open("a") as file:
        file.write(f"\n{json.dumps(ended)}")
    assert "Window 150,000 tokens (runtime)" in run("own.jsonl").stdout
    shown = run("own.jsonl", "--window", "140000", "--force").stdout
    assert "Window 140,000 tokens (given)" in shown


def test_a_receipt_says_what_a_reported_size_has_beyond_the_messages(folder: Path) -> None:
    answer = {"id": "m", "type": "message", "usage": {"input_tokens": 30_000, "output_tokens": 10}}
    write_transcript(folder / "own.jsonl", answer, words=300)
    shown = [" ".join(line.split()) for line in run("own.jsonl").stdout.splitlines()]
    before, after, saved, rest = (int(line.split()[1].replace(",", "")) for line in shown[:4])
    assert [line.split()[0] for line in shown[:4]] == ["Before", "After", "Saved", "Rest"]
    assert shown[0] == "Before 30,010 tokens 30,000 reported + 10 since 40 messages"
    assert saved == before - after
    assert "what the estimate of the messages lacks" in shown[3]
    assert "Steps, with estimates of the messages alone:" in shown
    step = next(line for line in shown if line.startswith("summarise"))
    assert rest == after - int(step.split()[3].replace(",", ""))


def test_the_lines_of_one_answer_are_one_message(folder: Path) -> None:
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": "go"},
        *({"role": "assistant", "id": "m", "content": [{"type": "text", "text": "a"}]},) * 2,
    ]
    calls = [{"type": "tool_use", "id": f"t{number}", "name": "Bash"} for number in range(3)]
    for each in calls:
        result = {"type": "tool_result", "tool_use_id": each["id"], "content": "ok " * 8_000}
        turns.append({"role": "assistant", "id": "n", "content": [each]})
        turns.append({"role": "user", "content": [result]})
    lines = [
        {"type": each["role"], "uuid": str(n), "message": each} for n, each in enumerate(turns)
    ]
    (folder / "own.jsonl").write_text("\n".join(map(json.dumps, lines)))
    stdout = run("own.jsonl", "--keep", "2").stdout
    shown = [" ".join(line.split()) for line in stdout.splitlines()]
    assert shown[0].endswith("estimated 6 messages, 3 of them tool results")
    step = next(line for line in shown if line.startswith("summarise"))
    assert "5 messages older messages" in step


def test_steps_above_a_smaller_reported_size_say_so(folder: Path) -> None:
    answer = {"type": "message", "usage": {"input_tokens": 3_000, "output_tokens": 10}}
    write_transcript(folder / "own.jsonl", answer, words=300)
    assert "alone, above what was reported:" in run("own.jsonl").stdout


def test_results_without_a_call_are_named_where_they_are_written(folder: Path) -> None:
    messages = json.loads((folder / "talk.json").read_text())
    late = {"role": "tool", "tool_call_id": "call-x", "content": "ok"}
    (folder / "late.json").write_text(json.dumps([*messages, late]))
    (folder / "early.json").write_text(json.dumps([messages[0], late, *messages[1:]]))
    said = "1 tool result without a call before it (call-x): written as text"
    for option in ((), ("--json",)):
        assert said in run("late.json", "--window", "8000", "--force", *option).stderr
    assert "without a call" not in run("early.json", "--window", "8000").stderr


@pytest.mark.parametrize(("mode", "written"), [(0o600, 0o600), (0o400, 0o600), (0o700, 0o600)])
def test_what_is_written_of_a_private_conversation_is_private_and_can_be_written_again(
    folder: Path, mode: int, written: int
) -> None:
    (folder / "talk.json").chmod(mode)
    assert run("talk.json", "--window", "8000").exit_code == 0
    assert stat.S_IMODE((folder / "talk.compacted.json").stat().st_mode) == written


def test_a_file_is_compacted_only_where_that_is_due(folder: Path) -> None:
    options = ("--if-due", "--profile", "seed-004", "--window")
    early = run("talk.json", *options, "1000000")
    assert early.exit_code == 1
    assert early.stderr == "Not due: Context: 1% (10K/1M tokens)\n"
    assert not (folder / "talk.compacted.json").exists()
    due = run("talk.json", *options, "4000")
    assert due.exit_code == 0, due.output
    assert "strategy: compact)...\n" in due.stderr
    assert "📦 Auto-compacting (" in due.stderr
    assert "✓ Compaction complete (compact)" in due.stderr
