"""opencode: the events of `opencode run --format json`, and its database's rows as such events.

Checked against anomalyco/opencode (packages/opencode up to 1.18; sql.ts, projector.ts and
compaction.ts of packages/core at 2.0), and databases that 1.15 to 2.0.26 wrote.

An event holds one part of a message. `step-finish` has the usage of one call of the model, next to
the input what was cached; a part `compaction` asks for one, and the call that answers it is of a
message with `summary`. The database names the message's model and the folder, and of a subagent's
session the one that it belongs to; the stream names neither. From 2.0 on a row is a whole message,
which counts once it is complete; messages that were copied from the older tables do not count.

A model's window is known where its maker serves it: what a provider in between allows is not.
"""

from functools import partial
from typing import Final

from contextgauge.normalise.adapter import (
    Adapter,
    Database,
    Folders,
    Inside,
    LineType,
    Meaning,
    named,
)
from contextgauge.normalise.fields import (
    count,
    flag,
    in_range,
    long_name,
    mapping,
    name,
    text,
    truth,
)
from contextgauge.normalise.served_models import served_model
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionRefused,
    CompactionStatus,
    Response,
    SessionFacts,
    Signal,
    TriggerHint,
    Usage,
    UserLine,
)
from contextgauge.normalise.spellings import COMMON
from contextgauge.normalise.tells import Compared, Source, Tells
from contextgauge.normalise.usage import summary_cost, without_cached
from contextgauge.record_words import Runtime, Trigger
from contextgauge.records import Json


def moment(body: Body) -> int | None:
    """Return a line's own time: milliseconds since 1970."""
    written_ms = count(body, "timestamp")
    return None if written_ms is None else in_range(written_ms)


def cause(body: Body) -> str | None:
    """Return a part's id: the folder and the version of its session may change later."""
    return name(mapping(body, "part") or {}, "id")


def step_finish(runtime: Runtime, body: Body) -> tuple[Signal, ...]:
    """Return the response that one call of the model is, or the compaction that it made."""
    part = mapping(body, "part") or {}
    tokens = mapping(part, "tokens")
    if tokens is None:
        return ()
    usage, output = _counts(tokens)
    if not usage.used:  # what a provider does not report is written as 0
        return ()
    message = mapping(body, "message") or {}
    if flag(message, "summary"):
        cost = summary_cost(usage, output)
        trigger = _TRIGGERS.get(truth(message, "auto"))
        return (
            *_facts(runtime, body),
            Boundary(trigger, None, None, None, None, {}, None, receipt=cost),
        )
    key = name(part, "id")
    response = Response(
        key, key, _model(message), usage, output, (), exhausted=False, boundary=None, is_whole=True
    )
    return (*_facts(runtime, body), response)


def _counts(tokens: Body) -> tuple[Usage, int | None]:
    """Return the counts of a call, and all that the model wrote.

    `output` leaves the reasoning out or not, by version.
    """
    cache = mapping(tokens, "cache") or {}
    counted = without_cached(tokens.get("input"), count(cache, "read"), count(cache, "write"))
    usage = counted or Usage(None, None, None)
    total = count(tokens, "total")
    return usage, count(tokens, "output") if total is None else max(0, total - usage.used)


def _model(message: Body) -> str | None:
    """Return the model; OpenAI's windows are smaller where a subscription pays, which is not known.

    See anomalyco/opencode: packages/opencode/src/plugin/codex.ts.
    """
    return served_model(name(message, "modelID"), name(message, "providerID"))


_TRIGGERS: Final[dict[bool | None, Trigger]] = {False: "manual", True: "auto"}


def compaction(runtime: Runtime, body: Body) -> tuple[Signal, ...]:
    """Return that a compaction begins, and what triggers it."""
    part = mapping(body, "part") or {}
    trigger = TriggerHint("auto" if flag(part, "auto") else "manual")
    return (*_facts(runtime, body), trigger, CompactionStatus("COMPACTING"))


