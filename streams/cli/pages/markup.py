"""HTML and SVG as text in which nothing that comes from outside is markup."""

from collections.abc import Iterable
from html import escape
from typing import Final

_VOID: Final = frozenset(("br", "input", "link", "meta"))
"""Elements without an end tag. SVG's have one."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(
    name: str, /, *children: str | Iterable[Html], **attributes: str | float | bool | None
) -> Html:
    """Return an element. Texts are escaped; what is `Html` stays as it is.

    Attributes are in Python's spelling (`class_`, `aria_label`). One that is None or False is left
    out, one that is True has no value.
    """
    begin = name + "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_value(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{begin}>" if name in _VOID else f"<{begin}>{joined(*children)}</{name}>")


def joined(*children: str | Iterable[Html]) -> Html:
    """Return elements and texts one after the other."""
    return Html("".join(_child(each) for each in children))


def _child(child: str | Iterable[Html]) -> str:
    if isinstance(child, Html):
        return child
    return escape(child, quote=False) if isinstance(child, str) else "".join(child)


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.6g}"
