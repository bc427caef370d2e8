"""pi: sessions of entries as lines, whose format oh-my-pi and OpenClaw took over.

Checked against badlogic/pi-mono, later earendil-works/pi (`session-manager.ts`, `compaction.ts` in
packages/coding-agent). It does not write which window it takes a model to have.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    PRESENT,
    UUID,
    Adapter,
    Fields,
    Folders,
    Inside,
    LineType,
    Meaning,
    Sign,
    named,
)
from contextgauge.normalise.pi import conversation, entries
from contextgauge.normalise.responses import CONTENT
from contextgauge.normalise.tells import Compared, Source, Tells

HEAD: Final = LineType(
    entries.session, conversation=conversation.session, head=entries.session_head
)
LINKED: Final = LineType(conversation=conversation.linked)

FIELDS: Final[Fields] = {
    **named(Meaning.NAME, "id parentId modelId provider firstKeptEntryId customType"),
    **named(Meaning.LONG_NAME, "cwd parentSession branchedFrom"),
    **named(
        Meaning.FIGURES,
        "usage tokensBefore tokensAfter estimatedTokensAfter firstKeptEntryIndex fromHook "
        "fromExtension aborted",
    ),
    **named(Meaning.WORD, "method reason"),
    "errorMessage": Meaning.TEXT,
    "summary": Meaning.TEXT,
    "content": CONTENT,
    "message": Inside(
        {
            **named(Meaning.NAME, "responseId toolCallId provider"),
            **named(Meaning.FIGURES, "isError excludeFromContext timestamp"),
        }
    ),
}

TELLS: Final = Tells(
    version="0.87",
    compared=Compared(
        2, 937, 2, sources=("badlogic/pi-mono: packages/coding-agent/test/fixtures",)
    ),
    window=Source.DERIVED,
    size=Source.MEASURED,
    end=Source.MEASURED,
    summary=Source.MEASURED,
    own_cost=Source.MEASURED,
    composition=Source.DERIVED,
    note="The cost of a summary is in sessions of newer versions. After a user went back to an "
    "earlier entry, the size is unknown until the next answer. Start, trigger and failures are in "
    "the stream of `pi --mode json` alone.",
)
_HEAD: Final[Sign] = {"type": "session", "cwd": str}

ADAPTERS: Final = (
    Adapter(
        label="pi",
        signs=({**_HEAD, "id": str, "timestamp": str},),
        line_signs=(
            _HEAD,
            {"timestamp": str, "parentId": PRESENT},
            # Before entries were a tree.
            {"timestamp": str, "message.role": str},
            {"timestamp": str, "tokensBefore": int},
            {"timestamp": str, "modelId": str},
            # Of the stream, which has a head too.
            {"message.role": str, "message.timestamp": int, "uuid": ABSENT, "sessionId": ABSENT},
            {"type": frozenset({"compaction_start", "compaction_end"}), "reason": str},
            {"type": frozenset({"auto_compaction_start", "auto_compaction_end"})},
        ),
        types={
            "session": HEAD,
            "message": LineType(
                entries.message, conversation=conversation.message, prompt=conversation.prompt
            ),
            "custom_message": LineType(
                entries.custom_message, conversation=conversation.custom_message
            ),
            "compaction": LineType(entries.compaction, conversation=conversation.compaction),
            "branch_summary": LineType(
                entries.branch_summary, conversation=conversation.branch_summary
            ),
            "model_change": LineType(entries.model_change, conversation=conversation.linked),
            # Of the stream alone. A message begins in it, grows, and stands in later events again.
            "message_end": LineType(entries.message, moment=entries.stream_moment),
            "message_start": LineType(),
            **dict.fromkeys(
                ("compaction_start", "auto_compaction_start"), LineType(entries.compaction_begins)
            ),
            **dict.fromkeys(
                ("compaction_end", "auto_compaction_end"), LineType(entries.compaction_ends)
            ),
            **dict.fromkeys(("thinking_level_change", "label", "session_info", "custom"), LINKED),
        },
        fields={**FIELDS, "result": Inside(FIELDS)},
        ignored=("message_update", "turn_end", "agent_end", "tool_execution_end"),
        cause=entries.cause_of,
        compacts_itself=True,
        tells=TELLS,
        files=(rf"sessions/--[^/]*--/[^/]*_(?P<session>{UUID})\.jsonl",),
        folders=Folders(("PI_CODING_AGENT_DIR",), ("~/.pi/agent",), "sessions"),
        prompt_words=("user",),
    ),
)
