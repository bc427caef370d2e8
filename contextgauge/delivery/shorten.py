"""Shortening of over-long messages: the largest content gives way to a marked stub.

What derivation reads stays, as the runtimes' adapters declare it (`contextgauge/normalise`):
identity, session, type, model, usage, metadata, times. `publish`
and `replay` shorten alike, so both give the same records (golden property 5). A message with a
`uuid` keeps its cause; one without has the hash of the shortened line for it, which differs for
different originals since the mark holds the original's own hash.
"""

import gc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias, cast

from contextgauge.containers import Line
from contextgauge.delivery.content_measures import measured
from contextgauge.json_codec import decode, dumps
from contextgauge.messages import MESSAGE_LIMIT_BYTES, DeadLetter
from contextgauge.normalise.adapter import (
    SHORTENED,
    ByName,
    Either,
    Field,
    Fields,
    Inside,
    Meaning,
    Only,
    Rows,
)
from contextgauge.normalise.runtimes import line_of
from contextgauge.records import Json
from contextgauge.units import MIB

MARK = SHORTENED
"""Field that a shortened message carries: the original's size in bytes and SHA-256 (hex)."""

KEPT_CHARACTERS = 256
"""Beginning of a replaced text that stays: command tags stand there (R23, R27)."""

SMALLEST_BYTES = 1024
"""A shorter text, list or object is not replaced by itself: its stub would save little."""

_TOGETHER = 32
"""So many values of a list or object are measured at once: fewer are not worth the attempt."""

_ATTEMPTS = 8
"""Attempts to measure values together that find them large cost at most so many of the line's
lengths: where wide lists stand in wide lists, each level would write all below it once more."""

Dump: TypeAlias = Callable[[Json], bytes]


@dataclass(slots=True)
class _Node:
    """A value that may be large. `parent.value[step]` is where it stands; `size`: as JSON.

    `fields` are set of an object in which some are read: none of these is `replaceable`.

    The value is the message's own until something in it is replaced, which happens in a copy.
    """

    parent: "_Node | None"
    step: str | int
    value: Json
    size: int
    replaceable: bool
    fields: Fields | None = None
    is_copy: bool = False


def shorten(
    body: Mapping[str, Json], original: bytes, limit: int, dump: Dump
) -> dict[str, Json] | None:
    """Return the message with stubs, so that `dump` gives at most `limit` bytes; None: it cannot.

    Texts go first, the largest before the others; then lists and objects, the smallest that is
    enough by itself, else the largest. `original` is the line as it came.
    """
    mark: Json = {"bytes": len(original), "sha256": hashlib.sha256(original).hexdigest()}
    measures = measured(dict(body))
    own = dict.fromkeys((MARK, *measures), Meaning.FIGURES)
    fields = {**line_of(dict(body)).fields, **own}
    root = _Node(None, 0, {**body, MARK: mark, **measures}, 0, replaceable=False, fields=fields)
    texts: list[_Node] = []
    branches: list[_Node] = []
    for node in _Walk(SMALLEST_BYTES, dump, len(original)).large(root):
        if node.replaceable and isinstance(node.value, str):
            texts.append(node)
        elif node.replaceable and node.parent is not None and not node.parent.replaceable:
            branches.append(node)  # outermost: what is around it may not be replaced
    for node in sorted(texts, key=lambda text: -text.size):
        if root.size <= limit:
            break
        _replace(node, dump)
    branches.sort(key=lambda branch: -branch.size)
    for place, branch in enumerate(branches):
        if root.size <= limit:
            break
        # A stub takes some room too, so what is just the excess is not quite enough.
        excess = root.size - limit + 2 * SMALLEST_BYTES
        if branch.size < excess:
            _replace(branch, dump)
        else:
            walk = _Walk(excess, dump, len(original))
            _replace(min(walk.branches(branches[place:]), key=lambda node: node.size), dump)
    # Measured once more: a serialiser may spell a number differently in company.
    fits = root.size <= limit and len(dump(root.value)) <= limit
    return root.value if fits and isinstance(root.value, dict) else None


