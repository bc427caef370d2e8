"""The port of bytes that are held for later, outside of memory where that is the adapter's way."""

from collections.abc import Collection, Sequence
from typing import Protocol


class ValueStore(Protocol):
    """Holds values by numbers that are never used twice. It ends with its last reference.

    It is used by one thread, and answers at once: what it writes is this machine's, and needed no
    longer than the process. Raises StopError where the machine has no room for it.
    """

    def put(self, values: Sequence[tuple[int, bytes]]) -> None:
        """Take values by new numbers."""
        ...

    def get(self, numbers: Collection[int]) -> list[bytes]:
        """Return values, in this order. Raises KeyError for a number without one."""
        ...

    def delete(self, numbers: Collection[int]) -> None:
        """Forget values that are there."""
        ...
