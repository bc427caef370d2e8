"""What another process derives: whole files, as into a local file that has nothing yet.

Its offsets begin at 0. `LocalDerivation.take_derived` moves them behind those that there are, and
adds its counts to those of all sessions.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence

from schemas.views import STREAM_ENTRIES, Aggregates, EntryStream
from streams.codec.aggregates import added
from streams.core.derivation.outside_windows import OutsideWindows
from streams.core.derivation.rules_config import Rules
from streams.flow.view.derivation import LocalDerivation
from streams.ports import DerivedFiles, Entry, HookedBy, LocalChanges, TranscriptPiece


def derive_files(
    rules: Rules,
    limit_bytes: int,
    pieces: Iterable[TranscriptPiece],
    windows: OutsideWindows | None = None,
    hooked: HookedBy = lambda _: (),
) -> DerivedFiles:
    """Derive and fold the pieces of whole files, in a process of its own."""
    derivation = LocalDerivation(
        rules, _NothingStored(), lambda: None, limit_bytes, windows, hooked
    )
    for piece in pieces:
        derivation.take(piece)
    counts: dict[str, list[Aggregates]] = defaultdict(list)
    for own in derivation.totals.values():
        for name, aggregates in own.items():
            counts[name].append(aggregates)
    changes = derivation.changes()
    views = changes.views._replace(entries=_newest(changes.views.entries))
    return DerivedFiles(
        changes=changes._replace(views=views),
        partition=derivation.partition,
        ahead_ms=derivation.ahead_ms,
        counts={name: added(Aggregates, parts) for name, parts in counts.items()},
        rejected=derivation.rejected,
        unread=derivation.unread,
    )


def _newest(
    entries: Sequence[tuple[EntryStream, bytes, Entry]],
) -> list[tuple[EntryStream, bytes, Entry]]:
    """Return the entries that are stored: of each stream of a session the newest."""
    streams: dict[tuple[EntryStream, bytes], deque[Entry]] = {}
    for stream, session, entry in entries:
        of = streams.setdefault((stream, session), deque(maxlen=STREAM_ENTRIES))
        of.append(entry)
    return [(*of, entry) for of, newest in streams.items() for entry in newest]


class _NothingStored:
    """Implements `LocalStore`: a file that has nothing, and is not written to."""

    position = visits = 0

    def marks(self) -> dict[str, bytes]:
        """Return none."""
        return {}

    def stats(self) -> dict[bytes, bytes]:
        """Return none."""
        return {}

    def view(self, session: bytes) -> None:
        """Return none."""

    def compaction(self, session: bytes, name: bytes) -> None:
        """Return none."""

    def state(self, session: bytes) -> list[tuple[bytes, bytes]]:
        """Return none."""
        del session
        return []

    def own_totals(self, session: bytes) -> dict[bytes, bytes]:
        """Return none."""
        del session
        return {}

    def other_totals(self, field: bytes, sessions: Collection[bytes]) -> list[bytes]:
        """Return none."""
        del field, sessions
        return []

    def files(self, session: bytes) -> set[str]:
        """Return none."""
        del session
        return set()

    def related(self, paths: Collection[str]) -> tuple[set[bytes], set[str]]:
        """Return none but the files themselves."""
        return set(), set(paths)

    def commit(self, changes: LocalChanges) -> None:
        """Refuse: there is nothing to write to."""
        raise NotImplementedError(changes.position)
