"""What lines do to an active conversation, so that it can be made again without some of them.

Each step says what it does to any active conversation: where turns are taken back, the steps of
the other lines give what the model sees then.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from contextgauge.compaction.history import Edit
from contextgauge.compaction.messages import Message

Original: TypeAlias = Callable[[str], Message | None]


@dataclass(frozen=True, slots=True)
class MessagesAdded:
    """Messages came, at the end or, as a summary, at the beginning."""

    ids: tuple[str, ...]
    first: bool = False

    def on(self, active: Sequence[Message], original: Original) -> list[Message]:
        """Return the active conversation after it."""
        added = [each for id_ in self.ids if (each := original(id_)) is not None]
        return [*added, *active] if self.first else [*active, *added]


@dataclass(frozen=True, slots=True)
class ActiveCleared:
    """All was archived but for some messages."""

    kept: tuple[str, ...] = ()

    def on(self, active: Sequence[Message], _: Original) -> list[Message]:
        """Return the active conversation after it."""
        return [each for each in active if each.id in self.kept] if self.kept else []


@dataclass(frozen=True, slots=True)
class ServiceEdit:
    """The service compacted. Without effect where what it covered is not there as it was."""

    edit: Edit
    covered: tuple[str, ...]

    def on(self, active: Sequence[Message], _: Original) -> list[Message]:
        """Return the active conversation after it."""
        end = self.edit.start + self.edit.covers
        ids = tuple(each.id for each in active[self.edit.start : end])
        return self.edit.on(active) if ids == self.covered else list(active)


Step: TypeAlias = MessagesAdded | ActiveCleared | ServiceEdit
"""What a line did."""
