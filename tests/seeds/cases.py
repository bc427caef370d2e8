"""The table of behaviours in `cases.toml`: sections of rows, and what their examples answer."""

import asyncio
import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.seeds.probes import PROBES

FILE: Final = Path(__file__).with_name("cases.toml")


class Example(NamedTuple):
    """A probe with its arguments, and what the seed says that it answers."""

    probe: str
    arguments: Mapping[str, Any]
    answer: Any


class Row(NamedTuple):
    """One behaviour. `declined` is the reason for another one in its place."""

    behaviour: str
    examples: tuple[Example, ...]
    tests: tuple[str, ...]
    declined: str | None


class Section(NamedTuple):
    """A heading, as Markdown, and what stands below it."""

    title: str
    note: str | None
    rows: tuple[Row, ...]


def introduction() -> str:
    """Return what stands above the table, as Markdown."""
    text: str = _table()["introduction"]
    return text


def _table() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def sections() -> list[Section]:
    """Return the table."""
    return [
        Section(each["title"], each.get("note"), tuple(map(_row, each.get("rows", ()))))
        for each in _table()["section"]
    ]


def _row(fields: dict[str, Any]) -> Row:
    examples = tuple(Example(*each) for each in fields.pop("examples", ()))
    tests = tuple(fields.pop("tests", ()))
    return Row(fields.pop("is"), examples, tests, fields.pop("declined", None), **fields)


def answer(example: Example) -> Any:
    """Return what an example's probe answers, in the values of TOML."""
    value = PROBES[example.probe](**example.arguments)
    return _in_toml(asyncio.run(value) if inspect.iscoroutine(value) else value)


def _in_toml(value: Any) -> Any:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return {name: _in_toml(each) for name, each in value.items() if each is not None}
    return [_in_toml(each) for each in value] if isinstance(value, list | tuple) else value
