"""Values held in memory: for what is small, or ends soon."""

from collections.abc import Collection, Sequence


class MemoryValues:
    """Implements `ValueStore`."""

    def __init__(self) -> None:
        # Of nothing but numbers and bytes: the garbage collector does not visit it.
        self._values: dict[int, bytes] = {}

    def put(self, values: Sequence[tuple[int, bytes]]) -> None:
        """Take values by new numbers."""
        self._values.update(values)

    def get(self, numbers: Collection[int]) -> list[bytes]:
        """Return values, in this order. Raises KeyError for a number without one."""
        return [self._values[number] for number in numbers]

    def delete(self, numbers: Collection[int]) -> None:
        """Forget values that are there."""
        for number in numbers:
            del self._values[number]
