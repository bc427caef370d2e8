"""Reads the transcripts of this machine into the local file, and follows them; in a thread.

Figures appear a moment after the start: the first commit follows the first lines.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from contextgauge.normalise.unread_lines import UnreadKind
from streams.flow.view.derivation import LocalDerivation
from streams.ports import (
    Clock,
    DerivedFiles,
    OtherProcesses,
    ProjectorHeartbeat,
    ReadingProgress,
    TranscriptReader,
)

Task = TypeVar("Task")

_IDLE_S = 0.2
"""How often is looked while nothing is unread."""

_COMMIT_S = 0.2
"""How often is written while much is unread. What is not written yet is in memory: megabytes."""


class LocalReading(Generic[Task]):
    """Reads until it is stopped. `run` is for a thread, everything else for others.

    `others` are processes that read with it what is unread at the start; the reading ends them.
    `changed` returns the sessions whose windows are known from elsewhere since the last call.
    """

    def __init__(
        self,
        transcripts: TranscriptReader[Task],
        derivation: LocalDerivation,
        clock: Clock,
        others: OtherProcesses[Task] | None = None,
        changed: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._transcripts = transcripts
        self._derivation = derivation
        self._clock = clock
        self._others = others
        self._changed = changed
        self._given: Iterator[tuple[Task, DerivedFiles | None]] | None = None
        self._committed_s = 0.0
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

    @property
    def unread(self) -> Mapping[UnreadKind, int]:
        """The lines whose figures are not read; right once what was there has been read."""
        return self._derivation.unread

    def heartbeat(self) -> ProjectorHeartbeat:
        """Return when it was last at work. Views are never behind: all that is read is in them."""
        return ProjectorHeartbeat(self._seen_ms, None, 0)

    def run(self) -> None:
        """Read and follow. Raises StopError where the local file cannot be written."""
        try:
            self._run()
        finally:
            self._end_others()

    def _run(self) -> None:
        self._committed_s = self._clock.monotonic_s() - _COMMIT_S
        while not self._stopping.is_set():
            self._seen_ms = self._clock.now_ms()
            lost = {*self._transcripts.look(), *self._derivation.outdated(self._changed())}
            if lost:
                self._derivation.commit()
                self._transcripts.forget(self._derivation.remove(lost))
            self._begin_others()
            self._progress = self._progress or self._transcripts.progress()
            has_read = False
            for piece in self._transcripts.pieces():
                self._seen_ms = self._clock.now_ms()
                self._derivation.take(piece)
                has_read = True
                self._commit_at_times()
                if self._stopping.is_set():
                    break
            has_read = self._take_given() or has_read
            progress = self._transcripts.progress()
            if not has_read or (progress is not None and progress.is_done):
                self._derivation.commit()
            self._progress = progress
            if not has_read:
                self._stopping.wait(_IDLE_S)
        self._derivation.commit()

    def _commit_at_times(self) -> None:
        if self._clock.monotonic_s() - self._committed_s >= _COMMIT_S:
            self._derivation.commit()
            self._committed_s = self._clock.monotonic_s()

    def _begin_others(self) -> None:
        """Once: let other processes read, where there is much to read."""
        if self._others is None or self._given is not None:
            return
        tasks = self._transcripts.for_others()
        self._given = zip(tasks, self._others.results(tasks), strict=True)
        if not tasks:
            self._end_others()

    def _take_given(self) -> bool:
        """Write what other processes derived, until it is time to look; whether there was any."""
        has_read = False
        while self._others is not None and self._given is not None and not self._stopping.is_set():
            task, derived = next(self._given, (None, None))
            if task is None:
                self._end_others()
                break
            self._seen_ms = self._clock.now_ms()
            has_read = True
            marks = self._derivation.marks_of(derived)
            is_taken = self._transcripts.read_by_other(task, marks)
            if derived is not None and is_taken:
                self._derivation.take_derived(derived)
            elif derived is not None:
                self._derivation.postpone(derived)
            if self._transcripts.is_time_to_look():
                break
            self._progress = self._transcripts.progress()
        return has_read

    def _end_others(self) -> None:
        if self._others is not None:
            self._others.stop()
            self._others = None
