"""The parts of `contextgauge view`: which transcripts, which local file, and what reads them."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, StopError
from contextgauge.runtime_settings import RuntimeSettings
from streams import codec, wiring
from streams.edge.files.database import titles_in
from streams.edge.files.hook_messages import HookMessages, hooked_by
from streams.edge.files.housekeeping import DATABASES
from streams.edge.files.names import name_of
from streams.edge.files.reading import refuse_unknown
from streams.edge.files.runtime_settings import SettingsReader
from streams.edge.files.session_files import FirstPrompts
from streams.edge.files.status_windows import StatusWindows
from streams.edge.files.transcripts import LocalTranscripts
from streams.edge.files.unread import UnreadFiles, read_whole
from streams.edge.files.watch import TranscriptFinder, find_file
from streams.edge.forks import Forks, ProcessDiedError, TaskFailedError
from streams.edge.sqlite.database import delete_unused
from streams.edge.sqlite.local_file import LocalFile, take, take_copy
from streams.edge.sqlite.store import SqliteStore
from streams.edge.sqlite.turns import Turns
from streams.edge.sqlite.view_store import SqliteViews
from streams.flow.view.derivation import LocalDerivation
from streams.flow.view.other_process import derive_files
from streams.flow.view.reading import LocalReading
from streams.ports import Clock, DerivedFiles
from streams.serve.api.serving import ReadSettings, ReadTitles, RuntimeFolder
from streams.settings import Settings
from streams.wiring.stored import local_file, local_tag, own_folders


class LocalView(NamedTuple):
    """A reading of transcripts and the views that it fills; `close` at the end."""

    reading: LocalReading[UnreadFiles]
    views: SqliteViews
    close: Callable[[], None]


def take_file(settings: Settings, paths: Sequence[str]) -> LocalFile:
    """Take the local file of these paths. Raises InUseError, ConfigError."""
    return take(local_file(settings, paths))


def take_file_copy(settings: Settings, paths: Sequence[str]) -> LocalFile:
    """Take a copy of it, where another process has it. Raises ConfigError."""
    return take_copy(local_file(settings, paths), local_tag(settings))


class ReadingProcesses:
    """Processes that read and derive what is unread at the start. If one dies, all are given up."""

    def __init__(self, settings: Settings, processes: int, report: Callable[[str], None]) -> None:
        rules, limit_bytes = wiring.rules(settings), settings.message_limit_bytes
        windows = StatusWindows(settings.state_folder).of
        hooked = hooked_by(settings.state_folder)

        def work(files: UnreadFiles) -> Iterator[DerivedFiles]:
            yield derive_files(rules, limit_bytes, read_whole(files), windows, hooked)

        self._forks = Forks(work, processes)
        self._report = report

    def start(self) -> None:
        """Start them, before any thread. Raises StopError where the system has no room for them."""
        self._forks.start()

    def results(self, tasks: Sequence[UnreadFiles]) -> Iterator[DerivedFiles | None]:
        """Yield what each task gave, in order; None where it could not be done."""
        done = 0
        try:
            for parts in self._forks.results(tasks):
                derived: DerivedFiles | None
                try:
                    (derived,) = parts
                except TaskFailedError:
                    derived = None
                yield derived
                done += 1
        except ProcessDiedError as died:
            self._report(f"a process that reads died ({died.how}): one process reads on alone")
            yield from [None] * (len(tasks) - done)

    def stop(self) -> None:
        """End the processes."""
        self._forks.stop()


@contextmanager
def other_processes(
    settings: Settings, processes: int, report: Callable[[str], None]
) -> Iterator[ReadingProcesses | None]:
    """Start processes for a local view, if several can be, and end them with the context."""
    others = ReadingProcesses(settings, processes, report) if processes > 1 else None
    try:
        try:
            if others is not None:
                others.start()
        except StopError as error:
            report(f"{error}; one process reads alone")
            others = None
        yield others
    finally:
        if others is not None:
            others.stop()


def local_view(
    settings: Settings,
    file: Path,
    paths: Sequence[str],
    report: Callable[[str], None],
    others: ReadingProcesses | None = None,
) -> LocalView:
    """Return what reads these paths, or those of this machine's runtimes where there are none.

    The local file must be taken. Raises ConfigError.
    """
    clock, rules = SystemClock(), wiring.rules(settings)
    finder = TranscriptFinder(paths) if paths else TranscriptFinder((), own_folders())
    store = SqliteStore(file, local_tag(settings))
    delete_unused(file, clock.now_ms() / 1_000)
    transcripts = LocalTranscripts(finder.look, first_marks(store), clock, report)
    turns = Turns()
    windows = StatusWindows(settings.state_folder)
    derivation = LocalDerivation(
        rules,
        store,
        turns.give_way,
        settings.message_limit_bytes,
        windows.of,
        hooked_by(settings.state_folder),
    )
    hooks = HookMessages(settings.state_folder)
    reading = LocalReading(transcripts, derivation, clock, others, windows.changed, hooks.changed)
    return LocalView(reading, SqliteViews(file, reading.heartbeat, turns), store.close)


def first_marks(store: SqliteStore) -> dict[str, bytes]:
    """Return the marks of files; of a database none that lost a session, so that it is read again.

    What deletes rows leaves no trace in them: the sessions that its lines were of are compared with
    those that it lists now. Of one that lists none nothing is known to be lost.
    """
    marks = store.marks()
    for path in marks:
        if path.endswith(DATABASES):
            with suppress(OSError):
                there = set(map(codec.key_bytes, titles_in(path)))
                if store.sessions_of(path) - there:
                    marks[path] = b""
    return marks


def titles(views: SqliteViews) -> ReadTitles:
    """Return what reads titles: first prompts of transcripts, or what a database calls sessions."""
    prompts = FirstPrompts()

    def read(files: Sequence[tuple[str, Path]]) -> dict[str, str]:
        main_last = sorted(files, key=lambda file: _order(str(file[1])))
        named: dict[Path, dict[str, str]] = {}
        for _, path in files:
            if path.name.endswith(DATABASES) and path not in named:
                with suppress(OSError):
                    named[path] = titles_in(str(path))
        known = (
            (session_id, named[path].get(session_id) if path in named else prompts.of(path))
            for session_id, path in main_last
        )
        return {session_id: shown for session_id, shown in known if shown}

    async def titles_of(session_ids: Sequence[str]) -> dict[str, str]:
        names = {codec.key_bytes(session_id): session_id for session_id in session_ids}
        files = [
            (names[session], path)
            for session, path, is_alone in views.files(list(names))
            if is_alone or path.name.endswith(DATABASES)
        ]
        return await asyncio.to_thread(read, files)

    return titles_of


def _order(path: str) -> tuple[bool, int]:
    """Return by what a session's files are ordered, its main one last: of these the shortest."""
    return name_of(path).is_main, -len(path)


def runtime_settings(clock: Clock) -> ReadSettings:
    """Return what reads the runtimes' own settings, again every few seconds."""
    reader, looked_s = SettingsReader(os.environ), clock.monotonic_s()

    def read(places: Sequence[RuntimeFolder]) -> dict[RuntimeFolder, RuntimeSettings]:
        nonlocal looked_s
        if clock.monotonic_s() - looked_s > _SETTINGS_S:
            looked_s = clock.monotonic_s()
            reader.forget()
        by_place = {place: reader.settings(*place) for place in places}
        return {place: settings for place, settings in by_place.items() if settings is not None}

    return read


_SETTINGS_S = 5.0
"""A setting that is changed shows after so long; until then no file is read again."""


def checked_paths(paths: Sequence[str]) -> list[str]:
    """Return the paths as absolute ones. Raises ConfigError for one that is not read."""
    checked = []
    for path in paths:
        try:
            checked.append(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111 -- without following links
            if find_file(checked[-1]) is None:
                Path(checked[-1]).stat()
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigError(f"{path}: no such file or folder") from None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
    refuse_unknown(checked)
    return checked
