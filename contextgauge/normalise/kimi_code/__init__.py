"""Kimi Code: the journal of each agent, whose records have their fields next to their type.

No record names the session: it is the folder's, and below it the agent's folder is the chain. The
usage of a turn's step is a size; other usage is of calls outside the conversation, as that which
writes a summary.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    Adapter,
    Fields,
    FileHead,
    Folders,
    Inside,
    LineType,
    Meaning,
    named,
)
from contextgauge.normalise.fields import count, in_range, long_name, mapping, name, text
from contextgauge.normalise.kimi_code import conversation
from contextgauge.normalise.responses import CONTENT, text_of
from contextgauge.normalise.signals import (
    ROLLED_BACK,
    Body,
    Boundary,
    CompactionRefused,
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
from contextgauge.normalise.tells import Source, Tells
from contextgauge.normalise.usage import summary_cost
from contextgauge.records import Json

_BY_NAME: Final = FileHead(None, is_by_name=True)
_FIGURES: Final = (
    "tokensBefore",
    "tokensAfter",
    "compactedCount",
    "droppedCount",
    "keptUserMessageCount",
    "summaryOutputTokens",
)


def _of_file(_: Body) -> FileHead:
    return _BY_NAME


def metadata(_: Body) -> tuple[Signal, ...]:
    """Return the runtime: the line that begins a journal says no more of the session."""
    return (SessionFacts("kimi-code", None, None, None, None, only_new=False),)


def profile(body: Body) -> tuple[Signal, ...]:
    """Return the folder in which an agent works."""
    cwd = long_name(body, "cwd") or long_name(mapping(body, "environmentDisclosure") or {}, "cwd")
    if cwd is None:
        return ()
    return (SessionFacts("kimi-code", None, None, cwd, None, only_new=False),)


def prompt(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a person's prompt is; others are the runtime's."""
    if typed(body) is None:
        return ()
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def typed(body: Body) -> Json:
    """Return what a person typed."""
    origin = body.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else origin
    return body.get("input") if kind == "user" else None


def usage(body: Body) -> tuple[Signal, ...]:
    """Return the response that the usage of a turn's step is of."""
    counted = mapping(body, "usage")
    if counted is None or body.get("usageScope") != "turn":
        return ()
    counts = Usage(
        count(counted, "inputOther"),
        count(counted, "inputCacheCreation"),
        count(counted, "inputCacheRead"),
    )
    model, output = name(body, "model"), count(counted, "output")
    response = Response(
        None, None, model, counts, output, (), exhausted=False, boundary=None, is_whole=True
    )
    return (response,)


def compaction_begin(body: Body) -> tuple[Signal, ...]:
    """Return that a compaction began, and why."""
    hint = TriggerHint("manual" if body.get("source") == "manual" else "auto")
    return (hint, CompactionStatus("COMPACTING"))


def compaction_cancel(_: Body) -> tuple[Signal, ...]:
    """Return that a compaction failed or was cancelled, which the journal does not tell apart."""
    return (CompactionRefused(None, blocked=False),)


