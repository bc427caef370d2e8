"""What is added to a runtime's settings, and taken out: pure functions on settings.

An entry is a value by its path, such as a status line or an MCP server, or a group of a hook's
list. It is ours by the command in it, wherever contextgauge is installed: an entry of another
installation, or with other options, is replaced. One that a person wrote comes back with undo.
"""

import copy
import shlex
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias

from contextgauge.errors import ConfigError
from streams.edge.files.settings_document import Settings

_IsWanted: TypeAlias = Callable[[Mapping[str, Any], object], bool]
"""Of a hook, with the group that it is in."""


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
    groups[:] = [*_without(groups, lambda _, hook: _is_ours(hook, entry.words)), value]


def remove(settings: Settings, entry: SettingsEntry, former: Mapping[str, Any] | None) -> None:
    """Take an installed entry out; what it replaced comes back from `former`."""
    name = entry.path[-1]
    holder = _at(settings, entry.path[:-1])
    earlier = _at(former, entry.path)
    if entry.is_listed:
        holder[name][:] = _restored(holder[name], entry, earlier)
        if not holder[name] and earlier is None:
            del holder[name]
    elif earlier is not None:
        holder[name] = copy.deepcopy(earlier)
    else:
        del holder[name]
    _drop_empty(settings, entry.path[:-1], former)


def is_installed(
    settings: Mapping[str, Any], entry: SettingsEntry, former: Mapping[str, Any] | None
) -> bool:
    """Return whether an entry of ours is there that `former`, the settings before, did not have.

    Without `former` (None), and in lists, it must be one that could only be written by hand as
    install writes it: what has other options or names is a person's.
    """
    value, earlier = _at(settings, entry.path), _at(former, entry.path)
    if entry.is_listed:
        return any(_is_written(group, hook, entry, earlier) for group, hook in _pairs(value))
    if former is None:
        return _is_exact(value, entry.value, entry.words)
    return _is_ours(value, entry.words) and value != earlier


def foreign(settings: Mapping[str, Any], entry: SettingsEntry) -> Any:  # noqa: ANN401 -- any setting
    """Return what an entry replaces and install did not write; None where there is none.

    Of a list, these are the groups with such hooks alone.
    """
    value = _at(settings, entry.path)
    if not entry.is_listed:
        return None if _is_exact(value, entry.value, entry.words) else value
    return _with_hooks(
        value,
        lambda group, hook: (
            _is_ours(hook, entry.words) and not _is_written(group, hook, entry, None)
        ),
    )


def remember(former: Settings, entry: SettingsEntry, value: Any) -> None:  # noqa: ANN401 -- any setting
    """Write a foreign value into the settings that were before, so that it comes back."""
    holder = _holder(former, entry.path)
    name = entry.path[-1]
    if not entry.is_listed:
        if holder.get(name) != value:
            holder[name] = copy.deepcopy(value)
        return
    groups = holder.get(name)
    hooks = _hooks_of(groups)
    if more := _with_hooks(value, lambda _, hook: hook not in hooks):
        holder[name] = [*(groups if isinstance(groups, list) else ()), *copy.deepcopy(more)]


def _restored(groups: Sequence[Any], entry: SettingsEntry, earlier: object) -> list[Any]:
    """Return groups without what install wrote, and with the hooks that it replaced."""
    rest = _without(groups, lambda group, hook: _is_written(group, hook, entry, earlier))
    hooks = _hooks_of(rest)

    def is_lost(_: object, hook: object) -> bool:
        return _is_ours(hook, entry.words) and hook not in hooks

    lost = _with_hooks(earlier, is_lost)
    if not lost or not isinstance(earlier, list):
        return rest
    if _without(earlier, is_lost) == rest:
        return copy.deepcopy(earlier)
    return [*rest, *copy.deepcopy(lost)]


def _is_written(group: Mapping[str, Any], hook: object, entry: SettingsEntry, earlier: Any) -> bool:  # noqa: ANN401 -- any setting
    """Return whether install wrote a hook: exactly its form, and it was not there before."""
    own = entry.value["hooks"][0]
    is_exact = group.keys() == entry.value.keys() and _is_exact(hook, own, entry.words)
    return is_exact and hook not in _hooks_of(earlier)


def _is_exact(value: object, own: Mapping[str, Any], words: Sequence[str]) -> bool:
    """Return whether a value is what install writes, of any installation and with any number."""
    if not isinstance(value, Mapping) or not _is_ours(value, words):
        return False
    arguments, own_arguments = _arguments(value) or [], _arguments(own) or []
    return (
        {**value, "command": "", "args": 0} == {**own, "command": "", "args": 0}
        and len(arguments) == len(own_arguments)
        and all(
            given == mine or (_is_number(given) and _is_number(mine))
            for given, mine in zip(arguments, own_arguments, strict=True)
        )
    )


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdecimal()


def _is_ours(value: object, words: Sequence[str]) -> bool:
    """Return whether a value's command runs these words of contextgauge."""
    arguments = _arguments(value)
    return arguments is not None and arguments[: len(words)] == list(words)


def _arguments(value: object) -> list[str] | None:
    """Return the words behind contextgauge in a value's command; None where another one runs."""
    if not isinstance(value, Mapping) or not isinstance(value.get("command"), str):
        return None
    try:
        given = shlex.split(value["command"])
    except ValueError:
        return None
    arguments = value.get("args")
    given += map(str, arguments) if isinstance(arguments, list) else ()
    if given and PurePath(given[0]).name == "contextgauge":
        return given[1:]
    return given[3:] if given[1:3] == ["-m", "streams"] else None


def _pairs(groups: object) -> list[tuple[Mapping[str, Any], Any]]:
    """Return the hooks in groups of Claude Code's form, each with its group."""
    return [
        (group, hook)
        for group in (groups if isinstance(groups, list) else ())
        if isinstance(group, Mapping) and isinstance(group.get("hooks"), list)
        for hook in group["hooks"]
    ]


def _hooks_of(groups: object) -> list[Any]:
    return [hook for _, hook in _pairs(groups)]


def _with_hooks(groups: object, is_wanted: _IsWanted) -> list[Any] | None:
    """Return groups with the hooks that are wanted alone; None where there are none."""
    chosen = []
    for group in groups if isinstance(groups, list) else ():
        hooks = [hook for _, hook in _pairs([group]) if is_wanted(group, hook)]
        if hooks:
            chosen.append({**group, "hooks": hooks})
    return chosen or None


def _without(groups: Iterable[Any], is_unwanted: _IsWanted) -> list[Any]:
    """Return groups without some hooks; a group that has no other goes with them."""
    rest = []
    for group in groups:
        pairs = _pairs([group])
        others = [hook for _, hook in pairs if not is_unwanted(group, hook)]
        if len(others) == len(pairs):
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
    for depth, name in enumerate(path[:-1], 1):
        inner = holder.setdefault(name, {})
        if not isinstance(inner, MutableMapping):
            where = ".".join(path[:depth])
            raise ConfigError(f"{where} is not a table of settings: nothing was changed")
        holder = holder[name]
    return holder


def _drop_empty(settings: Settings, path: Sequence[str], former: object) -> None:
    """Delete the tables of a path that are empty and were not there before."""
    for end in range(len(path), 0, -1):
        if _at(settings, path[:end]) or _at(former, path[:end]) is not None:
            return
        del _at(settings, path[: end - 1])[path[end - 1]]
