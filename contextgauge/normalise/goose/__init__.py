"""goose: what each call of a model used, as rows of its database; older versions' files of lines.

Checked against aaif-goose/goose, formerly block/goose (session_manager.rs, schema 17; storage.rs).
The ledger has a row for each call, whose input includes what was cached, and says which of them
compacted. Sums that a session brings from before there was a ledger are no call's. A file of lines
begins with the figures of its session's last call alone, and is written again as a whole.

A session's id counts the sessions of a day on one machine: when it began makes it one of all.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    Adapter,
    Database,
    Fields,
    FileHead,
    Folders,
    LineType,
    Meaning,
    Sign,
    named,
)
from contextgauge.normalise.fields import count, flag, in_range, long_name, name, text, window
from contextgauge.normalise.limit_signals import OwnWindow
from contextgauge.normalise.responses import CONTENT
from contextgauge.normalise.served_models import served_model
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    Response,
    SessionFacts,
    Signal,
    UserLine,
)
from contextgauge.normalise.spellings import COMMON
from contextgauge.normalise.tells import Source, Tells
from contextgauge.normalise.usage import read_inside, summary_cost
from contextgauge.records import Json


def call(body: Body) -> tuple[Signal, ...]:
    """Return the response that a row of the ledger is, or the compaction that its call made."""
    counted = read_inside(count(body, "input"), count(body, "read"), count(body, "write"))
    output, key = count(body, "output"), name(body, "id")
    facts = _facts(body, only_new=flag(body, *COMMON.sidechain))
    if flag(body, "isCompaction"):
        cost = summary_cost(counted, output)
        return (facts, Boundary(None, None, None, None, None, {}, None, receipt=cost))
    model = served_model(name(body, "model"), name(body, "provider"))
    response = Response(
        key, key, model, counted, output, (), exhausted=False, boundary=None, is_whole=True
    )
    limit = window(body, "window")
    return (facts, *(() if limit is None else (OwnWindow(limit),)), response)


def cause(body: Body) -> str | None:
    """Return what identifies a row: the session's folder, model and provider may change later."""
    return name(body, "id")


def moment(body: Body) -> int | None:
    """Return when a row or a message was written, from seconds since 1970."""
    written_s = count(body, "created")
    return None if written_s is None else in_range(written_s * 1_000)


def head(body: Body) -> tuple[Signal, ...]:
    """Return what the first line of a file says of its session's last call."""
    facts = _facts(body, only_new=False)
    counted = read_inside(count(body, "input_tokens"), None)
    if counted is None or not counted.used:
        return (facts,)
    output = count(body, "output_tokens")
    response = Response(
        None, None, None, counted, output, (), exhausted=False, boundary=None, is_whole=True
    )
    return (facts, response)