def compacted(runtime: Runtime, body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a compaction is which ended, or that it failed."""
    part = mapping(body, "part") or {}
    if part.get("status") == "failed":
        return (*_facts(runtime, body), CompactionRefused(text(part, "text"), blocked=False))
    tokens = mapping(part, "tokens")
    counted, output = _counts(tokens) if tokens is not None else (None, None)
    begun_ms, ended_ms = count(part, "created"), count(body, "timestamp")
    boundary = Boundary(
        "auto" if flag(part, "auto") else "manual",
        None,
        None,
        None if begun_ms is None or ended_ms is None else max(0, ended_ms - begun_ms),
        None,
        {},
        text(part, "text"),
        receipt=summary_cost(counted, output),
    )
    return (*_facts(runtime, body), boundary)


def words(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a person's text is."""
    if prompt(body) is None:
        return ()
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def prompt(body: Body) -> Json:
    """Return a person's text; opencode marks what it adds to a message as `synthetic`."""
    part, message = mapping(body, "part") or {}, mapping(body, "message") or {}
    if message.get("role") != "user" or flag(part, "synthetic", "ignored"):
        return None
    return text(part, "text")


def _facts(runtime: Runtime, body: Body) -> tuple[SessionFacts, ...]:
    session = mapping(body, "session") or {}
    folder, version = long_name(session, "directory"), name(session, "version")
    is_subagent = flag(body, *COMMON.sidechain)
    return (SessionFacts(runtime, version, None, folder, None, only_new=is_subagent),)


_MAIN: Final = """
WITH RECURSIVE main(id, session_id) AS (
    SELECT id, id FROM $session
    WHERE parent_id IS NULL OR parent_id NOT IN (SELECT id FROM $session)
    UNION ALL
    SELECT $session.id, main.session_id FROM $session JOIN main ON $session.parent_id = main.id
)"""
"""The session that each one is of: a subagent's whose parent was deleted is one of its own."""

_ROWS: Final = """
$main, own AS (
    SELECT part.rowid AS number, part.id, part.message_id, part.time_created,
        CASE WHEN json_valid(part.data) THEN part.data ELSE 'null' END AS data,
        CASE WHEN json_valid(message.data) THEN message.data ELSE 'null' END AS message,
        session.id AS session_id, session.parent_id, session.directory, session.version,
        session.time_created AS begun_ms
    FROM part
    JOIN message ON message.id = part.message_id
    JOIN session ON session.id = message.session_id
    WHERE part.rowid > :after
)
SELECT own.number, own.id, json_object(
    'runtime', '$runtime',
    'type', replace(json_extract(own.data, '$.type'), '-', '_'),
    'timestamp', own.time_created,
    'sessionID', coalesce(main.session_id, own.session_id),
    'agentId', iif(main.session_id <> own.session_id, own.session_id, NULL),
    'isSidechain', json(iif(main.session_id <> own.session_id, 'true', 'false')),
    'part', json_object(
        'id', own.id,
        'messageID', own.message_id,
        'type', json_extract(own.data, '$.type'),
        'tokens', json(json_extract(own.data, '$.tokens')),
        'auto', json(iif(json_extract(own.data, '$.auto'), 'true', 'false')),
        'text', json_extract(own.data, '$.text'),
        'synthetic', json(iif(json_extract(own.data, '$.synthetic'), 'true', 'false')),
        'ignored', json(iif(json_extract(own.data, '$.ignored'), 'true', 'false'))),
    'message', json_object(
        'role', json_extract(own.message, '$.role'),
        'modelID', json_extract(own.message, '$.modelID'),
        'providerID', json_extract(own.message, '$.providerID'),
        'summary', json(iif(json_extract(own.message, '$.summary') IS 1, 'true', 'false')),
        'auto', json((
            SELECT iif(json_extract(asked.data, '$.auto'), 'true', 'false') FROM part AS asked
            WHERE asked.message_id = json_extract(own.message, '$.parentID')
                AND CASE WHEN json_valid(asked.data)
                    THEN json_extract(asked.data, '$.type') = 'compaction' END))),
    'session', json_object('directory', own.directory, 'version', own.version))
FROM own LEFT JOIN main ON main.id = own.session_id
WHERE (json_extract(own.data, '$.type') IN ('step-finish', 'compaction')
        OR (json_extract(own.data, '$.type') = 'text'
            AND json_extract(own.message, '$.role') = 'user'))
    AND json_extract(own.message, '$.time.created') >= own.begun_ms
ORDER BY own.number LIMIT :limit
"""
"""Parts that are written once, and of them what does not change: the part that asks for a
compaction gets another field at its end. A fork's copies are older than its session: they are left
out. A row that is no JSON says nothing."""

_MESSAGES: Final = """
$main, own AS (
    SELECT session_message.rowid AS number, session_message.id, session_message.type,
        session_message.time_created, session_message.time_updated,
        CASE WHEN json_valid(session_message.data) THEN session_message.data ELSE '{}' END AS data,
        session_v2.id AS session_id, session_v2.parent_id, session_v2.directory, session_v2.version
    FROM session_message
    JOIN session_v2 ON session_v2.id = session_message.session_id
    WHERE session_message.rowid > :after
        AND session_message.type IN ('user', 'assistant', 'compaction')
        AND session_message.time_created >= session_v2.time_created
        AND NOT EXISTS ($copied)
)
SELECT own.number, own.id, CASE
    WHEN type = 'assistant' AND json_extract(data, '$.time.completed') IS NULL THEN NULL
    WHEN type = 'compaction' AND json_extract(data, '$.status') IS 'running' THEN NULL
    ELSE json_object(
        'runtime', '$runtime',
        'type', CASE type WHEN 'user' THEN 'text' WHEN 'assistant' THEN 'step_finish'
            ELSE 'compacted' END,
        'timestamp', CASE type WHEN 'assistant' THEN json_extract(data, '$.time.completed')
            WHEN 'compaction' THEN time_updated ELSE time_created END,
        'sessionID', coalesce(main.session_id, own.session_id),
        'agentId', iif(main.session_id <> own.session_id, own.session_id, NULL),
        'isSidechain', json(iif(main.session_id <> own.session_id, 'true', 'false')),
        'part', json_object(
            'id', own.id,
            'status', json_extract(data, '$.status'),
            'created', time_created,
            'tokens', json(iif(json_type(data, '$.tokens') = 'object', json_set(
                json_extract(data, '$.tokens'), '$.total',
                json_extract(data, '$.tokens.input') + json_extract(data, '$.tokens.output')
                    + json_extract(data, '$.tokens.reasoning')
                    + json_extract(data, '$.tokens.cache.read')
                    + json_extract(data, '$.tokens.cache.write')), NULL)),
            'auto', json(iif(json_extract(data, '$.reason') IS 'auto', 'true', 'false')),
            'text', coalesce(json_extract(data, '$.text'), json_extract(data, '$.summary'),
                iif(type = 'compaction', json_extract(data, '$.error.message'), NULL))),
        'message', json_object(
            'role', type,
            'modelID', json_extract(data, '$.model.id'),
            'providerID', json_extract(data, '$.model.providerID')),
        'session', json_object('directory', own.directory, 'version', own.version)) END
FROM own LEFT JOIN main ON main.id = own.session_id
ORDER BY own.number LIMIT :limit
"""
"""Messages of 2.0: as it copies those of the older tables, which it keeps, these are left out, as
are a fork's copies."""

_COPIED: Final = (
    "SELECT 1 FROM message WHERE message.id = session_message.id",
    "SELECT 1 FROM sqlite_master WHERE name = 'message'",
)
"""Of a database with the older tables, and of one without them."""

_LISTED: Final = """
$main
SELECT $session.id, title FROM $session LEFT JOIN main ON main.id = $session.id
WHERE coalesce(main.session_id, $session.id) = $session.id
"""


def _of_table(query: str, table: str) -> str:
    return query.replace("$main", _MAIN).replace("$session", table)


_SESSIONS: Final = (_of_table(_LISTED, "session"), _of_table(_LISTED, "session_v2"))
_QUERIES: Final = (
    _of_table(_ROWS, "session"),
    *(_of_table(_MESSAGES, "session_v2").replace("$copied", each) for each in _COPIED),
)

_PARTS: Final = {
    **named(Meaning.NAME, "id messageID"),
    **named(Meaning.LONG_NAME, "sessionID"),
    **named(Meaning.WORD, "type status"),
    **named(Meaning.FIGURES, "tokens auto overflow synthetic ignored cost created"),
}


def database_adapter(
    label: str, key: Runtime, version: str, compared: Compared, **sign: object
) -> Adapter:
    """Return the adapter of a runtime with opencode's tables, whose lines have this sign, too."""
    signs = ({**sign, "sessionID": str, "part": dict},)
    return Adapter(
        label=label,
        signs=signs,
        line_signs=signs,
        types={
            "step_finish": LineType(partial(step_finish, key), moment=moment),
            "compaction": LineType(partial(compaction, key), moment=moment),
            "compacted": LineType(partial(compacted, key), moment=moment),
            "text": LineType(words, prompt=prompt, moment=moment),
        },
        fields={
            **named(Meaning.NAME, "runtime agentId"),
            **named(Meaning.LONG_NAME, "sessionID"),
            **named(Meaning.FIGURES, "timestamp isSidechain"),
            "part": Inside({**_PARTS, "text": Meaning.TEXT}),
            "message": Inside(
                {
                    **named(Meaning.NAME, "modelID providerID"),
                    **named(Meaning.WORD, "role"),
                    **named(Meaning.FIGURES, "summary auto"),
                }
            ),
            "session": Inside({"directory": Meaning.LONG_NAME, "version": Meaning.NAME}),
        },
        spelling=COMMON._replace(session=("sessionID",)),
        cause=cause,
        compacts_itself=True,
        database=Database(tuple(each.replace("$runtime", key) for each in _QUERIES), _SESSIONS),
        files=(rf"{key}[^/]*\.db",),
        folders=Folders(("XDG_DATA_HOME",), ("~/.local/share",), key),
        prompt_words=('"text"',),
        tells=Tells(
            version,
            compared=compared,
            window=Source.DERIVED,
            size=Source.MEASURED,
            start=Source.MEASURED,
            end=Source.MEASURED,
            trigger=Source.MEASURED,
            duration=Source.DERIVED,
            summary=Source.MEASURED,
            own_cost=Source.MEASURED,
            subagents=Source.MEASURED,
            note="A window is known where the model's maker serves it. Up to 1.18 a compaction "
            "that failed is one without an end; from 2.0 on one is seen once it has ended, with "
            "its summary.",
        ),
    )


ADAPTERS: Final = (
    database_adapter(
        "opencode",
        "opencode",
        "2.0.26",
        Compared(1, 26, sources=("suhd550-dev/stunning-memory: opencode.db",)),
    ),
)
