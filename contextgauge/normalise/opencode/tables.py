"""The rows of opencode's database, since 1.2, as the events of `opencode run --format json`."""

from typing import Final

from contextgauge.normalise.adapter import Database
from contextgauge.record_words import Runtime

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
    SELECT $number AS number, part.id, part.message_id, $written AS written_ms,
        CASE WHEN json_valid(part.data) THEN part.data ELSE 'null' END AS data,
        CASE WHEN json_valid(message.data) THEN message.data ELSE 'null' END AS message,
        session.id AS session_id, session.parent_id, session.directory, session.version,
        session.time_created AS begun_ms
    FROM part
    JOIN message ON message.id = part.message_id
    JOIN session ON session.id = message.session_id
    WHERE $rows
), read AS (
    SELECT *, json_extract(data, '$.type') AS kind,
        json_extract(message, '$.role') AS role,
        CASE WHEN json_extract(data, '$.type') = 'text'
            AND json_extract(message, '$.summary') IS 1
            AND json_extract(message, '$.time.completed') IS NOT NULL
        THEN NOT EXISTS (
            SELECT 1 FROM part WHERE part.message_id = own.message_id
                AND CASE WHEN json_valid(part.data)
                    THEN json_extract(part.data, '$.type') = 'step-finish'
                        OR (part.id > own.id AND json_extract(part.data, '$.type') = 'text') END)
        END AS is_summary
    FROM own
)
SELECT read.number, read.id, json_object(
    'runtime', '$runtime',
    'type', iif(is_summary, 'step_finish', replace(kind, '-', '_')),
    'timestamp', written_ms,
    'sessionID', coalesce(main.session_id, read.session_id),
    'agentId', iif(main.session_id <> read.session_id, read.session_id, NULL),
    'isSidechain', json(iif(main.session_id <> read.session_id, 'true', 'false')),
    'part', json_object(
        'id', read.id,
        'messageID', message_id,
        'type', iif(is_summary, 'step-finish', kind),
        'tokens', json(json_extract(iif(is_summary, message, data), '$.tokens')),
        'auto', json(iif(json_extract(data, '$.auto'), 'true', 'false')),
        'text', iif(is_summary, (
            SELECT group_concat(json_extract(texts.data, '$.text'), char(10)) FROM (
                SELECT part.data FROM part
                WHERE part.message_id = read.message_id
                    AND CASE WHEN json_valid(part.data)
                        THEN json_extract(part.data, '$.type') = 'text' END
                ORDER BY part.id) AS texts), json_extract(data, '$.text')),
        'synthetic', json(iif(json_extract(data, '$.synthetic'), 'true', 'false')),
        'ignored', json(iif(json_extract(data, '$.ignored'), 'true', 'false'))),
    'message', json_object(
        'role', role,
        'modelID', json_extract(message, '$.modelID'),
        'providerID', json_extract(message, '$.providerID'),
        'summary', json(iif(json_extract(message, '$.summary') IS 1, 'true', 'false')),
        'auto', json((
            SELECT iif(json_extract(asked.data, '$.auto'), 'true', 'false') FROM part AS asked
            WHERE asked.message_id = json_extract(read.message, '$.parentID')
                AND CASE WHEN json_valid(asked.data)
                    THEN json_extract(asked.data, '$.type') = 'compaction' END))),
    'session', json_object('directory', read.directory, 'version', read.version))
FROM read LEFT JOIN main ON main.id = read.session_id
WHERE (kind IN ('step-finish', 'compaction') OR (kind = 'text' AND role = 'user') OR is_summary)
    AND json_extract(message, '$.time.created') >= begun_ms
ORDER BY $order LIMIT :limit
"""
"""Parts that are written once, and of them what does not change: the part that asks for a
compaction gets another field at its end. A fork's copies are older than its session: they are left
out. A row that is no JSON says nothing. See `stored` of a summary without a usage."""

_BEGUN: Final = "(SELECT time_created FROM part ORDER BY rowid LIMIT 1)"
_MOVED: Final = f"""
    +part.id GLOB 'prt_{"[0-9a-f]" * 12}*'
    AND part.id < printf('prt_%012x', (({_BEGUN} - 60000) << 12) & {(1 << 48) - 1})
    AND part.time_created = {_BEGUN}"""
"""What opencode took from its JSON files when it began the database: it did so in no order, and
gave all of it the time of that. An id begins with its own time, and is older than a minute."""

_HEX: Final = "(instr('0123456789abcdef', substr(part.id, {}, 1)) - 1) << {}"
_MADE: Final = " + ".join(f"({_HEX.format(5 + digit, 44 - 4 * digit)})" for digit in range(12))
"""What an id begins with: its time, of which `stored` tells, and a count."""

_SINCE: Final = f"(((({_MADE}) >> 12) - message.time_created) & {(1 << 36) - 1})"
_PARTS: Final = (
    {
        "number": _MADE,
        "order": "read.id",
        "rows": f"part.id >= printf('prt_%012x', :after + 1) AND {_MOVED}",
        "written": f"""min(
            message.time_created + iif({_SINCE} < {1 << 35}, {_SINCE}, 0),
            coalesce(CASE WHEN json_valid(message.data)
                THEN json_extract(message.data, '$.time.completed') END, part.time_created))""",
    },
    {
        "number": "part.rowid",
        "order": "read.number",
        "rows": f"part.rowid > :after AND NOT ({_MOVED})",
        "written": "part.time_created",
    },
)
"""These by their ids, then the others as they came."""

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


def _of_table(query: str, table: str, **words: str) -> str:
    for word, meaning in {"main": _MAIN, "session": table, **words}.items():
        query = query.replace(f"${word}", meaning)
    return query


_SESSIONS: Final = (_of_table(_LISTED, "session"), _of_table(_LISTED, "session_v2"))
_QUERIES: Final = (
    *(_of_table(_ROWS, "session", **each) for each in _PARTS),
    *(_of_table(_MESSAGES, "session_v2", copied=each) for each in _COPIED),
)


def database(runtime: Runtime) -> Database:
    """Return the database of a runtime that has opencode's tables."""
    return Database(tuple(each.replace("$runtime", runtime) for each in _QUERIES), _SESSIONS)
