"""Amp: the threads that it keeps, a JSON document each, which it writes again with each message.

Its source is not published. Checked against two readers of its files: ryoppippi/ccusage 20
(rust/crates/ccusage/src/adapter/amp), which has the usage of messages, and
Dicklesworthstone/cross_agent_session_resumer (src/providers/amp.rs), which has the rest. A newer
version keeps threads on its server alone.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from contextgauge.normalise.adapter import (
    PRESENT,
    UUID,
    Adapter,
    FileHead,
    Folders,
    Inside,
    Joined,
    LineType,
    Meaning,
    Rows,
    named,
)
from contextgauge.normalise.fields import (
    count,
    in_range,
    items,
    long_name,
    mapping,
    moment_ms,
    name,
    text,
    window,
)
from contextgauge.normalise.limit_signals import OwnWindow
from contextgauge.normalise.responses import CONTENT, text_of
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    Response,
    SessionFacts,
    Signal,
    Usage,
    UserLine,
)
from contextgauge.normalise.tells import Compared, Source, Tells
from contextgauge.normalise.usage import anthropic_usage
from contextgauge.records import Json

_FOLDER: Final = "file://"


def lines(thread: Body, _: Sequence[Sequence[Body]]) -> Iterator[Body]:
    """Yield the head of a thread and its messages; the folder stands behind these."""
    # `v` counts the changes of the thread.
    head: Body = {"v": 0, "id": thread.get("id"), "created": thread.get("created")}
    initial = mapping(mapping(thread, "env") or {}, "initial") or {}
    for tree in items(initial, "trees")[:1]:
        address = text(tree, "uri") or ""
        if address.startswith(_FOLDER):
            head["cwd"] = unquote(address.removeprefix(_FOLDER))
    yield head
    yield from items(thread, "messages")


def of_file(body: Body) -> FileHead:
    """Return whose a file is."""
    return FileHead(text(body, "id"))


def facts(body: Body) -> tuple[Signal, ...]:
    """Return what the head of a thread says."""
    return (SessionFacts("amp", None, None, long_name(body, "cwd"), None, only_new=True),)


def created(body: Body) -> int | None:
    """Return when a thread began."""
    time_ms = count(body, "created")
    return None if time_ms is None else in_range(time_ms)


def message(body: Body) -> tuple[Signal, ...]:
    """Return the response, the user line, or the compaction that a message is."""
    match body.get("role"):
        case "user":
            return (UserLine(counted=True, mark=None, uuid=None, text=None),)
        case "assistant":
            return _answer(body)
        case "info" if (summary := _summary_of(body)) is not None:
            return (Boundary(None, None, None, None, None, {}, summary),)
    return ()


def _answer(body: Body) -> tuple[Signal, ...]:
    """Return the response; one without counts is none yet."""
    reported = mapping(body, "usage")
    key = _key(body)
    if reported is None or key is None:
        return ()
    usage, output = usage_of(reported), count(reported, "outputTokens")
    model = name(reported, "model")
    response = Response(key, None, model, usage, output, (), exhausted=False, boundary=None)
    limit = window(reported, "maxInputTokens")
    return (response,) if limit is None else (OwnWindow(limit), response)


def usage_of(reported: Body) -> Usage | None:
    """Return the counts of a usage, whose cached parts are next to the input."""
    counts = Usage(
        count(reported, "inputTokens"),
        count(reported, "cacheCreationInputTokens"),
        count(reported, "cacheReadInputTokens"),
    )
    return counts if counts.used else None


def moment(body: Body) -> int | None:
    """Return when a message was sent, or answered."""
    sent_ms = count(mapping(body, "meta") or {}, "sentAt")
    if sent_ms is not None:
        return in_range(sent_ms)
    return moment_ms((mapping(body, "usage") or {}).get("timestamp"))


def cause(body: Body) -> str | None:
    """Return what identifies a message of a person: it is written again with other fields."""
    return _key(body) if body.get("role") == "user" else None


def _key(body: Body) -> str | None:
    number = count(body, "messageId")
    return None if number is None else f"message {number}"


def _summary_of(body: Body) -> str | None:
    """Return the summary that takes the place of what was before it; of a thread, it is another."""
    for block in items(body, "content"):
        summary = mapping(block, "summary") or {}
        if block.get("type") == "summary" and summary.get("type") == "message":
            return text(summary, "summary")
    return None


def prompt(body: Body) -> Json:
    """Return what a person wrote."""
    return body.get("content") if body.get("role") == "user" else None


def conversation(body: Body) -> dict[str, Json] | None:
    """Reduce a message that is whole: it was written before, as far as it went.

    Its blocks are those of Anthropic, but for results of tools.
    """
    summary = _summary_of(body) if body.get("role") == "info" else None
    if summary is not None:
        words: Json = {"role": "user", "content": summary}
        return {"type": "system", "subtype": "compact_boundary", "message": words}
    role, content, reported = body.get("role"), body.get("content"), mapping(body, "usage")
    runs = (mapping(each, "run") for each in items(body, "content") if "run" in each)
    is_whole = all(run is not None and run.get("status") in _ENDED for run in runs)
    if (
        role not in ("user", "assistant")
        or not is_whole
        or (role == "assistant" and reported is None)
    ):
        return None
    if isinstance(content, list):
        content = [_block_of(each) for each in items(body, "content")]
    own: dict[str, Json] = {"role": role, "content": content}
    if reported is not None:
        own |= anthropic_usage(usage_of(reported), count(reported, "outputTokens"))
        model = name(reported, "model")
        own |= {} if model is None else {"model": model}
    return {"type": role, "message": own, "uuid": _key(body)}


def _block_of(block: Body) -> Json:
    if block.get("type") != "tool_result":
        return block
    run = mapping(block, "run") or {}
    result = run.get("result", run.get("progress"))
    words = text_of(result) or text(mapping(run, "result", "progress") or {}, "output") or ""
    tool_result: dict[str, Json] = {"type": "tool_result", "tool_use_id": block.get("toolUseID")}
    return {**tool_result, "content": words, "is_error": run.get("status") in _ERRORS}


_ERRORS: Final = ("error", "cancelled", "rejected-by-user")
_ENDED: Final = ("done", *_ERRORS)
_HEAD: Final = {"v": int, "id": str, "created": int}
_MESSAGE: Final = {"role": str, "messageId": int, "content": PRESENT}

ADAPTERS: Final = (
    Adapter(
        label="Amp",
        signs=(_HEAD, _MESSAGE),
        line_signs=(_HEAD, _MESSAGE),
        untyped={
            "messageId": LineType(message, conversation=conversation, prompt=prompt, moment=moment),
            "created": LineType(facts, head=of_file, moment=created),
        },
        fields={
            **named(Meaning.LONG_NAME, "id cwd"),
            **named(Meaning.FIGURES, "v created messageId"),
            "role": Meaning.WORD,
            "content": Rows(
                {
                    **CONTENT.block,
                    "summary": Inside({"type": Meaning.WORD, "summary": Meaning.TEXT}),
                }
            ),
            "meta": Inside({"sentAt": Meaning.FIGURES}),
            "usage": Inside(
                {
                    "model": Meaning.NAME,
                    "timestamp": Meaning.TIME,
                    **named(
                        Meaning.FIGURES,
                        "inputTokens outputTokens cacheCreationInputTokens cacheReadInputTokens "
                        "totalInputTokens maxInputTokens",
                    ),
                }
            ),
        },
        cause=cause,
        has_own_windows=True,
        compacts_itself=True,
        joined=Joined(".json", (), lines),
        document="messages",
        files=(rf"threads/(?P<session>T-{UUID})\.json",),
        folders=Folders(("AMP_DATA_DIR",), ("~/.local/share/amp",), "threads"),
        prompt_words=("role",),
        tells=Tells(
            version="2026.6",
            compared=Compared(3, 7),
            window=Source.MEASURED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            composition=Source.DERIVED,
            note="Amp's source is not published: what is read is what others found in its files. "
            "The window is known where an answer reports it, since Amp gives models less than "
            "their makers do. A handoff begins another thread.",
        ),
    ),
)
