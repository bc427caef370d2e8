"""Constructors of frozen dataclasses with slots that set the slots themselves.

`dataclasses` sets each field of a frozen class by `object.__setattr__`, which looks it up by name:
a fourteenth of what deriving a message took. What the constructor takes, and that nothing can
be changed afterwards, stays the same.
"""

from dataclasses import MISSING, fields
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def quick_init(cls: Class) -> Class:
    """Give a frozen dataclass with slots, whose fields have plain defaults, such a constructor.

    Raises TypeError for any other: a default factory, or something to do after the fields.
    """
    scope: dict[str, Any] = {}
    positional: list[str] = []
    named: list[str] = []
    body = []
    for field in fields(cls):
        if field.default_factory is not MISSING or not field.init or hasattr(cls, "__post_init__"):
            raise TypeError(f"{cls.__name__}.{field.name}: only plain fields can be set quickly")
        scope[f"set_{field.name}"] = getattr(cls, field.name).__set__
        argument = field.name
        if field.default is not MISSING:
            scope[f"default_{field.name}"] = field.default
            argument += f"=default_{field.name}"
        (named if field.kw_only else positional).append(argument)
        body.append(f"    set_{field.name}(self, {field.name})\n")
    arguments = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    source = f"def __init__({arguments}):\n{''.join(body)}"
    exec(source, scope)  # noqa: S102 -- names of fields only; dataclasses makes its own so too
    made, former = scope["__init__"], cls.__init__  # type: ignore[misc]  # of this very class
    made.__qualname__, made.__module__ = former.__qualname__, former.__module__
    made.__annotations__ = former.__annotations__
    cls.__init__ = made  # type: ignore[misc]  # as above
    return cls
