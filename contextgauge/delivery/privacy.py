"""A message without its texts: each is replaced by its length, and derivation stays the same.

What stays is what the runtimes' adapters declare to be read (`contextgauge/normalise`): ids, types,
statuses, models, versions, folders, times, numbers, flags, and the beginnings by which commands are
known (R23, R24, R27). Everything else that could be words of a human or a model goes: contents,
thinking, tools' inputs and outputs, images, summaries, errors, and the values of unknown fields. A
replacement has the type of what it replaces, so that a reader sees what it saw. A field of its own
tells sizes and hashes of what was there (R35).

The records are equal but for the texts in them, and for ids: a message without a `uuid` has the
hash of its bytes for its cause, and these are others now. Such a message carries a keyed hash of
its original, so that two that differed in their texts alone still differ (R4), and no one without
the key can try texts against it.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias, TypeGuard, assert_never

from contextgauge import json_codec
from contextgauge.containers import Line
from contextgauge.delivery.blanks import LEFT_OUT, blank, characters, stub
from contextgauge.delivery.content_measures import measured
from contextgauge.messages import DeadLetter
from contextgauge.normalise.adapter import (
    NO_TEXT,
    Blocks,
    ByName,
    Either,
    Field,
    Fields,
    Inside,
    LineType,
    Meaning,
    Only,
    Rows,
    Words,
)
from contextgauge.normalise.fields import MAX_LONG_NAME, MAX_NAME, name
from contextgauge.normalise.runtimes import FIGURE_WORDS, line_of
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

MARK = NO_TEXT
"""Field of a message without texts: true, or the keyed hash (hex) where it has no `uuid`."""

_DIGEST_BYTES = 16
"""Of the keyed hash: as much as a UUID has, and no two messages of a session meet."""

_STRUCTURE_DEPTH = 16
"""Objects in objects of a usage or metadata; real ones have four. What is deeper is left out."""

_CONTENT_DEPTH = 3
"""Blocks in blocks: a tool's result holds some. What is deeper is left out."""

_WORD = re.compile(r"[\w.:<>/-]{1,64}", re.ASCII)
"""What a type or a status looks like. One that does not is known to no reader either."""

_KEY = re.compile(r"[A-Za-z_$][\w.$-]{0,63}", re.ASCII)
"""What a field of a runtime is called. Other names may be words of the user."""

_ID = re.compile(
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(toolu|srvtoolu|msg|req|resp|call|rs|fc|cmp|item)_[A-Za-z0-9_-]{8,120}"
)
"""Ids as runtimes and providers make them: no person writes such a text."""

_TIME_CHARACTERS = 64
"""Longer than any timestamp that can be read."""

Handler: TypeAlias = Callable[[Json], Json]
Handlers: TypeAlias = Mapping[str, Handler]
Beginning: TypeAlias = Callable[[str], str]


def without_text(body: Body, raw: bytes, key: bytes) -> dict[str, Json]:
    """Return the message without texts; the original is left alone.

    `raw` are its bytes without the line end. `key` (1 to 64 bytes, secret) must be the same
    whenever the same message may be published again: else it would count twice where it has no
    `uuid`.
    """
    line = line_of(body)
    stripped = _object(_handlers_of(line), body)
    stripped[MARK] = True
    stripped |= measured(body, key)
    if name(body, "uuid") is None:
        # What identifies it may be made of its texts: then so is this.
        own = None if line.cause is None else line.cause(body)
        raw = raw if own is None else own.encode("utf-8", "surrogatepass")
        stripped[MARK] = hashlib.blake2b(raw, key=key, digest_size=_DIGEST_BYTES).hexdigest()
    return stripped


_OF_LINES: Final[dict[int, Handlers]] = {}
"""By the identity of a line's type, which stays: there are some thirty."""


def _handlers_of(line: LineType) -> Handlers:
    if id(line) not in _OF_LINES:
        _OF_LINES[id(line)] = _handlers(line.fields, line.beginning)
    return _OF_LINES[id(line)]


def _handlers(fields: Fields, beginning: Beginning) -> Handlers:
    return {name: _handler(field, beginning) for name, field in fields.items()}


def _handler(field: Field, beginning: Beginning) -> Handler:
    """Return what replaces a value by what it means: one of another type is blanked.

    `beginning` gives the beginning by which the line's runtime knows a text.
    """
    inside = partial(_handlers, beginning=beginning)
    match field:
        case Meaning.TEXT:
            return partial(_text, beginning=beginning)
        case Meaning():
            return _BY_MEANING[field]
        case Words(own):
            return partial(_text, beginning=own)
        case Blocks(block):
            return partial(_content, block=inside(block), beginning=beginning)
        case Inside(fields, otherwise):
            other = blank if otherwise is None else _handler(otherwise, beginning)
            return _of(partial(_object, inside(fields)), other)
        case Rows(fields):
            row = _of(partial(_object, inside(fields)))
            return lambda value: [row(each) for each in value] if _is_list(value) else blank(value)
        case ByName(fields):
            return _of(partial(_by_name, row=_of(partial(_object, inside(fields)))))
        case Only(read, meaning):
            return _of(partial(_only, read=read, handler=_handler(meaning, beginning)))
        case Either(by, wanted, fields, otherwise):
            handlers, others = inside(fields), inside(otherwise)
            return _of(
                lambda value: _object(handlers if value.get(by) == wanted else others, value)
            )
        case _:
            assert_never(field)


