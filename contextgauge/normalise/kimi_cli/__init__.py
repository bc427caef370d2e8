"""Kimi CLI: the wire of a session, in which each message has a type and a payload.

Checked against MoonshotAI/kimi-cli 1.49.0 (src/kimi_cli/wire, soul/kimisoul.py). No line names the
session: it is the folder's. A status has the size, the window and the usage of a step; before
March 2026 the window shows in the share of it that the size is. A subagent has a wire of its own,
and its parent's repeats what is in it: that is not read. Before there were such wires (commit
ff09e97c) its parent's is the only one, which names the call that began it and no subagent.
"""

import re
from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    Adapter,
    Fields,
    FileHead,
    Folders,
    Inside,
    LineType,
    Meaning,
    named,
)
from contextgauge.normalise.fields import MAX_COUNT, count, in_range, mapping, name, window
from contextgauge.normalise.limit_signals import OwnWindow
from contextgauge.normalise.responses import CONTENT, text_of
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionStatus,
    Reset,
    Response,
    SessionFacts,
    Signal,
    TriggerHint,
    TurnEnded,
    Usage,
    UserLine,
)
from contextgauge.normalise.tells import Compared, Source, Tells
from contextgauge.records import Json

_COMMAND: Final = re.compile(r"\s*/(clear|reset|compact)(?:\s|\Z)")
"""Commands that change the context; they are typed as prompts are."""

_BY_NAME: Final = FileHead(None, is_by_name=True)


def _of_file(_: Body) -> FileHead:
    return _BY_NAME


def metadata(_: Body) -> tuple[Signal, ...]:
    """Return the runtime: the line that begins a wire says no more of the session."""
    return (SessionFacts("kimi-cli", None, None, None, None, only_new=False),)


def message(body: Body) -> tuple[Signal, ...]:
    """Return what a message of the wire says."""
    sent = mapping(body, "message") or {}
    own = _of_subagent(sent)
    return _read(sent if own is None else own)


def subagent(body: Body) -> str | None:
    """Return the subagent whose a message is that stands in the wire of its session alone."""
    sent = mapping(body, "message") or {}
    if _of_subagent(sent) is None:
        return None
    return name(mapping(sent, "payload") or {}, "task_tool_call_id")


def _of_subagent(sent: Body) -> Body | None:
    payload = mapping(sent, "payload") or {}
    is_own = sent.get("type") == "SubagentEvent" and "agent_id" not in payload
    return mapping(payload, "event") if is_own and "task_tool_call_id" in payload else None


def _read(sent: Body) -> tuple[Signal, ...]:
    payload = mapping(sent, "payload") or {}
    match sent.get("type"):
        case "StatusUpdate":
            return _status(payload)
        case "TurnBegin" | "SteerInput":
            return _prompt(payload)
        case "CompactionBegin":
            return (CompactionStatus("COMPACTING"),)
        case "CompactionEnd":
            return (Boundary(None, None, None, None, None, {}, None),)
        case "TurnEnd":
            return (TurnEnded(),)
        case _:
            return ()


def _prompt(payload: Body) -> tuple[Signal, ...]:
    facts = SessionFacts("kimi-cli", None, None, None, None, only_new=True)
    line = UserLine(counted=True, mark=None, uuid=None, text=None)
    command = _COMMAND.match(text_of(payload.get("user_input")) or "")
    if command is None:
        return (facts, line)
    return (facts, TriggerHint("manual") if command[1] == "compact" else Reset("clear"))


def _status(payload: Body) -> tuple[Signal, ...]:
    """Return the window and the response; a status of other things has neither."""
    signals: list[Signal] = []
    usage = mapping(payload, "token_usage")
    counts = Usage(
        count(usage or {}, "input_other"),
        count(usage or {}, "input_cache_creation"),
        count(usage or {}, "input_cache_read"),
    )
    limit = window(payload, "max_context_tokens") or _window_by_share(payload, counts.used)
    if limit is not None:
        signals.append(OwnWindow(limit))
    if usage is not None:
        key = name(payload, "message_id")
        output = count(usage, "output")
        signals.append(
            Response(
                key, key, None, counts, output, (), exhausted=False, boundary=None, is_whole=True
            )
        )
    return tuple(signals)


