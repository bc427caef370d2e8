"""What an agent needs again after a compaction: its plan, instructions and the files it works on.

The caller knows them, the engine does not: its callback gives them, and `restore_texts` makes the
texts that follow the summary. All is bounded, and what was left out is listed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from contextgauge.compaction.counting import ESTIMATE, Counter
from contextgauge.compaction.fencing import fence_for

MAX_FILES: Final = 5
FILE_TOKENS: Final = 5_000
TOTAL_TOKENS: Final = 35_000
"""Five files, and room for a plan and instructions."""

_MINIMUM_TOKENS: Final = 50
"""Less of a text than that helps no one."""

_LISTED_NAMES: Final = 20
_NAME_CHARACTERS: Final = 60
_PATH_CHARACTERS: Final = 500
"""Longer names are shortened: a list of files must not become a restored file of its own."""


class RestoreFile(NamedTuple):
    """A file that the agent works on, with its current content."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What the caller gives back: the most important file first."""

    plan: str = ""
    instructions: str = ""
    files: tuple[RestoreFile, ...] = ()


def restore_texts(
    restore: Restore,
    *,
    counter: Counter = ESTIMATE,
    max_files: int = MAX_FILES,
    file_tokens: int = FILE_TOKENS,
    total_tokens: int = TOTAL_TOKENS,
) -> list[str]:
    """Return the texts to append, within `total_tokens`: plan, instructions, files, omissions.

    A path that is given twice is restored once, the first time. Files are fenced as data.
    """
    texts: list[str] = []
    omitted: list[str] = []
    left = total_tokens - counter.text(_omissions(["x" * _NAME_CHARACTERS] * (_LISTED_NAMES + 1)))
    for title, text in (("Plan", restore.plan), ("Instructions", restore.instructions)):
        if not text.strip():
            continue
        heading = f"### {title}\n"
        part = fitted(text.strip(), left - counter.text(heading), counter)
        if part is None:
            omitted.append(title.lower())
            continue
        texts.append(heading + part)
        left -= counter.text(texts[-1])
    for number, file in enumerate(_once(restore.files)):
        path = " ".join(file.path.split())[:_PATH_CHARACTERS]
        fence = fence_for((path, file.text))
        head, end = f"### File {path}\n<{fence}>\n", f"\n</{fence}>"
        room = min(left, file_tokens) - counter.text(head + end)
        part = None if number >= max_files else fitted(file.text, room, counter)
        if part is None:
            omitted.append(path[:_NAME_CHARACTERS])
            continue
        texts.append(head + part + end)
        left -= counter.text(texts[-1])
    return [*texts, _omissions(omitted)] if omitted else texts


class Restored(NamedTuple):
    """Texts that follow the summary, their tokens, and the first lines of those without room."""

    texts: tuple[str, ...]
    tokens: int
    omitted: tuple[str, ...] = ()


def within(texts: Sequence[str], room_tokens: int, counter: Counter) -> Restored:
    """Return the first texts that there is room for, and the names of the others."""
    tokens = 0
    for index, text in enumerate(texts):
        more = counter.text(text)
        if tokens + more > room_tokens:
            return Restored(tuple(texts[:index]), tokens, tuple(map(_name_of, texts[index:])))
        tokens += more
    return Restored(tuple(texts), tokens)


def _name_of(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return " ".join(first.lstrip("# ").split())[:_NAME_CHARACTERS]


def fitted(text: str, limit_tokens: int, counter: Counter) -> str | None:
    """Return the beginning of a text within a limit, with a note of what was cut; None: no room."""
    tokens = counter.text(text)
    if tokens <= limit_tokens:
        return text
    if limit_tokens < _MINIMUM_TOKENS:
        return None
    size = len(text) * limit_tokens // tokens
    while size > 0:
        part = (
            f"{text[:size]}\n[cut here: {len(text) - size:,} of {len(text):,} characters left out]"
        )
        tokens = counter.text(part)
        if tokens <= limit_tokens:
            return part
        size = min(size - 1, size * limit_tokens // tokens)
    return None


def _once(files: Iterable[RestoreFile]) -> list[RestoreFile]:
    by_path: dict[str, RestoreFile] = {}
    for file in files:
        by_path.setdefault(file.path.replace("\\", "/").removeprefix("./"), file)
    return list(by_path.values())


def _omissions(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_LISTED_NAMES])
    more = len(names) - _LISTED_NAMES
    return (
        f"Not restored, for lack of room: {listed}{f' and {more} more' if more > 0 else ''}. "
        "Read them again where you need them."
    )
