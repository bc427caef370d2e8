"""Generated conversations of every format, with fields and blocks that nobody knows."""

from typing import Any, Final

from hypothesis import strategies as st

Values = st.SearchStrategy[Any]

_TEXT: Final = st.text(max_size=12)
_ID: Final = st.sampled_from(["call_1", "call_2", "toolu_3", "c"])
_NAME: Final = st.sampled_from(["read_file", "bash", "search"])
_SCALARS: Final = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT
)
ANY_JSON: Final[Values] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_EXTRA: Final = st.dictionaries(
    st.sampled_from(["cache_control", "x_unknown", "citations", "annotations", "ü"]),
    ANY_JSON,
    max_size=2,
)
_OBJECT: Final = st.dictionaries(_TEXT, ANY_JSON, max_size=3)
_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAUCAYAAAC07w7bAAAAAElFTkSuQmCC"


def _with(optional: dict[str, Values] | None = None, /, **fields: Values) -> Values:
    known = st.fixed_dictionaries(fields, optional=optional or {})
    return st.builds(lambda extra, own: {**extra, **own}, _EXTRA, known)


def _kind(name: str, /, **fields: Values) -> Values:
    return _with(type=st.just(name), **fields)


def _content(part: Values, most: int = 4) -> Values:
    return _TEXT | st.lists(part, max_size=most)


_UNKNOWN: Final = _with(type=st.sampled_from(["server_tool_use", "compaction", "brand_new"]))

_A_IMAGE: Final = _with(
    type=st.sampled_from(["image", "document"]),
    source=st.sampled_from(
        [
            {"type": "base64", "media_type": "image/png", "data": _PNG},
            {"type": "url", "url": "https://example.org/a.png"},
            {"type": "file", "file_id": "file_1"},
            {"type": "text", "media_type": "text/plain", "data": "words"},
        ]
    ),
)
_A_PART: Final = _kind("text", text=_TEXT) | _A_IMAGE | _UNKNOWN
_A_BLOCK: Final = st.one_of(
    _A_PART,
    _kind("tool_use", id=_ID, name=_NAME, input=_OBJECT),
    _with(
        {"content": _content(_A_PART, 2) | st.none(), "is_error": st.booleans()},
        type=st.just("tool_result"),
        tool_use_id=_ID,
    ),
    _with({"signature": _TEXT}, type=st.just("thinking"), thinking=_TEXT),
    _kind("redacted_thinking", data=_TEXT),
)
ANTHROPIC: Final = st.lists(
    _with(
        {"usage": st.just({"input_tokens": 5, "output_tokens": 1})},
        role=st.sampled_from(["user", "assistant", "system"]),
        content=_content(_A_BLOCK),
    ),
    max_size=4,
)

_C_PART: Final = st.one_of(
    _kind("text", text=_TEXT),
    _kind("refusal", refusal=_TEXT),
    _kind("image_url", image_url=st.just({"url": f"data:image/png;base64,{_PNG}"})),
    _kind("file", file=st.just({"file_id": "f"})),
)
_C_CALL: Final = st.one_of(
    _kind("function", id=_ID, function=_with(name=_NAME, arguments=_TEXT)),
    _kind("custom", id=_ID, custom=_with(name=_NAME, input=_TEXT)),
    _kind("brand_new", id=_ID),
)
CHAT: Final = st.lists(
    st.one_of(
        _with(role=st.sampled_from(["system", "developer", "user"]), content=_content(_C_PART)),
        _with(
            {
                "tool_calls": st.lists(_C_CALL, max_size=3) | st.none(),
                "function_call": _with(name=_NAME, arguments=_TEXT),
                "reasoning_content": _TEXT,
                "refusal": st.none(),
            },
            role=st.just("assistant"),
            content=_content(_C_PART) | st.none(),
        ),
        _with({"name": _NAME}, role=st.just("tool"), tool_call_id=_ID, content=_content(_C_PART)),
        _with(role=st.just("function"), name=_NAME, content=_TEXT | st.none()),
    ),
    max_size=5,
)