def _window_by_share(payload: Body, size: int) -> int | None:
    """Return the window of which a size is the share that is named, if that is so exactly."""
    share = payload.get("context_usage")
    if not isinstance(share, float) or not size or not size / MAX_COUNT <= share <= 1:
        return None
    whole = round(size / share)
    return whole if size / whole == share else None


def moment(body: Body) -> int | None:
    """Return the time of a message, which is in seconds."""
    time_s = body.get("timestamp")
    if not isinstance(time_s, int | float) or not 0 < time_s < _MOST_S:
        return None
    return in_range(round(time_s * 1_000))


_MOST_S: Final = 2**40
"""Far beyond all times that count, and exact as a float."""


def typed(body: Body) -> Json:
    """Return what a person typed."""
    sent = mapping(body, "message") or {}
    payload = mapping(sent, "payload") or {}
    return payload.get("user_input") if sent.get("type") == "TurnBegin" else None


def beginning(words: str) -> str:
    """Return the command that a prompt is, if it is one that is read."""
    command = _COMMAND.match(words)
    return "" if command is None else command[0]


_STEP: Final[Fields] = {
    "user_input": CONTENT,
    **named(Meaning.FIGURES, "context_usage context_tokens max_context_tokens token_usage"),
    "message_id": Meaning.NAME,
}
_PAYLOAD: Final = Inside(
    {
        **_STEP,
        **named(Meaning.NAME, "task_tool_call_id agent_id"),
        "event": Inside({"type": Meaning.WORD, "payload": Inside(_STEP)}),
    }
)
_LINES: Final = (
    {"type": "metadata", "protocol_version": str, "created_at": ABSENT},
    {"timestamp": float, "message.type": str, "message.payload": dict},
)

ADAPTERS: Final = (
    Adapter(
        label="Kimi CLI",
        signs=_LINES,
        line_signs=_LINES,
        types={"metadata": LineType(metadata, {"protocol_version": Meaning.NAME}, head=_of_file)},
        untyped={
            "message": LineType(
                message,
                {"message": Inside({"type": Meaning.WORD, "payload": _PAYLOAD})},
                prompt=typed,
                head=_of_file,
                moment=moment,
                thread=subagent,
            )
        },
        fields={"timestamp": Meaning.FIGURES},
        compacts_itself=True,
        files=(
            r"(?P<session>[^/]+)/subagents/(?P<thread>[^/]+)/wire\.jsonl",
            r"(?P<session>[^/]+)/wire\.jsonl",
        ),
        other_files=(
            r"sessions/[^/]+/[^/]+/(?:.+/)?context[^/]*\.jsonl",
            r"\.kimi/[^/]+/[^/]+\.jsonl",
        ),
        folders=Folders(("KIMI_SHARE_DIR",), ("~/.kimi",), "sessions"),
        prompt_words=("TurnBegin",),
        beginning=beginning,
        tells=Tells(
            version="1.49.0",
            compared=Compared(7, 460, mended=62),
            window=Source.MEASURED,
            size=Source.MEASURED,
            start=Source.MEASURED,
            end=Source.MEASURED,
            duration=Source.DERIVED,
            subagents=Source.MEASURED,
            note="The model, the folder and the summary are not in the wire. The trigger is "
            "known of a compaction that a person asked for by `/compact`.",
        ),
    ),
    Adapter(
        runtime="kimi-cli",
        label="Kimi CLI context",
        instead="this is the list of messages of a Kimi CLI session, whose sizes are in the file "
        "wire.jsonl next to it: name that, or their folder",
        signs=({"role": "_usage", "token_count": int}, {"role": "_checkpoint", "id": int}),
    ),
)
