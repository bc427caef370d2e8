"""GitHub Copilot CLI: the events of a session, as it keeps them on disk or sends them to its SDK.

An event has its payload in `data`, and `agentId` where it is a subagent's. The size of a response
is sent but not kept: files have sizes where a compaction begins or ends, and at the end of a run.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    PRESENT,
    Adapter,
    Fields,
    FileHead,
    Folders,
    Inside,
    LineType,
    Meaning,
    named,
)
from contextgauge.normalise.copilot_cli import conversation, events
from contextgauge.normalise.fields import long_name, mapping
from contextgauge.normalise.responses import CONTENT
from contextgauge.normalise.signals import Body
from contextgauge.normalise.spellings import COMMON
from contextgauge.normalise.tells import Compared, Source, Tells


def _data(fields: Fields) -> Fields:
    return {"data": Inside(fields)}


def _head(body: Body) -> FileHead:
    return FileHead(long_name(mapping(body, "data") or {}, "sessionId"), is_by_name=True)


_CONTEXT: Final = Inside({"cwd": Meaning.LONG_NAME})
_SIZES: Final = named(
    Meaning.FIGURES,
    "currentTokens systemTokens conversationTokens toolDefinitionsTokens tokenLimit",
)
_RUN: Final = _data(
    {
        **named(Meaning.LONG_NAME, "sessionId detachedFromSpawningParentSessionId"),
        **named(Meaning.NAME, "copilotVersion selectedModel"),
        "context": _CONTEXT,
    }
)
_COMPACTION: Final = _data(
    {
        **_SIZES,
        **named(
            Meaning.FIGURES,
            "success preCompactionTokens preCompactionMessagesLength postCompactionTokens "
            "tokensRemoved messagesRemoved checkpointNumber compactionTokensUsed",
        ),
        "trigger": Meaning.WORD,
        "summaryContent": Meaning.TEXT,
    }
)
_TRUNCATION: Final = _data(
    {
        **named(Meaning.FIGURES, " ".join((*events.TRUNCATION_FIGURES, "tokenLimit"))),
        "performedBy": Meaning.WORD,
    }
)
_USAGE: Final = _data(
    {
        **named(Meaning.NAME, "apiCallId messageId model parentToolCallId"),
        **named(
            Meaning.FIGURES, "inputTokens outputTokens cacheReadTokens cacheWriteTokens initiator"
        ),
    }
)
_MESSAGE: Final = _data(
    {**named(Meaning.NAME, "messageId parentToolCallId source"), "content": CONTENT}
)

ADAPTERS: Final = (
    Adapter(
        label="Copilot CLI",
        signs=(
            {"type": "session.start", "data.sessionId": str},
            {"type": str, "id": str, "timestamp": str, "parentId": PRESENT, "data": dict},
        ),
        types={
            "session.start": LineType(events.start, _RUN, conversation.facts, head=_head),
            "session.resume": LineType(events.resume, _RUN, conversation.facts),
            "session.context_changed": LineType(
                events.context_changed, _data({"cwd": Meaning.LONG_NAME})
            ),
            "session.model_change": LineType(
                events.model_change, _data({"newModel": Meaning.NAME}), conversation.model
            ),
            "session.context_cleared": LineType(
                events.cleared, conversation=conversation.nothing_else
            ),
            "session.compaction_start": LineType(events.compaction_start, _COMPACTION),
            "session.compaction_complete": LineType(
                events.compaction_complete, _COMPACTION, conversation.summary
            ),
            "session.truncation": LineType(events.truncation, _TRUNCATION),
            "session.usage_info": LineType(events.usage_info, _data(_SIZES)),
            "session.shutdown": LineType(events.shutdown, _data(_SIZES)),
            "assistant.message": LineType(events.message, _USAGE, conversation.answer),
            "assistant.usage": LineType(events.usage, _USAGE),
            "tool.execution_complete": LineType(conversation=conversation.result),
            "user.message": LineType(
                events.prompt, _MESSAGE, conversation.prompt, prompt=conversation.typed
            ),
        },
        ignored=("session.usage_checkpoint", "subagent.completed", "subagent.failed"),
        fields={**named(Meaning.NAME, "id parentId agentId"), "timestamp": Meaning.TIME},
        spelling=COMMON._replace(agent=("agentId",), parent=("agentId",)),
        has_own_windows=True,
        compacts_itself=True,
        files=(r"(?P<session>[^/]+)/events\.jsonl", r"session-state/(?P<session>[^/]+)\.jsonl"),
        other_files=(r"session-state/[^/]+/(?:files|research|checkpoints)/.+",),
        folders=Folders(("COPILOT_HOME",), ("~/.copilot",), "session-state"),
        prompt_words=("user.message",),
        tells=Tells(
            version="1.0.81",
            compared=Compared(8, 4, mended=3),
            window=Source.MEASURED,
            size=Source.MEASURED,
            start=Source.MEASURED,
            end=Source.MEASURED,
            trigger=Source.MEASURED,
            duration=Source.DERIVED,
            summary=Source.MEASURED,
            own_cost=Source.MEASURED,
            composition=Source.MEASURED,
            note="Sizes are written at the start and the end of a compaction and at the end of a "
            "run, not for each response. Window and trigger are in files of newer versions only; "
            "the window is Copilot's own, so none is taken from the model's name.",
        ),
    ),
)
