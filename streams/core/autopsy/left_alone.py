"""Files and commands that a turn names and that the agent has left alone since.

What a constraint forbids is, by order alone, what a turn names and no call touches, though the user
goes on to other things. An action on it that comes later may violate the constraint; whether the
turn forbids it, code does not know. Names are known by their shape: a path, or what stands in
backticks.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from streams.core.autopsy.trail import Trail, TrailCall

_CHARACTERS: Final = 4_000
_NAMES: Final = 50
"""Of a turn: a longer one, or one with more names, has pasted output."""

_CODE: Final = re.compile(r"`([^`\s][^`\n]{1,99})`")
_WORD: Final = re.compile(r"[\w./@~-]{2,200}")
_EXTENSION: Final = 8
"""Characters at most."""

_MOST_FOLDERS: Final = 40
"""Of a path: more are not looked at."""


class NamedThing(NamedTuple):
    """A path or a command, and the number of the latest turn that names it, from 0."""

    name: str
    turn: int


def touched_first(trail: Trail) -> dict[int, NamedThing]:
    """Return by the number of its call what an action touches as the first since it was named."""
    turns = [each.turn.text[:_CHARACTERS] for each in trail.turns]
    quoted = _by_name([_CODE.findall(each) for each in turns])
    paths = _by_name([[*_CODE.findall(each), *filter(_is_path, _words(each))] for each in turns])
    places = [each.place for each in trail.turns]
    touched: dict[str, int] = {}
    first: dict[int, NamedThing] = {}
    for index, call in enumerate(trail.calls):
        if not call.acts:
            continue
        before = bisect_left(places, call.place)
        for name, numbers in _named(call, paths, quoted):
            latest = bisect_left(numbers, before) - 1
            last, touched[name] = touched.get(name, -1), call.place
            if latest >= 0 and last < places[numbers[latest]]:
                first.setdefault(index, NamedThing(name, numbers[latest]))
    return first


def _by_name(names: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """Return the numbers of the turns that have each name."""
    numbers: dict[str, list[int]] = {}
    for number, own in enumerate(names):
        for name in islice(dict.fromkeys(map(_plain_path, own)), _NAMES):
            numbers.setdefault(name, []).append(number)
    return numbers


def _named(
    call: TrailCall, paths: dict[str, list[int]], quoted: dict[str, list[int]]
) -> Iterator[tuple[str, list[int]]]:
    """Yield the names that an action has: of its paths whole folders and files, of commands any."""
    for path in call.changed:
        parts = _plain_path(path).split("/")[-_MOST_FOLDERS:]
        for start in range(len(parts)):
            for end in range(start + 1, len(parts) + 1):
                name = "/".join(parts[start:end])
                if name in paths:
                    yield name, paths[name]
    for command in call.commands:
        for name, numbers in quoted.items():
            if name in command and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", command):
                yield name, numbers


def _words(text: str) -> Iterator[str]:
    return (each.rstrip(".") for each in _WORD.findall(text.replace("\\", "/")))


def _is_path(word: str) -> bool:
    """Return whether a word has folders, or an extension: `e.g.` and `3.5` have none."""
    name, _, extension = word.rpartition(".")
    has_extension = len(name) != 1 and extension[:1].isalpha() and len(extension) <= _EXTENSION
    return "/" in word.lstrip("/") or (has_extension and name != word and "." in word)


def _plain_path(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").strip("/")
