"""The order in which transcripts are read: a session before its subagents, the last copy last."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from streams.edge.files.housekeeping import SUFFIX
from streams.edge.files.names import name_of

_LAST = "\U0010ffff"
"""Sorts behind all names."""

Item = TypeVar("Item")


def oldest_first(
    items: Sequence[Item], path_of: Callable[[Item], str], modified_ns: Callable[[Item], int]
) -> list[Item]:
    """Return transcripts in reading order, of copies of a session those last that changed last.

    A session may lie in several folders, as where a transcript was copied to a worktree's project
    and went on in one of both: the copy that was written last shows what is true at present.
    """
    units = [name_of(path_of(each))[:2] for each in items]
    folders: dict[str, dict[str, list[Item]]] = {}
    for (folder, name), each in zip(units, items, strict=True):
        folders.setdefault(name, {}).setdefault(folder, []).append(each)
    if len(folders) == len(set(units)):
        return list(items)
    waiting = {
        name: iter(sorted(copies.values(), key=lambda copy: max(map(modified_ns, copy))))
        for name, copies in folders.items()
    }
    return [each for _, name in dict.fromkeys(units) for each in next(waiting[name])]


def order_of(path: str) -> tuple[list[str], int, list[str]]:
    """Return by what transcripts below a folder are put in reading order.

    A session comes before its subagents, but after its compactions' own calls, which its
    boundaries tell of. Loose subagents' files come last in their folder.
    """
    name = name_of(path)
    parts = list(Path(path.removesuffix(SUFFIX)).parts)
    if name.has_folder:
        unit = [*Path(name.folder).parts, name.unit]
        place = 0 if name.is_own_call else 1 if name.is_main else 2
        return unit, place, parts[len(unit) :]
    *folders, last = parts
    if name.is_own_call:
        return folders, 0, [last]
    return [*folders, _LAST + last if name.is_loose else last], 1, []
