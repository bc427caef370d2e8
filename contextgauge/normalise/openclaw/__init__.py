"""OpenClaw: pi's sessions, one folder for each agent of its gateway.

Checked against openclaw/openclaw (src/agents). Its heads are pi's: what only it writes shows who it
is, as the model's snapshot before a session's first request.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    PRESENT,
    UUID,
    Adapter,
    Folders,
    LineType,
    Sign,
    Source,
    TextMark,
)
from contextgauge.normalise.pi import FIELDS, TELLS, conversation, entries
from contextgauge.normalise.signals import Body, Signal

_FACTS: Final = entries.runtime_facts("openclaw")


def own_entry(_: Body) -> tuple[Signal, ...]:
    """Return that only this runtime writes such an entry.

    A message of the provider `openclaw` is its own text to a person, and no model's response.
    """
    return (_FACTS,)


_OWN: Final = LineType(own_entry, conversation=conversation.linked)
_CUSTOM: Final = frozenset(
    {
        "model-snapshot",
        "openclaw:bootstrap-context:full",
        "openclaw:prompt-error",
        "openclaw.cache-ttl",
    }
)
_SIGNS: Final[tuple[Sign, ...]] = (
    {"type": "custom", "customType": _CUSTOM, "parentId": PRESENT},
    {"type": "message", "message.provider": "openclaw", "parentId": PRESENT},
)

ADAPTERS: Final = (
    Adapter(
        label="OpenClaw",
        signs=_SIGNS,
        line_signs=_SIGNS,
        types={"custom": _OWN, "message": _OWN},
        fields=FIELDS,
        cause=entries.cause_of,
        compacts_itself=True,
        tells=TELLS._replace(
            version="2026.7",
            own_cost=Source.UNKNOWN,
            note="From 2026.8 on, sessions are in SQLite, which is not read.",
        ),
        files=(rf"agents/[^/]+/sessions/(?P<session>{UUID})(?:-topic-[^/]*)?\.jsonl",),
        other_files=(r"agents/[^/]+/sessions/[^/]+\.(?:trajectory|checkpoint\.[^/]*)\.jsonl",),
        marks=(
            # src/auto-reply/reply: what is known of who wrote, and when, comes before the words.
            TextMark(
                r"(?>(?>[^\n]{1,80} \(untrusted metadata\):\n```json\n"
                r"(?>(?!```\n)[^\n]*\n)*+```\s*)+)(?>\[[^\]\n]{1,60}\]\s*)?(.*)"
            ),
        ),
        folders=Folders(("OPENCLAW_STATE_DIR",), ("~/.openclaw",), "agents"),
    ),
)
