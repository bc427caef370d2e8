"""What an adapter declares of forks: how lines are written that its runtime resumes a session from.

A fork is a new session that begins with another one's history. Nothing here reads or writes files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from contextgauge.normalise.signals import Body
from contextgauge.records import Json

if TYPE_CHECKING:  # what only reads messages does without the engine
    from contextgauge.compaction.format_names import FormatName

ORIGINATOR: Final = "contextgauge"
"""What a fork names as what made it, where its runtime asks for that."""


class PastCompaction(NamedTuple):
    """A compaction of the history that a fork begins with; None for what is not known of it."""

    trigger: str | None
    tokens_before: int | None
    time_ms: int | None


class NewFork(NamedTuple):
    """A session that is to be written: its id, the one that it is from, and when it is made.

    `made_ms` is in milliseconds since 1970. `folder` is where the agent works; `model` the last one
    that answered, None where that is not known; `title` is for people. `past` are the compactions
    before its messages: a fork of which only messages are written inherits them, too.
    """

    id: str
    origin: str
    made_ms: int
    folder: str
    model: str | None
    title: str
    past: Sequence[PastCompaction] = ()

    @property
    def time(self) -> str:
        """When it is made, as runtimes write it."""
        return iso(self.made_ms)


class ForkForm(NamedTuple):
    """How a runtime's sessions are written as forks.

    `name` is that of the form, `command` resumes one, with `{}` for its id. `new_id` makes an id of
    a time and of a random version 4 UUID. `copy` gives the lines of a fork that begins with a
    session's lines, where `is_line` is true of some, and takes the prompts that have no line among
    them, by the id of the line right before which the model saw them; `write` those of one that
    begins with messages of `format`, each with the id that it has in the session. `path` is that of
    its file, below `Folders.transcripts`; with `is_with_origin`, it lies in its origin's folder
    where that is one of the runtime's. `begin` gives the place of the line with which that
    compaction began whose boundary is at a place; `begins_turn` is whether a line begins a turn.
    """

    name: str
    command: str
    format: "FormatName"
    new_id: Callable[[int, str], str]
    is_line: Callable[[Body], bool]
    copy: Callable[
        [Iterable[Body], NewFork, Mapping[str, Sequence[str]]], Iterator[dict[str, Json]]
    ]
    write: Callable[[Sequence[tuple[str, Json]], NewFork], Iterator[dict[str, Json]]]
    path: Callable[[NewFork], str]
    is_with_origin: bool
    begin: Callable[[Sequence[Body], int], int]
    begins_turn: Callable[[Body], bool]


def iso(time_ms: int) -> str:
    """Return a time, milliseconds since 1970, as runtimes write it."""
    moment = datetime.fromtimestamp(time_ms / 1_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1_000:03d}Z"
