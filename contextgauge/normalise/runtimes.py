"""The adapters of all runtimes, and which of them a line is of (R32).

The folders of this package are found when it is imported, so that a new runtime is one folder and
nothing else (docs/adr/0073-a-runtime-is-one-folder.md). A message is recognised by its structure:
the fields that a runtime gives all its messages, or that name it, never by a text of a person.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, TypeAlias, get_args

from contextgauge.normalise.adapter import ABSENT, PRESENT, Adapter, LineType, Meaning, Sign, joined
from contextgauge.normalise.figure_sources import figure_table
from contextgauge.normalise.signals import Body
from contextgauge.record_words import ADAPTER_FOLDERS, Runtime

OTHER: Final[Runtime] = "other"
"""One that is not read, or whose `init` has the signs of none that is known."""

_Sign: TypeAlias = tuple[tuple[tuple[str, ...], object], ...]
"""A sign's paths, taken apart, and what is wanted there."""


def _found() -> tuple[Adapter, ...]:
    """Return the adapters of this package's folders in the order in which they are asked.

    What is only recognised comes last, and before it what others borrowed their lines' form from.
    """
    adapters: list[Adapter] = []
    for folder in ADAPTER_FOLDERS:
        runtime = folder.replace("_", "-")
        declared = import_module(f"contextgauge.normalise.{folder}").ADAPTERS
        adapters += (each._replace(runtime=each.runtime or runtime) for each in declared)
    return tuple(sorted(adapters, key=lambda each: (not each.is_read, each.is_borrowed)))


ADAPTERS: Final = _found()

RUNTIMES: Final = tuple(adapter for adapter in ADAPTERS if adapter.signs)
"""Those of runtimes: answers of an API are of none."""

DEFAULT_WINDOW_OF: Final[frozenset[str | None]] = frozenset(
    {None, *(adapter.runtime for adapter in ADAPTERS if adapter.has_default_window)}
)
"""Runtimes of whose unknown models the default window is assumed; None: it was not reported."""

OWN_WINDOWS_OF: Final[frozenset[str | None]] = frozenset(
    adapter.runtime for adapter in ADAPTERS if adapter.has_own_windows
)
"""Runtimes whose windows the model's name does not give."""

COMPACTING_THEMSELVES: Final[frozenset[str | None]] = frozenset(
    adapter.runtime for adapter in ADAPTERS if adapter.compacts_itself
)
"""Runtimes whose context only they can compact; not `other`, which agents of one's own are too."""

OWN_CALLS: Final = tuple(each.own_calls for each in ADAPTERS if each.own_calls is not None)
OWN_CALL_PREFIXES: Final = tuple(each.prefix for each in OWN_CALLS)
"""Agent ids of a compaction's own call begin so; their chains emit nothing (R11)."""

DATABASES: Final = tuple((each, each.database) for each in ADAPTERS if each.database is not None)
"""The runtimes whose sessions are rows."""

JOINED: Final = tuple((each, each.joined) for each in ADAPTERS if each.joined is not None)
"""The runtimes whose sessions are documents, which are read as lines together."""

FIGURE_WORDS: Final = frozenset(name for each in ADAPTERS for name in each.figure_words)
"""Fields among figures that hold a word: an answer's usage is in the lines of any runtime."""

FOLDERS: Final = {each.runtime: each.folders for each in ADAPTERS if each.folders is not None}
FORKS: Final = {each.runtime: each.fork for each in ADAPTERS if each.fork is not None}
SETTINGS: Final = {each.runtime: each.settings for each in ADAPTERS if each.settings is not None}
"""By runtime."""

FIGURE_TABLE: Final = figure_table(
    column
    for adapter in sorted(ADAPTERS, key=lambda each: each.runtime)
    for column in adapter.figures
)
"""Where each figure comes from, by format: the titles, then a row for each figure."""

VERSIONS: Final = tuple(name for adapter in ADAPTERS for name in adapter.versions)


def _taken_apart(signs: Iterable[Sign]) -> tuple[_Sign, ...]:
    return tuple(
        tuple((tuple(path.split(".")), wanted) for path, wanted in sign.items()) for sign in signs
    )


_Signed: TypeAlias = tuple[tuple[tuple[_Sign, ...], Adapter], ...]

_SIGNED: Final[_Signed] = tuple((_taken_apart(each.signs), each) for each in RUNTIMES)
_TRANSCRIPTS: Final[_Signed] = tuple(row for row in _SIGNED if row[1].is_transcript)
_UNSUPPORTED: Final[_Signed] = tuple(row for row in _SIGNED if not row[1].is_read)

UNKNOWN: Final = LineType(
    fields=joined(
        dict.fromkeys(VERSIONS, Meaning.NAME),
        *(each.fields for each in ADAPTERS if each.is_borrowed),
    )
)
"""A line of no type that is read: with the fields that any may have, and none of one runtime."""


