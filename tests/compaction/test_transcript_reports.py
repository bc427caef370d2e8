"""What a runtime reports in its transcript: sizes in lines of their own, and windows."""

from contextgauge.compaction.reading.transcripts import read_conversation
from tests.compaction.test_transcripts import answer, claude, lines


def item(kind: str, **fields: object) -> dict[str, object]:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def counted(total: int, used: int) -> dict[str, object]:
    """Return what Codex reports after an answer."""
    info = {
        "total_token_usage": {"input_tokens": total},
        "last_token_usage": {"input_tokens": used, "output_tokens": 5},
        "model_context_window": 258_400,
    }
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


GO = item("message", role="user", content=[{"type": "input_text", "text": "go"}])
CALL = item("function_call", call_id="c", name="shell", arguments="{}")
OUTPUT = item("function_call_output", call_id="c", output="ok")
DONE = item("message", role="assistant", content=[{"type": "output_text", "text": "done"}])


def contexts(*values: object) -> list[int | None]:
    messages = read_conversation(lines(*values)).request.messages
    return [None if each.usage is None else each.usage.context for each in messages]


def test_what_codex_reports_of_an_answer_is_its_usage() -> None:
    assert contexts(GO, CALL, counted(1, 100), OUTPUT, counted(1, 999), DONE, counted(2, 200)) == [
        None,
        100,
        None,
        200,
    ]
    assert contexts(GO, CALL, OUTPUT, counted(1, 100)) == [None, 100, None]
    nothing = {"type": "event_msg", "payload": {"type": "token_count", "info": None}}
    assert contexts(GO, DONE, nothing, counted(1, 0)) == [None, None]
    assert contexts(GO, counted(1, 100)) == [None]


def test_items_after_a_report_are_of_the_next_answer() -> None:
    assert contexts(GO, DONE, counted(1, 100), CALL, counted(2, 200)) == [None, 100, 200]


def test_what_codex_reported_before_a_compaction_is_no_size_of_what_it_left() -> None:
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "kept"}],
    }
    payload = {"message": "", "replacement_history": [message]}
    compacted = {"type": "compacted", "payload": payload}
    assert contexts(GO, DONE, counted(1, 100), compacted, counted(1, 40)) == [None]


def test_the_window_is_that_which_the_runtime_reported_last_of_the_model() -> None:
    assert read_conversation(lines(GO, DONE, counted(1, 100))).window_tokens == 258_400
    started = {"type": "task_started", "model_context_window": 1_000}
    later = {"type": "event_msg", "payload": started}
    assert read_conversation(lines(GO, counted(1, 100), later)).window_tokens == 1_000
    usage: dict[str, dict[str, object]] = {
        "claude-x[1m]": {"contextWindow": 1_000_000},
        "claude-h": {"contextWindow": 200_000},
    }
    ended = {"type": "result", "modelUsage": usage}
    for model, window in (("claude-x", 1_000_000), ("claude-h", 200_000), ("claude-y", None)):
        read = read_conversation(lines(claude("user", "go"), answer(model=model), ended))
        assert read.window_tokens == window
    usage["claude-x[1m]"]["canonicalModel"] = "claude-z"
    read = read_conversation(lines(claude("user", "go"), answer(model="claude-z"), ended))
    assert read.window_tokens == 1_000_000
