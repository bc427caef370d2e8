"""How much of an item stands in what the model sees after a boundary.

Words are compared as the rule guard compares turns (`streams/core/control/turn_overlap.py`): whole,
and clause by clause for what is missing. Of a file the path counts, from the working folder or from
the root.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.compaction.carried.failure_lines import reasons_in
from contextgauge.compaction.carried.file_ledger import uses_of
from contextgauge.compaction.carried.text_actions import calls_of
from contextgauge.compaction.messages import Message
from streams.core.control.pins import MessageText, texts_of
from streams.core.control.turn_overlap import (
    THRESHOLD,
    GuardWork,
    Passage,
    SeenText,
    Turn,
    can_be_judged,
    plain,
)

Verdict: TypeAlias = Literal["PRESERVED", "DEGRADED", "LOST", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = ("PRESERVED", "DEGRADED", "LOST", "unknown")

FAINT: Final = 0.2
"""A clause of which no passage has so much is not there: of clauses that were kept in other words
the labels have 0.59 and more, of those that were left out at most 0.17."""

_LINES: Final = 20
"""Of a failure: more are a trace."""

_CLAUSE: Final = re.compile(
    r"(?<=[.!?;,:])\s+|[\u3001\u3002\uff0c\uff1b\uff01\uff1f\uff1a\u060c\u061b\n]+"
)
_NAME: Final = re.compile(r"\b(?=[\w.]*(?:[a-z][A-Z]|_|[A-Za-z]\d))[A-Za-z_][\w.]{3,}\w", re.ASCII)
"""A name by its shape, as of a function or an error: inner capitals, `_`, digits after letters."""

_BRACES: Final = re.compile(r"([^\s{}]{0,200})\{([^{}\s]{1,200},[^{}\s]{1,200})\}([^\s{},]{0,100})")
_GOES_ON: Final = re.compile(r"[0-9A-Za-z_/-]|\.\w")
_IN_NAME: Final = re.compile(r"[0-9A-Za-z_./-]")


class Trace(NamedTuple):
    """How much of an item is left, the messages that have it, and what of a DEGRADED one is not.

    That is the clauses of words, the first line of a failure, the folders of a path.
    """

    verdict: Verdict
    message_ids: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Remains:
    """What the model sees after a boundary."""

    def __init__(
        self,
        messages: Sequence[Message],
        turns: Sequence[Turn],
        folder: str | None,
        work: GuardWork,
    ) -> None:
        """Take the messages, the user's turns, the working folder, and what may be done."""
        self._folder = folder
        self._own, quoted = texts_of(messages)
        self._texts = [*self._own, *quoted]
        self._expanded = [
            MessageText(id_, _with_braces(text.replace("\\", "/"))) for id_, text in self._texts
        ]
        self._paths = {
            path: message.id
            for message in messages
            for call in calls_of(message)
            for path, _ in uses_of(call)
        }
        self._seen = SeenText(
            [text for _, text in self._own], [text for _, text in quoted], turns, work
        )

    def of_words(self, sought: Turn) -> Trace:
        """Return what is left of a turn or reply; unknown where no work is left to look for it."""
        is_there = self._seen.has(sought)
        if is_there is None:
            return Trace("unknown")
        if is_there:
            return Trace("PRESERVED", self._verbatim(sought))
        whole = self._seen.passage(sought)
        parts = [(each, self._seen.passage(Turn(each))) for each in clauses_of(sought.text)]
        if whole is not None and whole.share >= THRESHOLD:
            missing = tuple(each for each, own in parts if own is not None and own.share < FAINT)
            return Trace("DEGRADED" if missing else "PRESERVED", self._where(whole), missing)
        there = [own for _, own in parts if own is not None and own.share >= THRESHOLD]
        if there:
            missing = tuple(each for each, own in parts if own not in there)
            return Trace("DEGRADED", self._where(there[0]), missing)
        return Trace("unknown" if whole is None else "LOST")

    def of_failure(self, text: str) -> Trace:
        """Return what is left of a failure: its first line says why, others and names a part."""
        lines = reasons_in(text)[:_LINES]
        traces = [self.of_words(Turn(each)) for each in lines if can_be_judged(each)]
        if not traces:
            return Trace("unknown")
        if traces[0].verdict == "PRESERVED":
            return traces[0]
        found_ids = next((each.message_ids for each in traces if each.message_ids), ())
        found_ids = found_ids or self._with_name(_NAME.findall("\n".join(lines)))
        return Trace("DEGRADED", found_ids, (lines[0],)) if found_ids else traces[0]

    def of_file(self, path: str) -> Trace:
        """Return what is left of a file's path; only its end is a part."""
        if path in self._paths:
            return Trace("PRESERVED", (self._paths[path],))
        own = _relative(path, self._folder)
        partly = Trace("LOST")
        for message_id, text in self._expanded:
            longest = max(_parts_of_path(own, text), default=0)
            if longest > own.count("/"):
                return Trace("PRESERVED", (message_id,))
            if longest and not partly.message_ids:
                folders = own.rsplit("/", longest)[0]
                partly = Trace("DEGRADED", (message_id,), (f"{folders}/",))
        return partly

    def _where(self, passage: Passage) -> tuple[str, ...]:
        return (self._own[passage.text].message_id,)

    def _verbatim(self, sought: Turn) -> tuple[str, ...]:
        return next(((id_,) for id_, text in self._plain if sought.plain in text), ())

    @cached_property
    def _plain(self) -> list[MessageText]:
        return [MessageText(id_, plain(text)) for id_, text in self._texts]

    def _with_name(self, names: Sequence[str]) -> tuple[str, ...]:
        sought = set(names)
        named = (id_ for id_, text in self._own if not sought.isdisjoint(_NAME.findall(text)))
        return next(((id_,) for id_ in named), ())


def clauses_of(text: str) -> list[str]:
    """Return the clauses that can be judged, of a text that has several."""
    clauses = [each for each in _CLAUSE.split(text) if can_be_judged(each)]
    return clauses if len(clauses) > 1 else []


def _relative(path: str, folder: str | None) -> str:
    """Return a path from the working folder, where it is in it."""
    path = path.replace("\\", "/").removeprefix("./")
    root = (folder or "").replace("\\", "/").rstrip("/") + "/"
    return path.removeprefix(root) if len(root) > 1 else path


def _with_braces(text: str) -> str:
    """Return a text with what braces stand for after it, as a shell expands them."""
    expanded = [
        f"{match[1]}{each.strip()}{match[3]}"
        for match in _BRACES.finditer(text)
        for each in match[2].split(",")
    ]
    return "\n".join([text, *expanded])


def _parts_of_path(path: str, text: str) -> Iterator[int]:
    """Yield how many names of a path's end stand at each place of a text that has the last."""
    *folders, name = path.split("/")
    offset = -1
    while (offset := text.find(name, offset + 1)) >= 0:
        if _GOES_ON.match(text, offset + len(name)):
            continue
        size, start = 1, offset
        while size <= len(folders) and text.endswith(f"{folders[-size]}/", 0, start):
            start -= len(folders[-size]) + 1
            size += 1
        before = text[max(0, start - 1) : start]
        is_whole = size > len(folders)
        if (before == "/" and is_whole) or not _IN_NAME.match(before):
            yield size