def _bound(adapter: Adapter, line: LineType) -> LineType:
    fields = joined(UNKNOWN.fields, adapter.fields, line.fields)
    return line._replace(
        fields=fields,
        spelling=adapter.spelling,
        session=adapter.session,
        cause=adapter.cause,
        beginning=adapter.beginning,
    )


def lines_by_type(adapters: Iterable[Adapter]) -> dict[str, LineType]:
    """Return the lines that no signs are needed for. Raises ValueError where two have a type."""
    lines: dict[str, LineType] = {}
    for adapter in adapters:
        for kind, line in adapter.types.items() if not adapter.line_signs else ():
            if kind in lines:
                raise ValueError(f"{adapter.label}: others have {kind!r} too: needs `line_signs`")
            lines[kind] = _bound(adapter, line)
    return lines


_Rivals: TypeAlias = tuple[tuple[tuple[_Sign, ...], LineType], ...]


def _rivals() -> dict[str, _Rivals]:
    """Return the lines that adapters know by their signs, by the type that others have too."""
    rivals: dict[str, _Rivals] = {}
    for adapter in ADAPTERS:
        for kind, line in adapter.types.items() if adapter.line_signs else ():
            rival = (_taken_apart(adapter.line_signs), _bound(adapter, line))
            rivals[kind] = (*rivals.get(kind, ()), rival)
    return rivals


_TYPES: Final = lines_by_type(ADAPTERS)
_RIVALS: Final = _rivals()
_UNTYPED: Final = tuple(
    (name, _taken_apart(adapter.line_signs), _bound(adapter, line))
    for adapter in ADAPTERS
    for name, line in adapter.untyped.items()
)
_NO_RIVALS: Final[_Rivals] = ()

HEADS: Final = tuple(
    kind
    for each in ADAPTERS
    for kind, line in each.types.items()
    if line.head is not None and not (each.line_signs and line.head({}).is_by_name)
)
"""Types of lines that begin a file and say whose it is, or are of one runtime alone."""


def line_of(body: Body) -> LineType:
    """Return what a line is: by its type, and where several runtimes have it, by its signs."""
    kind = body.get("type")
    if isinstance(kind, str):
        for signs, line in _RIVALS.get(kind, _NO_RIVALS):
            if _fits(signs, body):
                return line
        return _TYPES.get(kind, UNKNOWN)
    for name, signs, line in _UNTYPED:
        if name in body and (not signs or _fits(signs, body)):
            return line
    return UNKNOWN


IGNORED: Final = frozenset(kind for each in ADAPTERS for kind in each.ignored)
"""Types of lines that are known to say nothing of a context."""

BORROWED_TYPES: Final = frozenset(
    kind for each in ADAPTERS if each.is_borrowed for kind in each.types
)
"""Types of lines that runtimes which are not known have, too."""


def of_transcript(body: Body) -> Runtime | None:
    """Return which runtime wrote a line that has a transcript's fields; None: it does not say."""
    adapter = _first(_TRANSCRIPTS, body)
    return None if adapter is None else adapter.runtime


def of_init(body: Body) -> Runtime:
    """Return which runtime sent an `init`: the one that it names, or whose signs it has."""
    runtime = body.get("runtime")
    if isinstance(runtime, str) and runtime in get_args(Runtime):
        return runtime
    adapter = _first(_SIGNED, body)
    return OTHER if adapter is None else adapter.runtime


def is_known(body: Body) -> bool:
    """Return whether a message is recognised, of a runtime that is read or not."""
    return _first(_SIGNED, body) is not None


def unsupported(body: Body) -> Adapter | None:
    """Return the runtime of a message that this version does not read; None of any other."""
    return _first(_UNSUPPORTED, body)


def document_of(header: Body) -> Adapter | None:
    """Return the format of a JSON object that lists its messages, by its other fields."""
    adapter = _first(_SIGNED, header)
    return adapter if adapter is not None and adapter.document is not None else None


MARKS: Final = tuple(mark for each in ADAPTERS for mark in each.marks)
"""Of all runtimes: a conversation does not say which one wrote it."""


def has_sign_of(adapter: Adapter, body: Body) -> bool:
    """Return whether a message has one of the signs of a runtime."""
    return any(each is adapter and _fits(signs, body) for signs, each in _SIGNED)


def _first(rows: _Signed, body: Body) -> Adapter | None:
    for signs, adapter in rows:
        if _fits(signs, body):
            return adapter
    return None


def _fits(signs: tuple[_Sign, ...], body: Body) -> bool:
    for sign in signs:
        for path, wanted in sign:
            value: Any = body
            for name in path:
                value = value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
            if not _is_wanted(wanted, value):
                break
        else:
            return True
    return False


def _is_wanted(wanted: object, value: object) -> bool:
    if wanted is ABSENT or wanted is PRESENT:
        return (value is ABSENT) is (wanted is ABSENT)
    if isinstance(wanted, frozenset):
        return isinstance(value, str) and value in wanted
    if isinstance(wanted, type):
        # A number is a float or a whole one; true is neither.
        return type(value) is wanted or (wanted is float and type(value) is int)
    return value == wanted
