"""Claude Code: the Agent SDK's stream, the transcripts on disk, and hooks' inputs.

Other runtimes borrowed the form of its lines, and some their types.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    PRESENT,
    UUID,
    Adapter,
    ByName,
    Either,
    Fields,
    Folders,
    Inside,
    LineType,
    Meaning,
    Only,
    OwnCalls,
    Rows,
    Words,
    named,
)
from contextgauge.normalise.claude_code import conversation, limits, messages, settings, texts
from contextgauge.normalise.claude_code.fork import FORK, VERSION
from contextgauge.normalise.fields import name
from contextgauge.normalise.figure_sources import FigureColumn
from contextgauge.normalise.installation import Installation
from contextgauge.normalise.responses import CONTENT, DELTA, EVENT, RESPONSE, stream_event
from contextgauge.normalise.spellings import COMMON
from contextgauge.normalise.tells import Source, Tells
from contextgauge.records import Json

_INIT: Final = {"type": "system", "subtype": "init"}

FOLDERS: Final = Folders(
    ("CLAUDE_CONFIG_DIR",), ("~/.claude", "$XDG_CONFIG_HOME/claude"), "projects"
)

FILES: Final = (
    r"(?P<session>[^/]+)/subagents/(?:.+/)?(?P<own_call>agent-acompact[^/]*)\.jsonl",
    r"(?P<session>[^/]+)/subagents/(?:.+/)?(?P<thread>[^/]+)\.jsonl",
    r"(?P<own_call>agent-acompact[^/]*)\.jsonl",
    # Early versions wrote them next to their sessions.
    r"(?P<loose>agent-[^/]*)\.jsonl",
    rf"(?P<session>{UUID})\.jsonl",
)

_SESSION: Final = named(Meaning.LONG_NAME, " ".join(COMMON.session))

_ANSWER: Final[Fields] = {
    "model": Meaning.NAME,
    "categories": Rows(named(Meaning.NAME, "id name kind")),
    **named(Meaning.WORD, "autocompactSource autocompact_source"),
    **named(Inside({"kind": Meaning.WORD}), "over_limit overLimit"),
    **named(Meaning.FIGURES, "messageBreakdown message_breakdown"),
}
"""A context-usage answer."""


def _of_subagent_result(result: dict[str, Json]) -> dict[str, Json]:
    """Return what is read of a tool's result: only an agent's has a type."""
    agent_type = name(result, *messages.AGENT_TYPE)
    names: dict[str, Json] = {
        messages.RESOLVED_MODEL[0]: messages.resolved_model(result),
        messages.AGENT_ID[0]: name(result, *messages.AGENT_ID) if agent_type else None,
        messages.AGENT_TYPE[0]: agent_type,
    }
    return {field: value for field, value in names.items() if value is not None}


def _session_of_input(given: dict[str, Json]) -> dict[str, Json]:
    """Return the only fields of a tool's input that are read: its words are a person's."""
    return {each: given[each] for each in COMMON.session if each in given}


_FIELDS: Final[Fields] = {
    **RESPONSE,
    **_SESSION,
    **named(
        Meaning.NAME,
        "uuid parentUuid parent_uuid logicalParentUuid logical_parent_uuid requestId request_id "
        "agentId agent_id parent_tool_use_id parentToolUseId task_id subagent_type subagentType "
        "boundary_id version fallback_model fallbackModel",
    ),
    "cwd": Meaning.LONG_NAME,
    **named(
        Meaning.WORD,
        "subtype runtime terminal_reason terminalReason compact_result compactResult trigger "
        "hook_event_name hookEventName hook_event hookEvent hook_name hookName scope source",
    ),
    **named(Words(texts.error_without_words), "compact_error compactError"),
    **named(Inside(_SESSION, Meaning.LONG_NAME), "forked_from forkedFrom"),
    **named(Only(_of_subagent_result, Meaning.NAME), " ".join(messages.TOOL_RESULTS)),
    **named(
        ByName(named(Meaning.NAME, "canonicalModel canonical_model")), "modelUsage model_usage"
    ),
    **named(
        Meaning.FIGURES,
        "compact_metadata compactMetadata microcompactMetadata microcompact_metadata "
        "autocompact_state autocompactState contextgauge",
    ),
    **named(Inside(_ANSWER), "context_usage contextUsage"),
    "timestamp": Meaning.TIME,
    "message": Inside(RESPONSE, CONTENT),
    "event": Inside(EVENT),
    "delta": DELTA,
    "response": Inside(
        {
            **RESPONSE,
            "subtype": Meaning.WORD,
            "request_id": Meaning.NAME,
            "response": Inside(_ANSWER),
        }
    ),
}

_OF_REQUEST: Final[Fields] = {"subtype": Meaning.WORD, "request_id": Meaning.NAME}
_TOOL_INPUT: Final = Only(_session_of_input, Meaning.LONG_NAME)
_REQUEST: Final = Either(
    "subtype",
    "hook_callback",
    {**_OF_REQUEST, "input": Inside(_FIELDS)},
    {**_OF_REQUEST, "input": _TOOL_INPUT},
)
"""A tool's input is a model's words, whatever its fields are called; a hook's is the runtime's."""

_AUTOCOMPACT: Final[Fields] = {"value": Inside({"source": Meaning.WORD})}
"""Of the line that says when the runtime compacts, which is a type or a subtype."""

_HOOK: Final = LineType(messages.hook_input)
_RESET: Final = LineType(messages.conversation_reset, conversation=conversation.nothing_else)

_REPORTED: Final = (
    "Cache written",
    "Model",
    "Folder, version",
    "Subagents",
    "Compaction",
    "Trigger",
    "Tokens before",
    "Summary",
)
_FIGURES: Final = (
    FigureColumn(
        "Claude Code, stream",
        {
            "reported": (*_REPORTED, "Start", "Heartbeat", "Failed attempt"),
            "reported after a turn, until then by name": ("Window",),
            "reported by newer versions": ("Compaction threshold",),
            "reported, else arrival": ("Time",),
            "reported, else derived": ("Duration",),
            "reported if the API compacts": ("Cost of the summary",),
        },
    ),
    FigureColumn(
        "Claude Code, transcript",
        {
            "reported": (*_REPORTED, "Time"),
            "reported, derived of older versions, else with a hook": ("Duration",),
            "reported by older versions, or if the API compacts": ("Cost of the summary",),
            "with a hook": ("Start",),
            "with a hook, without the reason": ("Failed attempt",),
            "unknown": ("Compaction threshold", "Heartbeat"),
        },
    ),
)

ADAPTERS: Final = (
    Adapter(
        label="Claude Code",
        signs=(
            {"version": str, "isSidechain": bool, "message": ABSENT},
            {"version": str, "message.content": PRESENT},
            {**_INIT, "claude_code_version": str},
            {**_INIT, "claudeCodeVersion": str},
            # Before it reported its version.
            {**_INIT, "tools": list, "mcp_servers": list, "apiKeySource": str},
        ),
        types={
            "assistant": LineType(messages.assistant, conversation=conversation.message),
            "user": LineType(
                messages.user, conversation=conversation.message, prompt=conversation.prompt
            ),
            "result": LineType(messages.result, conversation=conversation.nothing_else),
            "system": LineType(
                messages.system, fields=_AUTOCOMPACT, conversation=conversation.system
            ),
            "attachment": LineType(
                conversation=conversation.attachment, attached=conversation.attached
            ),
            "queue-operation": LineType(conversation=conversation.queue),
            "stream_event": LineType(stream_event),
            "conversation_reset": _RESET,
            "autocompact_state": LineType(limits.autocompact_state, fields=_AUTOCOMPACT),
            "control_response": LineType(limits.control_response),
            "control_request": LineType(messages.control_request),
        },
        ignored=("progress",),
        untyped={"hook_event_name": _HOOK, "hookEventName": _HOOK},
        fields={**_FIELDS, "request": _REQUEST},
        versions=("claude_code_version", "claudeCodeVersion", "runtime_version"),
        is_transcript=True,
        is_borrowed=True,
        has_default_window=True,
        compacts_itself=True,
        files=FILES,
        folders=FOLDERS,
        settings=settings.SETTINGS,
        installation=Installation(
            hooks_file="settings.json",
            mcp_file=".claude.json",
            mcp_table="mcpServers",
            context_events=("UserPromptSubmit", "PostToolUse"),
            compaction_events=("PreCompact", "PostCompact"),
            mcp_fields={"type": "stdio"},
            mcp_variable="CLAUDE_CONFIG_DIR",
            status_line="statusLine",
        ),
        fork=FORK,
        own_calls=OwnCalls("acompact", messages.own_call),
        figure_words=("trigger", "source", "canonicalModel"),
        prompt_words=("user",),
        beginning=texts.beginning_of,
        marks=texts.MARKS,
        figures=_FIGURES,
        tells=Tells(
            version=VERSION,
            window=Source.DERIVED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            trigger=Source.MEASURED,
            duration=Source.MEASURED,
            summary=Source.MEASURED,
            own_cost=Source.DERIVED,
            composition=Source.DERIVED,
            subagents=Source.MEASURED,
            threshold=Source.DERIVED,
            note="Only its stream, as of the Agent SDK, reports the window, the start of a "
            "compaction, failed ones and the threshold; transcripts do not. The duration of older "
            "versions and the cost of a summary are those of the compaction's own call, where its "
            "file is there.",
        ),
    ),
)