def _is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def _of(inside: Callable[[dict[str, Json]], Json], other: Handler = blank) -> Handler:
    """Return the handler of an object, and of what is there in its place."""
    return lambda value: inside(value) if isinstance(value, dict) else other(value)


def _object(handlers: Handlers, value: dict[str, Json]) -> dict[str, Json]:
    """Return an object of a known kind: fields that are not known keep their names only."""
    stripped: dict[str, Json] = {}
    left_out: int | None = None
    for key, item in value.items():
        handler = handlers.get(key)
        if handler is not None:
            stripped[key] = handler(item)
        elif _KEY.fullmatch(key):
            stripped[key] = blank(item)
        else:
            left_out = (left_out or 0) + len(key) + characters(item)
    return stripped if left_out is None else stripped | {LEFT_OUT: left_out}


def _word(value: Json) -> Json:
    """Keep a type, a status or the like."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else blank(value)


def _name(value: Json, limit: int) -> Json:
    """Keep a name; one that is too long to be any stays too long."""
    if not isinstance(value, str):
        return blank(value)
    return value if len(value) <= limit else "." * (limit + 1)


def _time(value: Json) -> Json:
    """Keep what can be read as a time."""
    if not isinstance(value, str) or len(value) > _TIME_CHARACTERS:
        return blank(value)
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return blank(value)
    return value


def _text(value: Json, beginning: Beginning) -> Json:
    """Replace a text; the beginning by which it is known stays."""
    if not isinstance(value, str):
        return blank(value)
    begin = beginning(value)
    return begin if value == begin else begin + stub(value)


def _content(value: Json, block: Handlers, beginning: Beginning, depth: int = 0) -> Json:
    """Return a text, or blocks of which the kinds and ids stay."""
    if isinstance(value, str):
        return _text(value, beginning)
    if not isinstance(value, list) or depth == _CONTENT_DEPTH:
        return blank(value)
    again = partial(_content, block=block, beginning=beginning, depth=depth + 1)
    inner: Handlers = {**block, "content": again}
    return [_object(inner, each) if isinstance(each, dict) else blank(each) for each in value]


def _figures(value: Json, depth: int = 0, *, is_word: bool = False) -> Json:
    """Return an object of numbers and ids: a usage, metadata, an edit."""
    match value:
        case str():
            if (is_word and _WORD.fullmatch(value)) or _ID.fullmatch(value):
                return value
            return stub(value)
        case dict() if depth < _STRUCTURE_DEPTH:
            inner: Handlers = {
                key: partial(_figures, depth=depth + 1, is_word=key in FIGURE_WORDS)
                for key in value
                if _KEY.fullmatch(key)
            }
            return _object(inner, value)
        case list() if depth < _STRUCTURE_DEPTH:
            return [_figures(item, depth + 1) for item in value]
        case _:
            return blank(value)


def _by_name(value: dict[str, Json], row: Handler) -> Json:
    """Return objects by names, which stay; what is too long for one is no name."""
    rows: Handlers = {key: row for key in value if len(key) <= MAX_NAME}
    return _object(rows, value)


def _only(
    value: dict[str, Json],
    read: Callable[[dict[str, Json]], Mapping[str, Json]],
    handler: Handler,
) -> Json:
    """Leave out an object but for the few fields of it that are read."""
    fields = {name: handler(item) for name, item in read(value).items()}
    return fields | {LEFT_OUT: characters(value)} if fields else blank(value)


_BY_MEANING: Final[Mapping[Meaning, Handler]] = {
    Meaning.NAME: partial(_name, limit=MAX_NAME),
    Meaning.LONG_NAME: partial(_name, limit=MAX_LONG_NAME),
    Meaning.WORD: _word,
    Meaning.TIME: _time,
    Meaning.FIGURES: _figures,
}


def strip_text(line: Line, key: bytes) -> Line | DeadLetter:
    """Return the line without texts: what `publish --no-text` sends in its place.

    A pure function. `key` is 1 to 64 secret bytes, the same for every publisher that may send the
    line again (`contextgauge.state_folder.text_key` stores them). A line that cannot be read is a
    dead letter and must not be sent. Tens of megabytes take seconds: an event loop uses a thread.
    """
    if len(line.value) < line.size:
        return DeadLetter("too_large", f"{line.size} bytes: too large to be read")
    body = json_codec.decode(line.value, limit=line.size)
    if isinstance(body, DeadLetter):
        return body
    value = json_codec.dumps(without_text(body, line.value, key))
    return line._replace(value=value, size=len(value))