_R_PART: Final = st.one_of(
    _with(type=st.sampled_from(["input_text", "output_text"]), text=_TEXT),
    _kind("input_image", image_url=st.just("https://example.org/a.png")),
    _kind("refusal", refusal=_TEXT),
)
_R_ITEM: Final = st.one_of(
    _with(
        {"type": st.just("message"), "id": _ID},
        role=st.sampled_from(["user", "assistant", "developer"]),
        content=_content(_R_PART),
    ),
    _with(
        {"encrypted_content": _TEXT | st.none()},
        type=st.just("reasoning"),
        summary=st.lists(_kind("summary_text", text=_TEXT), max_size=2),
    ),
    _kind("function_call", call_id=_ID, name=_NAME, arguments=_TEXT),
    _kind("custom_tool_call", call_id=_ID, name=_NAME, input=_TEXT),
    _kind("local_shell_call", call_id=_ID, action=_OBJECT),
    _kind("function_call_output", call_id=_ID, output=_content(_R_PART, 2)),
    _kind("computer_call_output", call_id=_ID, output=_OBJECT),
    _kind("compaction", encrypted_content=_TEXT),
    _kind("web_search_call", id=_ID),
    _kind("item_reference", id=_ID),
)
RESPONSES: Final = st.lists(_R_ITEM, max_size=8)

_G_CALL: Final = _with({"id": _ID, "args": _OBJECT}, name=_NAME)
_G_PART: Final = st.one_of(
    _with({"thoughtSignature": _TEXT}, text=_TEXT),
    _with(text=_TEXT, thought=st.just(True)),  # noqa: FBT003 -- a value, not a flag
    _with({"thoughtSignature": _TEXT}, functionCall=_G_CALL),
    _with(
        functionResponse=_with(
            {"id": _ID},
            name=_NAME,
            response=_OBJECT | st.fixed_dictionaries({"output": _TEXT}),
        )
    ),
    _with(inlineData=st.just({"mimeType": "image/png", "data": _PNG})),
    _with(executableCode=_OBJECT),
)
GEMINI: Final = st.lists(
    _with(
        {"role": st.sampled_from(["user", "model", "function"])},
        parts=st.lists(_G_PART, max_size=4),
    ),
    max_size=4,
)

_P_CALL: Final = _with({"args": ANY_JSON}, toolCallId=_ID, toolName=_NAME)
_MARKER: Final = _with(
    {"prose": _TEXT},
    type=st.just("context_compaction"),
    compaction_number=st.integers(1, 9),
    timestamp=st.sampled_from(
        [
            "2024-01-15T10:30:00Z",
            "2024-01-15T11:30:00.123456+01:00",
            {"secs_since_epoch": 5, "nanos_since_epoch": 123_456_789},
        ]
    ),
    summary=_TEXT,
    messages_archived=st.integers(0, 99),
    context_size_before=st.integers(0, 999_999),
)
_P_PART: Final = st.one_of(
    _A_BLOCK,
    st.builds(lambda call: {**call, "type": "tool-call"}, _P_CALL),
    _kind("tool-call", toolCallId=_ID, toolName=_NAME, input=ANY_JSON),
    _with({"isError": st.booleans()}, type=st.just("tool-result"), toolCallId=_ID, result=ANY_JSON),
    _kind(
        "tool-result",
        toolCallId=_ID,
        toolName=_NAME,
        output=st.fixed_dictionaries({"type": st.just("text"), "value": _TEXT})
        | st.fixed_dictionaries({"type": st.just("error-json"), "value": ANY_JSON})
        | st.fixed_dictionaries(
            {
                "type": st.just("content"),
                "value": st.lists(_kind("text", text=_TEXT) | _kind("media", data=st.just(_PNG))),
            }
        ),
    ),
    _kind("reasoning", text=_TEXT),
    _kind("redacted-reasoning", data=_TEXT),
    _kind("image", image=st.just(_PNG)),
    _kind("file", data=st.just("https://example.org/a.pdf"), mimeType=st.just("application/pdf")),
    _MARKER,
)
PLAIN: Final = st.lists(
    _with(
        {
            "toolCalls": st.lists(_P_CALL, max_size=2, unique_by=lambda call: call["toolCallId"]),
            "id": _ID,
        },
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        content=_content(_P_PART) | st.none(),
    ),
    max_size=4,
)

FORMATS: Final[dict[Any, Values]] = {
    "anthropic": ANTHROPIC,
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "plain": PLAIN,
}
