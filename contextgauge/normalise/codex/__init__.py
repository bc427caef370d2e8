"""Codex: rollouts, the app server's messages and `codex exec --json`."""

from typing import Final

from contextgauge.normalise.adapter import (
    UUID,
    Adapter,
    CopiedLines,
    Fields,
    Folders,
    Inside,
    LineType,
    Meaning,
    TextMark,
    named,
    tagged,
)
from contextgauge.normalise.codex import conversation, lines, settings
from contextgauge.normalise.codex.fork import FORK
from contextgauge.normalise.figure_sources import FigureColumn
from contextgauge.normalise.installation import Installation
from contextgauge.normalise.responses import CONTENT
from contextgauge.normalise.tells import Source, Tells

FOLDERS: Final = Folders(
    ("CODEX_HOME",),
    ("~/.codex",),
    "sessions",
    archive="archived_sessions",
    archived=r"rollout-(?:(\d{4})-(\d{2})-(\d{2})T)?.*",
)

_FILES: Final = (
    # A later rollout of a session, which begins where that was reverted to, has a second id.
    rf"rollout-.*-(?P<session>{UUID})(?:_{UUID})?\.jsonl",
)

_ITEM: Final = Inside({"type": Meaning.WORD, "id": Meaning.NAME})
_THREAD: Final = Inside(
    {**named(Meaning.LONG_NAME, "id cwd forkedFromId"), "cliVersion": Meaning.NAME}
)
_SPAWN: Final = Inside({"parent_thread_id": Meaning.LONG_NAME, "agent_role": Meaning.NAME})


def _payload(fields: Fields) -> Fields:
    return {"payload": Inside(fields)}


_HEAD: Final = _payload(
    {
        **named(Meaning.LONG_NAME, "id session_id cwd forked_from_id forked_from parent_thread_id"),
        **named(Meaning.NAME, "cli_version agent_role"),
        "timestamp": Meaning.TIME,
        "source": Inside({"subagent": Inside({"thread_spawn": _SPAWN})}),
        "history_base": Meaning.FIGURES,
    }
)
_TURN: Final = _payload({"cwd": Meaning.LONG_NAME, **named(Meaning.NAME, "model turn_id")})
_RESPONSE_ITEM: Final = _payload({**named(Meaning.WORD, "type role status"), "content": CONTENT})
_EVENT: Final = _payload(
    {"type": Meaning.WORD, "info": Meaning.FIGURES, "item": _ITEM, "turn_id": Meaning.NAME}
)
_COMPACTED: Final = _payload(
    {
        "message": Meaning.TEXT,
        "compaction_response_id": Meaning.NAME,
        "latest_token_usage_record": Inside(
            {"response_id": Meaning.NAME, "usage": Meaning.FIGURES}
        ),
    }
)

_MARKS: Final = (
    # openai/codex, codex-rs/core/src/context/contextual_user_message.rs and the fragments it lists
    TextMark(
        tagged(
            "environment_context user_shell_command turn_aborted subagent_notification "
            "goal_context hook_prompt"
        )
    ),
    TextMark(r"<skill>\s*<name>.*</skill>|<user_instructions>\n\n.*\n\n</user_instructions>"),
    TextMark(r"# AGENTS\.md instructions for [^\n]*\n\s*<INSTRUCTIONS>.*</INSTRUCTIONS>\s*(.*)"),
    TextMark(r"<external_[\w-]+>.*</external_[\w-]+>"),
    # Rollouts of its editor extension: the words come last, after files and selections.
    TextMark(
        r"# (?:Context from my IDE setup|Files mentioned by the user):\n.*\n"
        r"## My request for Codex:\s*(.*)"
    ),
)

_FIGURES: Final = FigureColumn(
    "Codex",
    {
        "reported": ("Window", "Model", "Folder, version", "Time", "Subagents", "Compaction"),
        "reported by newer versions": ("Cache written", "Cost of the summary"),
        "reported unless encrypted": ("Summary",),
        "reported, else with a hook": ("Duration",),
        "derived": ("Tokens before",),
        "with a hook, else app server only": ("Start",),
        "with a hook, without the reason": ("Failed attempt",),
        "unknown": ("Compaction threshold", "Heartbeat", "Trigger"),
    },
)

ADAPTERS: Final = (
    Adapter(
        label="Codex",
        signs=(
            {"type": frozenset({"session_meta", "turn_context", "event_msg"}), "payload": dict},
            {"type": "thread.started", "thread_id": str},
            {"method": str, "params.threadId": str},
            {"method": str, "params.thread.id": str},
            {"result.thread.id": str},
        ),
        types={
            "session_meta": LineType(
                lines.session_meta,
                _HEAD,
                conversation.facts,
                instructions=conversation.instructions,
                head=lines.head,
            ),
            "turn_context": LineType(
                lines.turn_context, _TURN, conversation.facts, turn_ms=lines.turn_ms
            ),
            "response_item": LineType(
                lines.response_item, _RESPONSE_ITEM, conversation.item, conversation.prompt
            ),
            "event_msg": LineType(
                lines.event_msg,
                _EVENT,
                conversation.event,
                conversation.prompt,
                turn_ms=lines.started_ms,
            ),
            "compacted": LineType(lines.compacted, _COMPACTED, conversation.item),
            "thread.started": LineType(lines.thread_started),
            "turn.completed": LineType(lines.turn_completed),
        },
        ignored=("token_usage_record",),
        untyped={
            "method": LineType(lines.notification, moment=lines.moment),
            "result": LineType(lines.answer, moment=lines.moment),
        },
        fields={
            "thread_id": Meaning.LONG_NAME,
            "method": Meaning.WORD,
            "params": Inside(
                {
                    **named(Meaning.LONG_NAME, "threadId turnId"),
                    "tokenUsage": Meaning.FIGURES,
                    "item": _ITEM,
                    "thread": _THREAD,
                }
            ),
            "result": Inside({"thread": _THREAD, "model": Meaning.NAME}),
        },
        session=lines.thread_of,
        session_names=("thread_id", "threadId", "thread"),
        has_default_window=True,
        compacts_itself=True,
        files=_FILES,
        copied=CopiedLines((b'"token_count"', b'"compacted"'), lines.copy_key, lines.day_folders),
        fork=FORK,
        folders=FOLDERS,
        settings=settings.SETTINGS,
        installation=Installation(
            hooks_file="hooks.json",
            mcp_file="config.toml",
            mcp_table="mcp_servers",
            context_events=("UserPromptSubmit", "PostToolUse"),
            compaction_events=("PreCompact", "PostCompact"),
            notice="Codex asks you to review new hooks before it runs them: /hooks.",
        ),
        prompt_words=("user", "user_message"),
        tells=Tells(
            version="0.153",
            window=Source.MEASURED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            duration=Source.MEASURED,
            summary=Source.MEASURED,
            own_cost=Source.MEASURED,
            composition=Source.DERIVED,
            subagents=Source.MEASURED,
            threshold=Source.DERIVED,
            note="A summary may be encrypted. Duration and cost of a compaction are in rollouts of "
            "newer versions, its start in messages of the app server.",
        ),
        figures=(_FIGURES,),
        marks=_MARKS,
        without_size=(
            (
                r"(thread|turn|item)\.(started|updated|completed|failed)",
                (
                    "`codex exec --json` reports the sum of a thread's tokens, never the size of "
                    "its context: publish the rollout in ~/.codex/sessions, or the app server's "
                    "notifications"
                ),
            ),
        ),
    ),
)
