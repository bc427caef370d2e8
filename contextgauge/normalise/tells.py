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

    def sources(self) -> dict[str, Source]:
        """Return where each figure comes from."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, Source)}
