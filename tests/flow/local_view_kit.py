"""A reading into a local file, step by step, and all that the file holds."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from contextgauge.window_catalog import bundled
from streams import codec
from streams.core.derivation.outside_windows import OutsideWindows
from streams.core.derivation.rules_config import Rules
from streams.edge.files.folders import write_folder
from streams.edge.files.transcripts import LocalTranscripts
from streams.edge.files.unread import UnreadFiles
from streams.edge.files.watch import TranscriptFinder
from streams.edge.sqlite.store import SqliteStore
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.flow.view.derivation import LocalDerivation
from streams.flow.view.reading import LocalReading
from streams.ports import OtherProcesses, ReadingProgress, TranscriptPiece
from tests.edge.follower_kit import Hands

RULES = Rules(bundled())
TABLES = ("files", "members", "sessions", "compactions", "entries", "totals", "stats", "states")


_PIECE_S = 0.125
"""So long does each piece take: of three in a row at least one is not committed yet when the files
are looked at again."""


class Run:
    """One run of the reading over a folder and a local file.

    It is the reader of transcripts too: time passes with what is read, and the reading ends when
    nothing is left.
    """

    def __init__(
        self,
        folder: Path,
        file: Path,
        tag: str = "tag",
        others: OtherProcesses[UnreadFiles] | None = None,
        windows: OutsideWindows | None = None,
        marks: Callable[[SqliteStore], dict[str, bytes]] = SqliteStore.marks,
    ) -> None:
        self._others = others
        self.store = SqliteStore(file, tag)
        self.clock = Hands(2_000_000_000.0)
        finder = TranscriptFinder([str(folder)])
        self.transcripts = LocalTranscripts(
            finder.look, marks(self.store), self.clock, lambda _text: None
        )
        self.derivation = LocalDerivation(RULES, self.store, lambda: None, windows=windows)
        self.read: list[str] = []
        self._waiting_tasks = 0
        self.forget, self.progress = self.transcripts.forget, self.transcripts.progress
        self.is_time_to_look = self.transcripts.is_time_to_look

    def all(self, after_piece: Callable[[int], None] = lambda _number: None) -> "Run":
        """Read until nothing is left. `after_piece` gets how many pieces were read by now."""
        self._after_piece = after_piece
        self._reading = LocalReading(self, self.derivation, self.clock, self._others)
        self._reading.run()
        return self

    def reading_progress(self) -> ReadingProgress | None:
        """Return what the reading reports."""
        return self._reading.progress()

    def look(self) -> list[str]:
        """Look at the files, a while after the last look."""
        self.clock.at_s += 10.0
        return self.transcripts.look()

    def for_others(self) -> list[UnreadFiles]:
        """Return what other processes read."""
        tasks = self.transcripts.for_others()
        self._waiting_tasks = len(tasks)
        return tasks

    def read_by_other(self, files: UnreadFiles, marks: Mapping[str, bytes | None] | None) -> bool:
        """Take what another process read."""
        self._waiting_tasks -= 1
        return self.transcripts.read_by_other(files, marks)

    def pieces(self) -> Iterator[TranscriptPiece]:
        """Yield what was not read yet; stop the reading if that is nothing."""
        before = len(self.read)
        for piece in self.transcripts.pieces():
            self.clock.at_s += _PIECE_S
            self.read.append(piece.path)
            yield piece
            self._after_piece(len(self.read))
        if len(self.read) == before and not self._waiting_tasks:
            self._reading.stop()


def contents(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows, without what differs from run to run: the numbers of sessions and visits."""
    with sqlite3.connect(file) as connection:
        names = dict(connection.execute("SELECT id, session FROM sessions"))
        rows = {}
        for table in TABLES:
            cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 -- of the list above
            first = cursor.description[0][0]
            listed = [
                (names.get(row[0], row[0]), *row[1:]) if first == "id" else row for row in cursor
            ]
            rows[table] = sorted(listed, key=repr)
        rows["files"] = [(path, mark) for path, mark, _ in rows["files"]]
        rows["members"] = [(path, session) for path, session, *_ in rows["members"]]
        # Counts of several processes are added up: in another order, which means nothing.
        rows["stats"] = [(field, codec.loads(document)) for field, document in rows["stats"]]
        return rows


def figures(file: Path) -> dict[str, Any]:
    """Return all documents, without the offsets of records: what a fresh reading has too."""
    rows = contents(file)
    views = [codec.loads(row[2]) for row in rows["sessions"] if row[2] is not None]
    for view in views:
        del view["position"]
    stats = {field: each for field, each in rows["stats"] if field != b"partition"}
    entries = [(who, stream, document) for who, stream, _, document in rows["entries"]]
    return {
        "views": {view["session_id"]: view for view in views},
        "stats": stats,
        "compactions": rows["compactions"],
        "entries": sorted(entries, key=repr),
        "totals": rows["totals"],
        "files": [path for path, _ in rows["files"]],
        "members": rows["members"],
    }


def write_sample(folder: Path, seed: int = 1) -> Path:
    """Write a projects folder with a dozen sessions of all runtimes, long unchanged."""
    simulated = sample_sessions(SimulationOptions(seed=seed))
    write_folder(folder, ((each.file, each.value) for each in simulated))
    for number, path in enumerate(sorted(folder.rglob("*.jsonl"))):
        os.utime(path, (1_750_000_000 + number, 1_750_000_000 + number))
    return folder
