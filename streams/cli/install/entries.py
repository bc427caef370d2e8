"""What is added to a runtime's settings, and taken out: pure functions on settings.

An entry is a value by its path, such as a status line or an MCP server, or a group of a hook's
list. It is ours by the command in it, wherever contextgauge is installed: an entry of another
installation, or with other options, is replaced.
"""

import copy
import shlex
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from contextgauge.errors import ConfigError
from streams.edge.files.settings_document import Settings


class SettingsEntry(NamedTuple):
    """A value at a path of names; `words` are those of its command, behind the program.

    `is_listed`: it is a group in a list of hooks, next to those of others.
    """

    path: tuple[str, ...]
    value: Mapping[str, Any]
    words: tuple[str, ...]
    is_listed: bool = False


def add(settings: Settings, entry: SettingsEntry) -> None:
    """Add an entry. Raises ConfigError where something else is at its path."""
    holder = _holder(settings, entry.path)
    name = entry.path[-1]
    value = copy.deepcopy(dict(entry.value))
    if not entry.is_listed:
        if holder.get(name) != value:
            holder[name] = value
        return
    groups = holder.setdefault(name, [])
    if not isinstance(groups, list):
        raise ConfigError(f"{'.'.join(entry.path)} is not a list: nothing was changed")
    if _hooks_of([value]) == [hook for hook in _hooks_of(groups) if _is_ours(hook, entry.words)]:
        return
    groups[:] = [*_without(groups, entry.words), value]


def remove(settings: Settings, entry: SettingsEntry, former: Mapping[str, Any]) -> None:
    """Take an entry out, whatever its options; one that it replaced comes back from `former`."""
    name = entry.path[-1]
    holder: Any = _at(settings, entry.path[:-1])
    if not isinstance(holder, MutableMapping) or name not in holder:
        return
    before: Any = _at(former, entry.path[:-1])
    replaced = before.get(name) if isinstance(before, Mapping) else None
    if entry.is_listed:
        if not isinstance(holder[name], list) or not has(settings, entry):
            return
        holder[name][:] = _without(holder[name], entry.words)
        if not holder[name] and replaced is None:
            del holder[name]
    elif not has(settings, entry):
        return
    elif replaced is not None and not _is_ours(replaced, entry.words):
        holder[name] = copy.deepcopy(replaced)
    else:
        del holder[name]
    _drop_empty(settings, entry.path[:-1], former)


def has(settings: Mapping[str, Any], entry: SettingsEntry) -> bool:
    """Return whether an entry of ours is there, whatever its options."""
    value = _at(settings, entry.path)
    if entry.is_listed:
        hooks = _hooks_of(value) if isinstance(value, list) else []
        return any(_is_ours(hook, entry.words) for hook in hooks)
    return _is_ours(value, entry.words)


def foreign(settings: Mapping[str, Any], entry: SettingsEntry) -> Any:  # noqa: ANN401 -- any setting
    """Return the value of another program that an entry replaces; None where there is none."""
    value = None if entry.is_listed else _at(settings, entry.path)
    return None if _is_ours(value, entry.words) else value


def _is_ours(value: object, words: Sequence[str]) -> bool:
    """Return whether a value's command runs these words of contextgauge."""
    if not isinstance(value, Mapping) or not isinstance(value.get("command"), str):
        return False
    try:
        given = shlex.split(value["command"])
    except ValueError:
        return False
    arguments = value.get("args")
    given += map(str, arguments) if isinstance(arguments, list) else ()
    is_command = bool(given) and PurePath(given[0]).name == "contextgauge"
    if not is_command and given[1:3] != ["-m", "streams"]:
        return False
    rest = given[1:] if is_command else given[3:]
    return rest[: len(words)] == list(words)


def _hooks_of(groups: Iterable[object]) -> list[Any]:
    """Return the hooks in groups of Claude Code's form."""
    return [
        hook
        for group in groups
        if isinstance(group, Mapping) and isinstance(group.get("hooks"), list)
        for hook in group["hooks"]
    ]


def _without(groups: Iterable[Any], words: Sequence[str]) -> list[Any]:
    """Return groups without our hook; a group that has no other goes with it."""
    rest = []
    for group in groups:
        hooks = _hooks_of([group])
        others = [hook for hook in hooks if not _is_ours(hook, words)]
        if len(others) == len(hooks):
            rest.append(group)
        elif others:
            rest.append({**group, "hooks": others})
    return rest


def _at(settings: object, path: Sequence[str]) -> Any:  # noqa: ANN401 -- any setting
    for name in path:
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def _holder(settings: Settings, path: Sequence[str]) -> Settings:
    """Return the table that has the last name, made where it is not there. Raises ConfigError."""
    holder = settings
    for at, name in enumerate(path[:-1], 1):
        inner = holder.setdefault(name, {})
        if not isinstance(inner, MutableMapping):
            where = ".".join(path[:at])
            raise ConfigError(f"{where} is not a table of settings: nothing was changed")
        holder = holder[name]
    return holder


def _drop_empty(settings: Settings, path: Sequence[str], former: Mapping[str, Any]) -> None:
    """Delete the tables of a path that are empty and were not there before."""
    for end in range(len(path), 0, -1):
        if _at(settings, path[:end]) or _at(former, path[:end]) is not None:
            return
        del _at(settings, path[: end - 1])[path[end - 1]]