def compaction(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that an applied compaction is."""
    summary = text(body, "summary", "contextSummary")
    if summary is None:
        summary = text_of((mapping(body, "summary") or {}).get("content"))
    boundary = Boundary(
        trigger=None,
        # Older versions count the messages alone, newer ones the tools too: sizes show both.
        pre_tokens=None,
        post_tokens=None,
        duration_ms=None,
        anchor=None,
        metadata={each: body[each] for each in _FIGURES if each in body},
        summary=summary,
        receipt=summary_cost(None, count(body, "summaryOutputTokens")),
    )
    return (boundary,)


def clear(_: Body) -> tuple[Signal, ...]:
    """Return that the conversation was cleared."""
    return (Reset("clear"),)


def undo(_: Body) -> tuple[Signal, ...]:
    """Return that the last messages were removed."""
    return (ROLLED_BACK,)


def turn_ended(_: Body) -> tuple[Signal, ...]:
    """Return that a turn ended."""
    return (TurnEnded(),)


def moment(body: Body) -> int | None:
    """Return the time of a record."""
    time_ms = count(body, "time", "created_at")
    return None if time_ms is None else in_range(time_ms)


_SUMMARY: Final[Fields] = {
    **named(Meaning.FIGURES, " ".join(_FIGURES)),
    "summary": Inside({"content": CONTENT}, Meaning.TEXT),
    "contextSummary": Meaning.TEXT,
}
_PROFILE: Final[Fields] = {
    "cwd": Meaning.LONG_NAME,
    "environmentDisclosure": Inside({"cwd": Meaning.LONG_NAME}),
}
_USAGE: Final[Fields] = {
    "model": Meaning.NAME,
    "usage": Meaning.FIGURES,
    "usageScope": Meaning.WORD,
}
_PROMPT: Final[Fields] = {"input": CONTENT, "origin": Inside({"kind": Meaning.WORD}, Meaning.WORD)}
_MESSAGE: Final[Fields] = {
    "message": Inside(
        {
            "id": Meaning.NAME,
            "role": Meaning.WORD,
            "content": CONTENT,
            "origin": Inside({"kind": Meaning.WORD}),
        }
    )
}
_EVENT: Final[Fields] = {
    "event": Inside(
        {
            "type": Meaning.WORD,
            **named(Meaning.NAME, "uuid stepUuid toolCallId name"),
            "part": Inside({"type": Meaning.WORD, **named(Meaning.TEXT, "text think")}),
            "result": Inside({"output": CONTENT, "isError": Meaning.FIGURES}),
        }
    )
}
_HEAD: Final = {"type": "metadata", "protocol_version": str, "created_at": int}

ADAPTERS: Final = (
    Adapter(
        label="Kimi Code",
        signs=(_HEAD,),
        line_signs=(_HEAD, {"type": str, "time": int}),
        types={
            "metadata": LineType(
                metadata, {"protocol_version": Meaning.NAME}, head=_of_file, moment=moment
            ),
            "config.update": LineType(profile, _PROFILE, moment=moment),
            "profile.bind": LineType(profile, _PROFILE, moment=moment),
            "turn.prompt": LineType(prompt, _PROMPT, prompt=typed, moment=moment),
            "turn.steer": LineType(prompt, _PROMPT, moment=moment),
            "turn.ended": LineType(turn_ended, moment=moment),
            "usage.record": LineType(usage, _USAGE, moment=moment),
            "full_compaction.begin": LineType(
                compaction_begin, {"source": Meaning.WORD}, moment=moment
            ),
            "full_compaction.cancel": LineType(compaction_cancel, moment=moment),
            "context.apply_compaction": LineType(
                compaction, _SUMMARY, conversation=conversation.summary, moment=moment
            ),
            "context.clear": LineType(clear, conversation=conversation.nothing_else, moment=moment),
            "context.undo": LineType(undo, conversation=conversation.taken_back, moment=moment),
            "context.append_message": LineType(
                fields=_MESSAGE, conversation=conversation.message, moment=moment
            ),
            "context.append_loop_event": LineType(
                fields=_EVENT, conversation=conversation.loop_event, moment=moment
            ),
        },
        ignored=(
            *("llm.request", "context.update_token_count"),
            *("token_counting.measured", "token_counting.rebased", "token_counting.truncated"),
            *("token_counting.turn_recorded", "full_compaction.complete", "goal.update"),
            "micro_compaction.apply",
        ),
        fields=named(Meaning.FIGURES, "time created_at"),
        has_own_windows=True,
        compacts_itself=True,
        files=(
            r"(?P<session>[^/]+)/agents/main/wire\.jsonl",
            r"(?P<session>[^/]+)/agents/(?P<thread>[^/]+)/wire\.jsonl",
        ),
        folders=Folders(("KIMI_CODE_HOME",), ("~/.kimi-code",), "sessions"),
        prompt_words=("turn.prompt",),
        tells=Tells(
            version="0.38.0",
            size=Source.MEASURED,
            start=Source.MEASURED,
            end=Source.MEASURED,
            trigger=Source.MEASURED,
            duration=Source.DERIVED,
            summary=Source.MEASURED,
            own_cost=Source.MEASURED,
            subagents=Source.MEASURED,
            note="The window is in the settings, under a name that a person gives the model: "
            "configure it here to see percentages. Of a summary's cost only the output is written.",
        ),
    ),
)