class _Walk:
    """Finds the values of at least `least` bytes of JSON, and keeps nothing about the others.

    A line of millions of small values would else take many times its size.
    """

    def __init__(self, least: int, dump: Dump, line_size: int) -> None:
        self._least = least
        self._dump = dump
        self._together = max(_TOGETHER, least // _TOGETHER)
        self._allowance = _ATTEMPTS * line_size

    def branches(self, starts: list[_Node]) -> Iterator[_Node]:
        """Yield the large lists and objects in such, themselves among them."""
        for start in starts:
            if start.size >= self._least:
                yield from (node for node in self.large(start) if not isinstance(node.value, str))

    def large(self, start: _Node) -> Iterator[_Node]:
        """Yield the large values in a list or object, with their sizes; itself is the last."""
        walked = [(start, self._parts(start))]
        while walked:
            node, parts = walked[-1]
            part = next(parts, None)
            if part is not None:
                walked.append((part, self._parts(part)))
                continue
            walked.pop()
            if walked:
                walked[-1][0].size += node.size
            if node.size >= self._least:
                yield node

    def _parts(self, node: _Node) -> Iterator[_Node]:
        """Set the node's size, without the large values in it; yield these.

        A list or object that is not known to be small is yielded too.
        """
        value = node.value
        if not isinstance(value, dict | list):
            return
        node.size = 1 + max(len(value), 1)
        if len(value) <= _TOGETHER:
            yield from self._singly(node, _steps(value, 0), are_many=False)
            return
        for begin, run in _runs(value, self._together):
            size = self._small_size(run)
            if size is None:
                yield from self._singly(node, _steps(run, begin), are_many=True)
            else:
                node.size += size - 1 - len(run)

    def _singly(
        self, node: _Node, steps: Iterable[tuple[str | int, Json]], *, are_many: bool
    ) -> Iterator[_Node]:
        for step, value in steps:
            if isinstance(step, str):
                node.size += len(self._dump(step)) + 1
            if isinstance(value, dict | list):
                size = self._small_size(value) if are_many else None
                if size is None:
                    yield _part(node, step, value, 0)
                    continue
            else:
                size = len(self._dump(value))
                if size >= self._least and isinstance(value, str):
                    yield _part(node, step, value, size)
                    continue
            node.size += size

    def _small_size(self, value: Json) -> int | None:
        """Return the JSON length; None where it is large, or no more attempts are allowed."""
        if self._allowance <= 0:
            return None
        size = len(self._dump(value))
        if size < self._least:
            return size
        self._allowance -= size
        return None


def _part(node: _Node, step: str | int, value: Json, size: int) -> _Node:
    part = _Node(node, step, value, size, replaceable=node.replaceable)
    if node.fields is not None:
        meaning = node.fields.get(str(step))
        part.fields = _inner_fields(meaning, value) if isinstance(value, dict) else None
        part.replaceable = part.fields is None and not _is_kept(meaning)
    return part


def _inner_fields(meaning: Field | None, value: dict[str, Json]) -> Fields | None:
    """Return the fields that are read of an object, if it may not be replaced as a whole."""
    match meaning:
        case Inside(fields, _):
            return fields
        case Either(by, wanted, fields, otherwise):
            return fields if value.get(by) == wanted else otherwise
        case Only(read, kept):
            return dict.fromkeys(names, kept) if (names := read(value)) else None
        case _:
            return None


def _is_kept(meaning: Field | None) -> bool:
    """Return whether a field stays whole: one without words of a person or a model."""
    match meaning:
        case Inside(_, otherwise):
            return otherwise is not None and _is_kept(otherwise)
        case Rows(fields):
            return all(map(_is_kept, fields.values()))
        case Meaning():
            return meaning is not Meaning.TEXT
        case _:
            return isinstance(meaning, ByName)


def _steps(holder: dict[str, Json] | list[Json], begin: int) -> Iterable[tuple[str | int, Json]]:
    """Return keys or places, and values; `begin` is the place of a list's first."""
    return holder.items() if isinstance(holder, dict) else enumerate(holder, begin)


def _runs(
    holder: dict[str, Json] | list[Json], length: int
) -> Iterator[tuple[int, dict[str, Json] | list[Json]]]:
    """Cut a list or object into such of at most `length` values, with the place of the first."""
    starts = range(0, len(holder), length)
    if isinstance(holder, list):
        yield from ((begin, holder[begin : begin + length]) for begin in starts)
    else:
        items = iter(holder.items())
        yield from ((begin, dict(islice(items, length))) for begin in starts)


def _replace(node: _Node, dump: Dump) -> None:
    """Put a stub in the node's place, in copies of all around it, and correct their sizes."""
    if isinstance(node.value, str):
        content = node.value.encode("utf-8", "surrogatepass")
        begin = node.value[:KEPT_CHARACTERS]
    else:
        content, begin = dump(node.value), ""
    digest = hashlib.sha256(content).hexdigest()
    stub = f"{begin}[contextgauge: {len(content)} bytes left out, sha256 {digest}]"
    saved = node.size - len(dump(stub))
    node.value = stub
    parent = node
    while parent.parent is not None:
        part, parent = parent, parent.parent
        parent.size -= saved
        if not parent.is_copy:
            parent.value, parent.is_copy = copy(parent.value), True
        cast("dict[str | int, Json]", parent.value)[part.step] = part.value


def fit(line: Line, limit: int = MESSAGE_LIMIT_BYTES) -> bytes | DeadLetter:
    """Return the line's bytes: as they are, or with stubs where they exceed `limit`.

    What is over the limit and cannot be shortened is a `too_large` dead letter, whatever else is
    wrong with it: that is what the deriver would find. A line of tens of megabytes takes seconds:
    on an event loop, call it in a thread.
    """
    if line.size <= limit:
        return line.value
    why = f"{line.size} bytes; the limit is {limit} ({limit / MIB:g} MiB)"
    if len(line.value) < line.size:
        return DeadLetter("too_large", f"{why}: too large to be read and shortened")
    # JSON holds no cycles, and in a line of millions of small lists the garbage collector's search
    # for them, again and again, takes longer than all else, with every other thread waiting.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        body = decode(line.value, limit=line.size)
        if isinstance(body, DeadLetter):
            return DeadLetter("too_large", f"{why}; it cannot be shortened: {body.detail}")
        short = shorten(body, line.value, limit, dumps)
        del body
    finally:
        if was_enabled:
            gc.enable()
    if short is None:
        return DeadLetter("too_large", f"{why}; what derivation reads of it is too large itself")
    return dumps(short)
