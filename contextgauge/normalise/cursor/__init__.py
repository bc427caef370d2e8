"""Cursor: the sizes that its editor keeps with each conversation, in a database of the editor.

Cursor publishes no source: this is what public readers of its `cursorDiskKV` agree on, up to 2.x.
A conversation is one row, which takes the place of the row before whenever it changes, and gives
the size of the context and the limit by which Cursor shows it in percent. In the middle of 2025 it
had neither: then it is what the last answer was sent, which a row of its own has (a public database
of version 0.50 does). The files of its CLI (`store.db`) have no sizes.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    Adapter,
    Database,
    Fields,
    Folders,
    LineType,
    Meaning,
    named,
)
from contextgauge.normalise.fields import count, in_range, name, window
from contextgauge.normalise.limit_signals import OwnWindow
from contextgauge.normalise.signals import Body, Response, SessionFacts, Signal, Usage
from contextgauge.normalise.spellings import COMMON
from contextgauge.normalise.tells import Compared, Source, Tells

_AUTOMATIC: Final = "default"
"""What stands for a model that Cursor chooses itself."""


def conversation(body: Body) -> tuple[Signal, ...]:
    """Return the size of a conversation's context, and its limit."""
    used, limit, model = count(body, "used"), window(body, "limit"), name(body, "model")
    response = Response(
        None,
        None,
        None if model == _AUTOMATIC else model,
        None if used is None else Usage(used, None, None),
        None,
        (),
        exhausted=False,
        boundary=None,
        is_whole=True,
    )
    facts = SessionFacts("cursor", None, None, None, None, only_new=False)
    return (facts, *(() if limit is None else (OwnWindow(limit),)), response)


def moment(body: Body) -> int | None:
    """Return when a conversation changed."""
    changed_ms = count(body, "changed")
    return None if changed_ms is None else in_range(changed_ms)


_LAST: Final = """
    SELECT json_extract(CAST(answer.value AS text), '$.tokenCount.inputTokens')
    FROM json_each(own.data, '$.fullConversationHeadersOnly') AS header
    JOIN cursorDiskKV AS answer
        ON answer.key = 'bubbleId:' || own.id || ':' || json_extract(header.value, '$.bubbleId')
    WHERE CASE WHEN json_valid(CAST(answer.value AS text))
        THEN json_extract(CAST(answer.value AS text), '$.tokenCount.inputTokens') > 0 END
    ORDER BY header.key DESC LIMIT 1
"""
"""Rows of answers are written again in any order: the conversation has theirs."""

_OWN: Final = """
WITH own AS (
    SELECT rowid AS number, substr(key, 14) AS id,
        CASE WHEN json_valid(CAST(value AS text)) THEN CAST(value AS text) END AS data
    FROM cursorDiskKV WHERE rowid > $after AND key GLOB 'composerData:?*'
), conversation AS (
    SELECT number, id, CAST(coalesce(
            json_extract(data, '$.contextTokensUsed'),
            CASE WHEN json_type(data, '$.fullConversationHeadersOnly') IS 'array'
                THEN ($last) END) AS integer) AS used,
        CAST(json_extract(data, '$.contextTokenLimit') AS integer) AS most,
        json_extract(data, '$.modelConfig.modelName') AS model,
        json_extract(data, '$.name') AS title,
        coalesce(json_extract(data, '$.lastUpdatedAt'), json_extract(data, '$.createdAt'))
            AS changed
    FROM own
)
""".replace("$last", _LAST)

_ROWS: Final = (
    _OWN.replace("$after", ":after")
    + """
SELECT number, id || ' ' || used || ' ' || coalesce(changed, ''), json_object(
    'runtime', 'cursor',
    'type', 'conversation',
    'session_id', id,
    'changed', changed,
    'used', used,
    'limit', most,
    'model', model)
FROM conversation WHERE used > 0 ORDER BY number LIMIT :limit
"""
)

_SESSIONS: Final = "$own SELECT id, title FROM conversation WHERE used > 0".replace(
    "$own", _OWN.replace("$after", "-1")
)

_FIELDS: Final[Fields] = {
    **named(Meaning.NAME, "model runtime"),
    **named(Meaning.LONG_NAME, "session_id"),
    **named(Meaning.FIGURES, "changed used limit"),
}
_SIGN: Final = {"type": "conversation", "runtime": "cursor"}

ADAPTERS: Final = (
    Adapter(
        label="Cursor",
        signs=(_SIGN,),
        line_signs=(_SIGN,),
        types={"conversation": LineType(conversation, _FIELDS, moment=moment)},
        spelling=COMMON,
        has_own_windows=True,
        compacts_itself=True,
        database=Database((_ROWS,), (_SESSIONS,)),
        files=(r"Cursor/User/globalStorage/state\.vscdb",),
        folders=Folders(
            (),
            ("$XDG_CONFIG_HOME/Cursor/User", "~/Library/Application Support/Cursor/User"),
            "globalStorage",
        ),
        tells=Tells(
            version="2.x",
            compared=Compared(
                2, 2, mended=2, sources=("Aleksey0x/CursorSync: globalStorage/state.vscdb",)
            ),
            window=Source.MEASURED,
            size=Source.MEASURED,
            note="Cursor keeps the last size of a conversation: earlier ones are seen where it is "
            "followed. In the middle of 2025 it is that of the last answer, without a window. Its "
            "summaries show as smaller sizes alone, and it does not keep the model where it "
            "chooses it itself. Its CLI keeps no sizes.",
        ),
    ),
)