def message(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a person's message is."""
    if prompt(body) is None:
        return ()
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def prompt(body: Body) -> Json:
    """Return what a person wrote; results of tools are in the user's role, too."""
    blocks = body.get("content")
    if body.get("role") != "user" or not isinstance(blocks, list):
        return None
    own: list[Json] = [each for each in blocks if isinstance(each, dict) and text(each, "text")]
    return own or None


def _facts(body: Body, *, only_new: bool) -> SessionFacts:
    folder = long_name(body, "working_dir")
    return SessionFacts("goose", None, None, folder, None, only_new=only_new)


def _of_file(_: Body) -> FileHead:
    return FileHead(None, is_by_name=True)


_ROWS: Final = """
WITH RECURSIVE named(id, parent_id, name) AS (
    SELECT id, parent_session_id, id || '-' || coalesce(strftime('%s', created_at), '')
    FROM sessions
), main(id, name) AS (
    SELECT id, name FROM named WHERE parent_id IS NULL OR parent_id NOT IN (SELECT id FROM named)
    UNION ALL
    SELECT named.id, main.name FROM named JOIN main ON named.parent_id = main.id
)
SELECT usage_ledger.id, named.name || '-' || usage_ledger.id, json_object(
    'runtime', 'goose',
    'type', 'call',
    'id', named.name || '-' || usage_ledger.id,
    'sessionId', main.name,
    'agentId', iif(main.name = named.name, NULL, named.name),
    'isSidechain', json(iif(main.name = named.name, 'false', 'true')),
    'created', usage_ledger.created_timestamp,
    'model', usage_ledger.model,
    'input', usage_ledger.input_tokens,
    'output', usage_ledger.output_tokens,
    'read', usage_ledger.cache_read_tokens,
    'write', usage_ledger.cache_write_tokens,
    'isCompaction', json(iif(usage_ledger.is_compaction, 'true', 'false')),
    'provider', sessions.provider_name,
    'window', CASE WHEN json_valid(sessions.model_config_json)
        THEN iif(json_extract(sessions.model_config_json, '$.model_name') = usage_ledger.model,
            json_extract(sessions.model_config_json, '$.context_limit'), NULL) END,
    'working_dir', sessions.working_dir)
FROM usage_ledger
JOIN sessions ON sessions.id = usage_ledger.session_id
JOIN named ON named.id = sessions.id
JOIN main ON main.id = sessions.id
WHERE usage_ledger.id > :after
    AND usage_ledger.cost_source IS NOT 'carried_forward'
    AND (usage_ledger.input_tokens > 0 OR usage_ledger.is_compaction)
ORDER BY usage_ledger.id LIMIT :limit
"""
"""A window is the one that goose takes the model to have which its session uses now."""

_SESSIONS: Final = """
SELECT id || '-' || coalesce(strftime('%s', created_at), ''), name FROM sessions
WHERE (parent_session_id IS NULL OR parent_session_id NOT IN (SELECT id FROM sessions))
    AND EXISTS (SELECT 1 FROM usage_ledger WHERE usage_ledger.session_id = sessions.id)
"""

_CALL: Final[Fields] = {
    **named(Meaning.NAME, "id model provider agentId runtime"),
    **named(Meaning.LONG_NAME, "sessionId working_dir"),
    **named(Meaning.FIGURES, "input output read write window isCompaction created isSidechain"),
}
_HEAD: Final[Fields] = {
    **named(Meaning.LONG_NAME, "working_dir"),
    **named(
        Meaning.FIGURES,
        "message_count total_tokens input_tokens output_tokens accumulated_total_tokens "
        "accumulated_input_tokens accumulated_output_tokens",
    ),
    "description": Meaning.TEXT,
}
_MESSAGE: Final[Fields] = {"role": Meaning.WORD, "created": Meaning.FIGURES, "content": CONTENT}
_SIGN: Final[Sign] = {"type": "call", "runtime": "goose"}
_LINES: Final[Sign] = {"message_count": int, "description": str, "type": ABSENT}

ADAPTERS: Final = (
    Adapter(
        label="goose",
        signs=(_SIGN, _LINES),
        line_signs=(
            _SIGN,
            _LINES,
            {"role": str, "created": int, "content": list, "type": ABSENT},
        ),
        types={"call": LineType(call, _CALL, moment=moment)},
        untyped={
            "message_count": LineType(head, _HEAD, head=_of_file),
            "created": LineType(message, _MESSAGE, prompt=prompt, moment=moment),
        },
        cause=cause,
        compacts_itself=True,
        database=Database((_ROWS,), (_SESSIONS,)),
        files=(
            r"(?:goose|data)/sessions/sessions\.db",
            r"goose/sessions/(?P<session>[^/]+)\.jsonl",
        ),
        folders=Folders((), ("$GOOSE_PATH_ROOT/data", "$XDG_DATA_HOME/goose"), "sessions"),
        prompt_words=("user",),
        tells=Tells(
            version="schema 17",
            window=Source.MEASURED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            own_cost=Source.MEASURED,
            subagents=Source.MEASURED,
            note="Before there was a ledger of calls (schema 15) only the size of a session's last "
            "call was kept: it is read of files of lines, and not of the database. The window is "
            "that of goose's settings for the session's model, else of the model's name where its "
            "maker serves it.",
        ),
    ),
)
