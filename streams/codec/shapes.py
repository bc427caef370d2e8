"""Reads plain JSON into frozen dataclasses, and refuses what has another shape.

What reads a class is made of its fields' types when it is first needed, in a millisecond for all
views; pydantic takes 20 to 40, which is a tenth of what a command takes. It does not convert: a
number in a text is no number.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from contextgauge.frozen import maker
from schemas.records import Json

Reader: TypeAlias = Callable[[Any], Any]

_NUMBERS: Final = (int, float)


class ShapeError(ValueError):
    """A value is not what its field takes; `place` leads to it, the innermost name first."""

    def __init__(self, *place: str) -> None:
        super().__init__(*place)
        self.place = place


@cache
def reader(cls: type[Any]) -> Reader:
    """Return what reads a dataclass from a dict. It raises ShapeError; other keys are ignored."""
    make: Callable[..., Any] = maker(cls)
    fields = [(field.name, _reader(field.type)) for field in dataclasses.fields(cls)]
    required = frozenset(
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )

    def read(document: Any) -> Any:  # noqa: ANN401 -- any JSON
        if type(document) is not dict:
            raise ShapeError
        values = {}
        for name, read_field in fields:
            if name in document:
                try:
                    values[name] = read_field(document[name])
                except ShapeError as error:
                    raise ShapeError(*error.place, name) from None
            elif name in required:
                raise ShapeError(name)
        return make(**values)

    return read


def _reader(kind: Any) -> Reader:  # noqa: ANN401 -- any type of a field
    """Return what reads a field. Raises TypeError for a type that no document has."""
    if kind == Json:
        return _whatever
    if dataclasses.is_dataclass(kind):
        return reader(kind)  # type: ignore[arg-type]  # of classes only
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return _of_union(arguments)
    if origin is Literal:
        return _one_of(frozenset(arguments))
    if origin is tuple and arguments[1:] == (...,):
        return _each(_reader(arguments[0]))
    if origin is dict and arguments[0] is str:
        return _by_name(_reader(arguments[1]))
    if kind is float:
        return _number
    if kind in {int, str, bool}:
        return _exactly(kind)
    raise TypeError(kind)


def _whatever(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    return value


def _of_union(kinds: tuple[Any, ...]) -> Reader:
    """Return what reads one type or null, or one of several sets of values."""
    others = [kind for kind in kinds if kind is not NoneType]
    literals = [kind for kind in others if get_origin(kind) is Literal]
    if len(literals) == len(others):
        read = _one_of(frozenset(value for kind in literals for value in get_args(kind)))
    else:
        (kind,) = others
        read = _reader(kind)
    if len(others) == len(kinds):
        return read
    return lambda value: None if value is None else read(value)


def _one_of(values: frozenset[Any]) -> Reader:
    def read(value: Any) -> Any:  # noqa: ANN401 -- any JSON
        if type(value) is str and value in values:
            return value
        raise ShapeError

    return read


def _exactly(kind: type[Any]) -> Reader:
    def read(value: Any) -> Any:  # noqa: ANN401 -- any JSON
        if type(value) is kind:
            return value
        raise ShapeError

    return read


def _number(value: Any) -> float:  # noqa: ANN401 -- any JSON
    if type(value) in _NUMBERS:
        return float(value)
    raise ShapeError


def _each(read_item: Reader) -> Reader:
    def read(values: Any) -> Any:  # noqa: ANN401 -- any JSON
        if type(values) is not list:
            raise ShapeError
        return tuple(map(read_item, values))

    return read


def _by_name(read_item: Reader) -> Reader:
    def read(values: Any) -> Any:  # noqa: ANN401 -- any JSON
        if type(values) is not dict:
            raise ShapeError
        items = {}
        for name, value in values.items():
            try:
                items[name] = read_item(value)
            except ShapeError as error:
                raise ShapeError(*error.place, name) from None
        return items

    return read
