"""What a runtime's files tell of its sessions, and where each figure comes from."""

from enum import StrEnum
from typing import NamedTuple


class Source(StrEnum):
    """Where a figure of a runtime comes from."""

    MEASURED = "measured"
    """The runtime writes it."""
    DERIVED = "derived"
    """A rule gives it from what the runtime writes."""
    UNKNOWN = "unknown"


class Compared(NamedTuple):
    """Public sessions of a runtime whose figures were read by hand, too.

    `responses` are those with a usage, `compactions` what the runtime wrote of them; `mended` is
    how many of both were read otherwise before. `sources` are repositories, each with a path; a
    person's home folder that was published as a whole is not named.
    """

    sessions: int
    responses: int
    compactions: int = 0
    mended: int = 0
    sources: tuple[str, ...] = ()


class Tells(NamedTuple):
    """What is known of the sessions of a runtime, by its files: a row of `docs/RUNTIMES.md`.

    `version` is the newest one whose files or source were compared with what is read. `window` is
    derived where only the model's name gives it; `start` to `own_cost` are of a compaction,
    `composition` is what fills the window. `note` says what is known only at times, in a sentence.
    """

    version: str
    window: Source = Source.UNKNOWN
    size: Source = Source.UNKNOWN
    start: Source = Source.UNKNOWN
    end: Source = Source.UNKNOWN
    trigger: Source = Source.UNKNOWN
    duration: Source = Source.UNKNOWN
    summary: Source = Source.UNKNOWN
    own_cost: Source = Source.UNKNOWN
    composition: Source = Source.UNKNOWN
    subagents: Source = Source.UNKNOWN
    threshold: Source = Source.UNKNOWN
    note: str = ""
    compared: Compared | None = None

    def sources(self) -> dict[str, Source]:
        """Return where each figure comes from."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, Source)}
