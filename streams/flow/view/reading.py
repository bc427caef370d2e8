"""Reads the transcripts of this machine into the local file, and follows them; in a thread.

Figures appear a moment after the start: the first commit follows the first lines.
"""

import threading
from collections.abc import Mapping

from streams.flow.view.derivation import LocalDerivation
from streams.ports import Clock, ProjectorHeartbeat, ReadingProgress, TranscriptReader

_IDLE_S = 0.2
"""How often is looked while nothing is unread."""

_COMMIT_S = 0.2
"""How often is written while much is unread. What is not written yet is in memory: megabytes."""


class LocalReading:
    """Reads until it is stopped. `run` is for a thread, everything else for others."""

    def __init__(
        self, transcripts: TranscriptReader, derivation: LocalDerivation, clock: Clock
    ) -> None:
        self._transcripts = transcripts
        self._derivation = derivation
        self._clock = clock
        self._stopping = threading.Event()
        self._seen_ms = clock.now_ms()
        self._progress: ReadingProgress | None = None

    def stop(self) -> None:
        """Let the reading end after the lines in hand."""
        self._stopping.set()

    def progress(self) -> ReadingProgress | None:
        """Return how much has been read; None before the first look. What is done is written."""
        return self._progress

    @property
    def rejected(self) -> Mapping[str, int]:
        """The lines that could not be derived, by file."""
        return self._derivation.rejected

    def heartbeat(self) -> ProjectorHeartbeat:
        """Return when it was last at work. Views are never behind: all that is read is in them."""
        return ProjectorHeartbeat(self._seen_ms, None, 0)

    def run(self) -> None:
        """Read and follow. Raises StopError where the local file cannot be written."""
        committed_s = self._clock.monotonic_s() - _COMMIT_S
        while not self._stopping.is_set():
            self._seen_ms = self._clock.now_ms()
            lost = self._transcripts.look()
            if lost:
                self._derivation.commit()
                self._transcripts.forget(self._derivation.remove(lost))
            self._progress = self._progress or self._transcripts.progress()
            has_read = False
            for piece in self._transcripts.pieces():
                self._seen_ms = self._clock.now_ms()
                self._derivation.take(piece)
                has_read = True
                if self._clock.monotonic_s() - committed_s >= _COMMIT_S:
                    self._derivation.commit()
                    committed_s = self._clock.monotonic_s()
                if self._stopping.is_set():
                    break
            progress = self._transcripts.progress()
            if not has_read or (progress is not None and progress.is_done):
                self._derivation.commit()
            self._progress = progress
            if not has_read:
                self._stopping.wait(_IDLE_S)
        self._derivation.commit()
