"""OpenClaw: pi's sessions, one folder for each agent of its gateway, or a database for each.

Checked against openclaw/openclaw (src/agents; src/state/openclaw-agent-schema.sql of 2026.9). Its
heads are pi's: what only it writes shows who it is, as the model's snapshot before a session's
first request. In its database each entry is a row, with the line that a file had.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from contextgauge.normalise.adapter import (
    PRESENT,
    UUID,
    Adapter,
    Database,
    Folders,
    LineType,
    Sign,
    TextMark,
)
from contextgauge.normalise.fields import mapping
from contextgauge.normalise.pi import FIELDS, TELLS, conversation, entries
from contextgauge.normalise.signals import Body, SessionFacts, Signal
from contextgauge.normalise.tells import Compared, Source

_FACTS: Final = entries.runtime_facts("openclaw")


def own_entry(_: Body) -> tuple[Signal, ...]:
    """Return that only this runtime writes such an entry."""
    return (_FACTS,)


def message(body: Body) -> tuple[Signal, ...]:
    """Return what a message says.

    One of the provider `openclaw` is its own text to a person, and no model's response.
    """
    is_own = (mapping(body, "message") or {}).get("provider") == "openclaw"
    return (_FACTS,) if is_own else (_FACTS, *entries.message(body))


def session(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a session whose entries are rows."""
    signals = entries.session(body)
    return tuple(
        each._replace(runtime="openclaw") if isinstance(each, SessionFacts) else each
        for each in signals
    )


def _of_row(read: Callable[[Body], tuple[Signal, ...]], body: Body) -> tuple[Signal, ...]:
    return (_FACTS, *read(body))


_OWN: Final = LineType(own_entry, conversation=conversation.linked)
_CUSTOM: Final = frozenset(
    {
        "model-snapshot",
        "openclaw:bootstrap-context:full",
        "openclaw:prompt-error",
        "openclaw.cache-ttl",
    }
)
_ROW: Final[Sign] = {"runtime": "openclaw", "session_id": str}
_SIGNS: Final[tuple[Sign, ...]] = (
    {"type": "custom", "customType": _CUSTOM, "parentId": PRESENT},
    {"type": "message", "message.provider": "openclaw", "parentId": PRESENT},
    _ROW,
)

_ROWS: Final = """
SELECT rowid, session_id || ' ' || coalesce(
        CASE WHEN json_valid(event_json) THEN json_extract(event_json, '$.id') END, seq),
    json_set(event_json, '$.runtime', 'openclaw', '$.session_id', session_id)
FROM transcript_events
WHERE rowid > :after AND CASE WHEN json_valid(event_json)
    THEN json_type(event_json) = 'object' AND json_extract(event_json, '$.type') IN
        ('session', 'message', 'custom_message', 'compaction', 'branch_summary', 'model_change') END
ORDER BY rowid LIMIT :limit
"""

_SESSIONS: Final = """
SELECT DISTINCT transcript_events.session_id, display_name
FROM transcript_events LEFT JOIN session_windows USING (session_id)
"""

ADAPTERS: Final = (
    Adapter(
        label="OpenClaw",
        signs=_SIGNS,
        line_signs=_SIGNS,
        types={
            "session": LineType(session, conversation=conversation.session),
            "message": LineType(
                message, conversation=conversation.message, prompt=conversation.prompt
            ),
            "custom_message": LineType(
                partial(_of_row, entries.custom_message), conversation=conversation.custom_message
            ),
            "compaction": LineType(
                partial(_of_row, entries.compaction), conversation=conversation.compaction
            ),
            "branch_summary": LineType(
                partial(_of_row, entries.branch_summary), conversation=conversation.branch_summary
            ),
            "model_change": LineType(
                partial(_of_row, entries.model_change), conversation=conversation.linked
            ),
            "custom": _OWN,
        },
        fields=FIELDS,
        cause=entries.cause_of,
        compacts_itself=True,
        database=Database((_ROWS,), (_SESSIONS,)),
        tells=TELLS._replace(
            version="2026.9",
            compared=Compared(
                103,
                7_303,
                4,
                mended=30,
                sources=("bhagya554/AITesterBlueprint_OpenClawMasterClass: agents/main/sessions",),
            ),
            own_cost=Source.UNKNOWN,
            note="From 2026.8 on, the sessions of an agent are in a database. Sessions that were "
            "reset are read, and those that were deleted are left out: OpenClaw keeps the files of "
            "both, with other endings.",
        ),
        files=(
            rf"agents/[^/]+/sessions/(?P<session>{UUID})(?:-topic-[^/]*)?\.jsonl",
            r"agents/[^/]+/agent/openclaw-agent\.sqlite",
        ),
        other_files=(r"agents/[^/]+/sessions/[^/]+\.(?:trajectory|checkpoint\.[^/]*)\.jsonl",),
        # src/config/sessions/artifacts.ts; with `.deleted.` is what a person did not want to keep.
        closed=r"\.reset\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{3})?Z",
        marks=(
            # src/auto-reply/reply: what is known of who wrote, and when, comes before the words.
            TextMark(
                r"(?>(?>[^\n]{1,80} \(untrusted metadata\):\n```json\n"
                r"(?>(?!```\n)[^\n]*\n)*+```\s*)+)(?>\[[^\]\n]{1,60}\]\s*)?(.*)"
            ),
        ),
        folders=Folders(("OPENCLAW_STATE_DIR",), ("~/.openclaw",), "agents"),
    ),
    Adapter(
        runtime="openclaw",
        label="OpenClaw trajectory",
        instead="this is the diagnostic trace of an OpenClaw session, which repeats its prompts "
        "and sums up its usage: name the file next to it without `.trajectory`",
        signs=({"traceSchema": "openclaw-trajectory", "sessionId": str},),
    ),
)
