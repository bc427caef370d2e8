"""Frozen dataclasses that are fast to define and fast to create.

`dataclasses` compiles six methods for every frozen class, which is most of the time that importing
the records and views takes, and its constructor sets each field through `object.__setattr__`, a
fourteenth of the time to derive a message. Here all classes share all but the constructor, and
while that runs the instance is of a class that is not frozen, so that it sets fields as any other
does. A subclass has to be decorated too. Type checkers see `dataclasses.dataclass`:

    if TYPE_CHECKING:
        from dataclasses import dataclass
    else:
        from contextgauge.frozen import dataclass
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError
from functools import cache
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

Class = TypeVar("Class", bound=type)
Instance = TypeVar("Instance")
Arguments = ParamSpec("Arguments")


def dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[Class], Class]:
    """Return a decorator like that of `dataclasses.dataclass`, for frozen classes with slots.

    Raises TypeError for others, and for a class with `__post_init__`.
    """

    def define(cls: Class) -> Class:
        if not frozen or not slots or hasattr(cls, "__post_init__"):
            raise TypeError(f"{cls.__name__}: only frozen dataclasses with slots, no __post_init__")
        # Defined as one that is not frozen, of such ones: else it would get methods of its own.
        bases = list(filter(dataclasses.is_dataclass, cls.__mro__[1:]))
        _declare(bases, frozen=False)
        decorate = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=True, kw_only=kw_only
        )
        defined: Any = decorate(cls)
        _declare([*bases, defined], frozen=True)
        defined.__repr__, defined.__eq__, defined.__hash__ = _repr, _eq, _hash
        defined.__setattr__, defined.__delattr__ = _refuse_setting, _refuse_deleting
        defined.__getstate__, defined.__setstate__ = _values, _set_values
        _add_init(defined)
        result: Class = defined
        return result

    return define


def _declare(classes: Iterable[Any], *, frozen: bool) -> None:
    """Set what `dataclasses` takes classes for."""
    for cls in classes:
        cls.__dataclass_params__.frozen = frozen


if TYPE_CHECKING:
    replace = dataclasses.replace
else:

    def replace(instance: object, **changes: object) -> object:
        """Return a copy with changes, as `dataclasses.replace` does, in a fifth of its time."""
        cls = type(instance)
        result = _copier(cls)(instance)
        for name, value in changes.items():
            setattr(result, name, value)
        result.__class__ = cls
        return result


@cache
def _copier(cls: type[Any]) -> Callable[[Any], Any]:
    """Return what copies an instance into one of the class that is not frozen."""
    scope: dict[str, Any] = {"new": object.__new__, "open": cls.__init__.__globals__["open"]}
    names = (field.name for field in dataclasses.fields(cls))
    body = "".join(f"    result.{name} = self.{name}\n" for name in names)
    return _function("copy(self)", f"    result = new(open)\n{body}    return result\n", scope)


def _function(head: str, body: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """Return a function that is written for the fields of one class."""
    exec(f"def {head}:\n{body}", scope)  # noqa: S102 -- as dataclasses does
    function: Callable[..., Any] = scope[head.partition("(")[0]]
    return function


def copied(cls: Callable[..., Instance], source: object, **others: object) -> Instance:
    """Return an instance of a class with the fields that a dataclass instance has too, and others.

    Of what is in both, the others count.
    """
    origin: Any = type(source)
    return cls(**{name: getattr(source, name) for name in _shared(cls, origin)} | others)


@cache
def _shared(cls: Any, source: Any) -> tuple[str, ...]:  # noqa: ANN401 -- dataclasses
    names = {field.name for field in dataclasses.fields(source)}
    return tuple(field.name for field in dataclasses.fields(cls) if field.name in names)


def fields_of(instance: object) -> dict[str, Any]:
    """Return a dataclass instance's fields in their order; what is in them stays as it is.

    Raises TypeError for another instance.
    """
    cls: Any = type(instance)
    return _reader(cls)(instance)


_DISPLAYED: Final = 15
"""Fields that Python puts into a dict at once; it makes several dicts of more, and merges them."""


@cache
def _reader(cls: type[Any]) -> Callable[[Any], dict[str, Any]]:
    names = [field.name for field in dataclasses.fields(cls)]
    body = f"    return {{{', '.join(f'{name!r}: self.{name}' for name in names)}}}\n"
    if len(names) > _DISPLAYED:
        stored = "".join(f"    result[{name!r}] = self.{name}\n" for name in names)
        body = f"    result = empty.copy()\n{stored}    return result\n"
    return _function("read(self)", body, {"empty": dict.fromkeys(names)})


def maker(cls: Callable[Arguments, Instance]) -> Callable[Arguments, Instance]:
    """Return a function that creates instances as the class does, in half the time.

    Python makes a dict of the named arguments when a class is called, but not of a function's.
    """
    arguments, scope, fields = _parameters(cls)
    body = ["    self = new(open)\n", *fields, "    self.__class__ = frozen\n    return self\n"]
    return _function(f"make({arguments})", "".join(body), scope)


def opened(instance: object) -> Any:  # noqa: ANN401 -- of the instance's fields, but not frozen
    """Return a copy whose fields can be set, until it is `closed`: quicker where many change."""
    cls: Any = type(instance)
    return _copier(cls)(instance)


def closed(instance: Any, cls: type[Instance]) -> Instance:  # noqa: ANN401 -- see `opened`
    """Return an opened copy as an instance of its class, frozen again."""
    instance.__class__ = cls
    result: Instance = instance
    return result


def _add_init(cls: type[Any]) -> None:
    arguments, scope, fields = _parameters(cls, _not_frozen(cls))
    scope["set_class"] = object.__dict__["__class__"].__set__
    body = ["    set_class(self, open)\n", *fields, "    set_class(self, frozen)\n"]
    arguments = f"self, {arguments}" if arguments else "self"
    cls.__init__ = _function(f"__init__({arguments})", "".join(body), scope)
    cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"


def _parameters(
    cls: Any,  # noqa: ANN401 -- a class, or what creates its instances
    not_frozen: type[Any] | None = None,
) -> tuple[str, dict[str, Any], list[str]]:
    """Return a constructor's arguments, what it refers to, and lines that set the fields."""
    opened_class = not_frozen or cls.__init__.__globals__["open"]
    scope: dict[str, Any] = {"MISSING": MISSING, "frozen": cls, "open": opened_class}
    scope["new"] = object.__new__
    positional, named, lines = list[str](), list[str](), list[str]()
    for field in dataclasses.fields(cls):
        name = field.name
        argument = value = name
        if field.default is not MISSING:
            scope[f"default_{name}"] = field.default
            argument = f"{name}=default_{name}"
        elif field.default_factory is not MISSING:
            scope[f"make_{name}"] = field.default_factory
            argument = f"{name}=MISSING"
            value = f"make_{name}() if {name} is MISSING else {name}"
        (named if field.kw_only else positional).append(argument)
        lines.append(f"    self.{name} = {value}\n")
    return ", ".join([*positional, *(["*", *named] if named else [])]), scope, lines


