"""Objects of the Claude Agent SDK, written back as the stream spells them.

Where the SDK is installed its own parser makes the objects; else stand-ins of its classes do.
"""

from dataclasses import dataclass, field, make_dataclass

import pytest

from contextgauge.claude_sdk import is_claude_object, lacks_usage, stream_body

MODULE = "claude_agent_sdk.types"


def made(name: str, /, **values: object) -> object:
    """Return an object of a class that looks like the SDK's of that name."""
    made_class = make_dataclass(name, [(key, object) for key in values])
    made_class.__module__ = MODULE
    instance: object = made_class(**values)
    return instance


@dataclass
class RateLimitInfo:
    """As in the SDK: `raw` is empty where the frame was not kept."""

    status: str
    resets_at: int | None = None
    raw: dict[str, object] = field(default_factory=dict)


USAGE = {"input_tokens": 3, "cache_read_input_tokens": 9, "iterations": [{"type": "message"}]}


def test_a_system_message_gives_its_stored_frame() -> None:
    frame = {"type": "system", "subtype": "status", "status": None, "compact_result": "success"}
    assert stream_body(made("SystemMessage", subtype="status", data=frame)) == frame
    assert stream_body(made("HookEventMessage", subtype="hook_started", data=frame)) == frame


def test_a_response_gives_exactly_the_fields_of_its_class() -> None:
    blocks = [
        made("TextBlock", text="hi"),
        made("ThinkingBlock", thinking="t", signature="s"),
        made("ToolUseBlock", id="u", name="Read", input={"path": "x"}),
        made("ServerToolUseBlock", id="v", name="web_search", input={}),
        made("ServerToolResultBlock", tool_use_id="v", content={"type": "advisor_result"}),
        {"type": "of_a_later_version"},
    ]
    message = made(
        "AssistantMessage",
        content=blocks,
        model="claude-sonnet-5",
        parent_tool_use_id=None,
        error=None,
        usage=USAGE,
        message_id="msg_1",
        stop_reason="end_turn",
        session_id="s-1",
        uuid="u-1",
    )
    assert stream_body(message) == {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "id": "msg_1",
            "model": "claude-sonnet-5",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "u", "name": "Read", "input": {"path": "x"}},
                {"type": "server_tool_use", "id": "v", "name": "web_search", "input": {}},
                {
                    "type": "advisor_tool_result",
                    "tool_use_id": "v",
                    "content": {"type": "advisor_result"},
                },
                {"type": "of_a_later_version"},
            ],
            "stop_reason": "end_turn",
            "usage": USAGE,
        },
        "session_id": "s-1",
        "uuid": "u-1",
    }


def test_a_response_of_an_early_version_has_no_usage_and_gets_none() -> None:
    message = made("AssistantMessage", content=[], model="m", parent_tool_use_id="t")
    assert stream_body(message) == {
        "type": "assistant",
        "message": {"role": "assistant", "model": "m", "content": []},
        "parent_tool_use_id": "t",
    }
    assert lacks_usage(message)
    assert not lacks_usage(made("AssistantMessage", content=[], model="m", usage=None))
    assert not lacks_usage(made("UserMessage", content="hi"))


def test_a_users_message_is_text_or_blocks() -> None:
    assert stream_body(made("UserMessage", content="hi", uuid="u", parent_tool_use_id=None)) == {
        "type": "user",
        "message": {"role": "user", "content": "hi"},
        "uuid": "u",
    }
    block = made("ToolResultBlock", tool_use_id="u", content="ok", is_error=None)
    assert stream_body(made("UserMessage", content=[block], uuid=None)) == {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "u", "content": "ok"}],
        },
    }


def test_a_results_windows_get_their_original_name_back() -> None:
    windows = {"claude-sonnet-5": {"contextWindow": 200_000}}
    message = made(
        "ResultMessage", subtype="success", session_id="s", usage={}, model_usage=windows
    )
    assert stream_body(message) == {
        "type": "result",
        "subtype": "success",
        "session_id": "s",
        "usage": {},
        "modelUsage": windows,
    }
    early = made("ResultMessage", subtype="success", session_id="s")
    assert stream_body(early) == {"type": "result", "subtype": "success", "session_id": "s"}


def test_events_and_resets_are_restored() -> None:
    event = {"type": "message_start", "message": {"id": "msg_1"}}
    assert stream_body(made("StreamEvent", uuid="u", session_id="s", event=event)) == {
        "type": "stream_event",
        "uuid": "u",
        "session_id": "s",
        "event": event,
    }
    assert stream_body(
        made("ConversationResetMessage", new_conversation_id="n", uuid="u", session_id="s")
    ) == {"type": "conversation_reset", "new_conversation_id": "n", "uuid": "u", "session_id": "s"}


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (RateLimitInfo("ok", 5, {"status": "ok", "resetsAt": 5}), {"status": "ok", "resetsAt": 5}),
        (RateLimitInfo("ok", 5), {"status": "ok", "resets_at": 5, "raw": {}}),
        (None, {}),
    ],
)
def test_a_rate_limit_keeps_its_frame_where_the_class_does(
    info: RateLimitInfo | None, expected: dict[str, object]
) -> None:
    assert stream_body(made("RateLimitEvent", rate_limit_info=info, uuid="u", session_id="s")) == {
        "type": "rate_limit_event",
        "rate_limit_info": expected,
        "uuid": "u",
        "session_id": "s",
    }


def test_other_objects_return_none() -> None:
    assert stream_body(made("ClaudeAgentOptions", model="m")) is None
    plain = type("UserMessage", (), {"__module__": MODULE})()
    assert stream_body(plain) is None


def test_classes_are_known_by_their_package() -> None:
    assert is_claude_object(made("UserMessage", content="hi"))
    assert not is_claude_object({"type": "user"})
    assert not is_claude_object(RateLimitInfo("ok"))


FRAMES: list[dict[str, object]] = [
    {"type": "system", "subtype": "init", "session_id": "s", "uuid": "1", "model": "m[1m]"},
    {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        "uuid": "2",
        "parent_tool_use_id": "t",
    },
    {
        "type": "stream_event",
        "uuid": "4",
        "session_id": "s",
        "event": {"type": "message_start"},
        "parent_tool_use_id": "t",
    },
]


def test_frames_round_trip_through_the_sdk_parser() -> None:
    parser = pytest.importorskip("claude_agent_sdk._internal.message_parser")
    for frame in FRAMES:
        parsed = parser.parse_message(frame)
        assert is_claude_object(parsed)
        assert stream_body(parsed) == frame
