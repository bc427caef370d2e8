"""oh-my-pi: pi's sessions, with a title before the head and entries of its own.

Checked against can1357/oh-my-pi, packages/coding-agent/src/session/session-entries.ts.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    PRESENT,
    Adapter,
    Folders,
    LineType,
    Meaning,
    Sign,
    named,
)
from contextgauge.normalise.fields import name
from contextgauge.normalise.limit_signals import ModelReport
from contextgauge.normalise.pi import FIELDS, HEAD, TELLS, conversation, entries
from contextgauge.normalise.signals import Body, Reset, Signal
from contextgauge.normalise.tells import Source

_FACTS: Final = entries.runtime_facts("oh-my-pi")


def session(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a session whose head has a title, as only oh-my-pi's have."""
    return (*entries.session(body), _FACTS)


def own_entry(_: Body) -> tuple[Signal, ...]:
    """Return that only this runtime writes such an entry."""
    return (_FACTS,)


def model_change(body: Body) -> tuple[Signal, ...]:
    """Return the model that a user chose, which is named after its provider.

    Other roles than the default one are models for other work than the conversation's.
    """
    provider, _, own = (name(body, "model") or "").partition("/")
    model = entries.model_of(own or None, provider)
    if model is None or body.get("role", "default") != "default":
        return (_FACTS,)
    return (_FACTS, ModelReport(model, is_init=False))


def reset_boundary(_: Body) -> tuple[Signal, ...]:
    """Return that a user cleared the conversation."""
    return (_FACTS, Reset("clear"))


_ENTRY: Final[Sign] = {"timestamp": str, "parentId": PRESENT, "modelId": ABSENT}
_HEAD: Final[Sign] = {"type": "session", "id": str, "cwd": str, "title": str}
_TITLE: Final[Sign] = {"type": "title", "v": int, "title": str}
_OWN: Final = LineType(own_entry, conversation=conversation.linked)

ADAPTERS: Final = (
    Adapter(
        label="oh-my-pi",
        signs=({**_HEAD, "timestamp": str}, _TITLE),
        line_signs=(_HEAD, _TITLE, _ENTRY),
        types={
            "title": LineType(own_entry),
            "session": HEAD._replace(read=session),
            "model_change": LineType(model_change, conversation=conversation.linked),
            "reset_boundary": LineType(reset_boundary, conversation=conversation.reset),
            **dict.fromkeys(
                (
                    "archive",
                    "credential_pin",
                    "mcp_tool_selection",
                    "mode_change",
                    "model_usage",
                    "service_tier_change",
                    "session_init",
                    "title_change",
                    "ttsr_injection",
                ),
                _OWN,
            ),
        },
        fields={
            **FIELDS,
            **named(Meaning.WORD, "role"),
            "title": Meaning.TEXT,
            "v": Meaning.FIGURES,
        },
        cause=entries.cause_of,
        compacts_itself=True,
        tells=TELLS._replace(
            version="18.1",
            compared=None,
            own_cost=Source.UNKNOWN,
            note="A subagent's file is a session of its own.",
        ),
        files=(r"sessions/[^/]*/[^/]*_(?P<session>[\w.-]+)\.jsonl",),
        folders=Folders(("OMP_CODING_AGENT_DIR",), ("~/.omp/agent",), "sessions"),
    ),
)
