"""What earlier runs left of how far files were sent, by file and by path."""

from collections.abc import Iterable

from streams.edge.files.positions import Position


class Remembered:
    """Positions of files that are not read just now, or were not acknowledged further yet."""

    def __init__(self, positions: Iterable[Position]) -> None:
        self._by_identity = {position.identity: position for position in positions}
        self._by_path: dict[str, Position] = {}
        # Files that had a path before the one that was there last, as rotation leaves them.
        self._formers: dict[str, list[Position]] = {}
        for position in self._by_identity.values():
            if position.path in self._by_path:
                self._formers.setdefault(position.path, []).append(self._by_path[position.path])
            self._by_path[position.path] = position

    def all(self) -> dict[tuple[int, int], Position]:
        """Return a copy of all, by file."""
        return dict(self._by_identity)

    def may_be(self, identity: tuple[int, int], path: str) -> list[Position]:
        """Return what may be this file's: that of the file, and that of what had its path last."""
        found = (self._by_identity.get(identity), self._by_path.get(path))
        return [position for position in found if position is not None]

    def take_formers(self, path: str) -> list[Position]:
        """Return, once, the files that had a path before; the last one last, and each time."""
        last = self._by_path.get(path)
        return [*self._formers.pop(path, ()), *([] if last is None else [last])]

    def remember(self, at: Position) -> None:
        """Keep a position."""
        self._by_identity[at.identity] = self._by_path[at.path] = at

    def drop(self, identity: tuple[int, int]) -> None:
        """Drop a file's position."""
        self._by_identity.pop(identity, None)

    def forget(self, identity: tuple[int, int], path: str) -> None:
        """Drop a file's position, and those of all that had its path."""
        for former in self.take_formers(path):
            self.drop(former.identity)
        self._by_path.pop(path, None)
        self.drop(identity)