def _not_frozen(cls: type[Any]) -> type[Any]:
    """Return a class with the same slots, whose fields can be set."""
    setters = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(cls.__name__, cls.__bases__, {"__slots__": cls.__slots__, **setters})


def _values(instance: Any) -> tuple[Any, ...]:  # noqa: ANN401 -- of any such class
    cls: Any = type(instance)
    return _tuple_reader(cls)(instance)


def _set_values(self: Any, values: tuple[Any, ...]) -> None:  # noqa: ANN401 -- as above
    cls: Any = type(self)
    _setter(cls)(self, values)


@cache
def _tuple_reader(cls: Any) -> Callable[[Any], tuple[Any, ...]]:  # noqa: ANN401 -- as above
    values = "".join(f"self.{field.name}, " for field in dataclasses.fields(cls))
    return _function("read(self)", f"    return ({values})\n", {})


@cache
def _setter(cls: Any) -> Callable[[Any, tuple[Any, ...]], None]:  # noqa: ANN401 -- as above
    """Return what sets all fields of an instance that has none yet: records cross processes."""
    scope: dict[str, Any] = {
        "set_class": object.__dict__["__class__"].__set__,
        "open": cls.__init__.__globals__["open"],
        "frozen": cls,
    }
    targets = "".join(f"self.{field.name}, " for field in dataclasses.fields(cls))
    body = f"    set_class(self, open)\n    ({targets}) = values\n    set_class(self, frozen)\n"
    return _function("set_all(self, values)", body, scope)


def _refuse_setting(self: object, name: str, value: object) -> None:
    del self, value
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: object, name: str) -> None:
    del self
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: Any) -> str:  # noqa: ANN401
    fields = dataclasses.fields(self)
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: object, other: object) -> bool:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: object) -> int:
    return hash(_values(self))
