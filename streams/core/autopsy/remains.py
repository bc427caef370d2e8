"""How much of an item stands in what the model sees after a boundary.

Words are compared as the rule guard compares turns (`streams/core/control/turn_overlap.py`): whole,
and clause by clause for what is missing. Of a file the path counts, from the working folder or from
the root.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.compaction.carried.failure_lines import reasons_in
from contextgauge.compaction.carried.file_ledger import uses_of
from contextgauge.compaction.carried.text_actions import calls_of
from contextgauge.compaction.messages import Message
from streams.core.control.pins import seen_text, texts_of
from streams.core.control.turn_overlap import THRESHOLD, Passage, can_be_judged, plain

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
    """How much of an item is left, and the messages that have it."""

    verdict: Verdict
    message_ids: tuple[str, ...] = ()


class Remains:
    """What the model sees after a boundary."""

    def __init__(
        self, messages: Sequence[Message], turns: Sequence[str], folder: str | None
    ) -> None:
        """Take the messages, all turns of the user, and the working folder."""
        self._folder = folder
        self._own, self._quoted = texts_of(messages)
        texts = (*self._own, *self._quoted)
        self._expanded = [(id_, _with_braces(text.replace("\\", "/"))) for id_, text in texts]
        self._paths = {
            path: message.id
            for message in messages
            for call in calls_of(message)
            for path, _ in uses_of(call)
        }
        self._seen = seen_text(messages, turns)

    def of_words(self, text: str) -> Trace:
        """Return what is left of a turn or reply."""
        if self._seen.has(text):
            return Trace("PRESERVED", self._verbatim(text))
        whole = self._seen.passage(text)
        parts = [self._seen.passage(each) for each in _clauses(text)]
        if whole is not None and whole.share >= THRESHOLD:
            is_part = any(each is not None and each.share < FAINT for each in parts)
            return Trace("DEGRADED" if is_part else "PRESERVED", self._where(whole))
        for each in parts:
            if each is not None and each.share >= THRESHOLD:
                return Trace("DEGRADED", self._where(each))
        return Trace("unknown" if whole is None else "LOST")

    def of_failure(self, text: str) -> Trace:
        """Return what is left of a failure: its first line says why, others and names a part."""
        lines = reasons_in(text)[:_LINES]
        traces = [self.of_words(each) for each in lines if can_be_judged(each)]
        if not traces:
            return Trace("unknown")
        if traces[0].verdict == "PRESERVED":
            return traces[0]
        found_ids = next((each.message_ids for each in traces if each.message_ids), ())
        found_ids = found_ids or self._with_name(_NAME.findall("\n".join(lines)))
        return Trace("DEGRADED", found_ids) if found_ids else traces[0]

    def of_file(self, path: str) -> Trace:
        """Return what is left of a file's path; only its end is a part."""
        if path in self._paths:
            return Trace("PRESERVED", (self._paths[path],))
        own = _relative(path, self._folder)
        partly: tuple[str, ...] = ()
        for message_id, text in self._expanded:
            longest = max(_parts_of_path(own, text), default=0)
            if longest > own.count("/"):
                return Trace("PRESERVED", (message_id,))
            if longest and not partly:
                partly = (message_id,)
        return Trace("DEGRADED", partly) if partly else Trace("LOST")

    def _where(self, passage: Passage) -> tuple[str, ...]:
        return (self._own[passage.text].message_id,)

    def _verbatim(self, text: str) -> tuple[str, ...]:
        sought = plain(text)
        texts = (*self._own, *self._quoted)
        return next(((id_,) for id_, each in texts if sought in plain(each)), ())

    def _with_name(self, names: Sequence[str]) -> tuple[str, ...]:
        sought = set(names)
        named = (id_ for id_, text in self._own if not sought.isdisjoint(_NAME.findall(text)))
        return next(((id_,) for id_ in named), ())


def _clauses(text: str) -> list[str]:
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
    at = -1
    while (at := text.find(name, at + 1)) >= 0:
        if _GOES_ON.match(text, at + len(name)):
            continue
        size, start = 1, at
        while size <= len(folders) and text.endswith(f"{folders[-size]}/", 0, start):
            start -= len(folders[-size]) + 1
            size += 1
        before = text[max(0, start - 1) : start]
        is_whole = size > len(folders)
        if (before == "/" and is_whole) or not _IN_NAME.match(before):
            yield size
