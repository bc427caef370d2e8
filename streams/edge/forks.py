"""Tasks of one command, done by several processes; their parts come in the order of the tasks.

The processes are forks of this one. Each is at the other end of a pipe, whose closing ends it, also
when this process is killed. Signals such as Ctrl-C are for this process alone, which then ends
the others. What comes from later tasks is held back in memory, up to a limit, while an earlier one
is not done.
"""

import contextlib
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Generic, NoReturn, TypeVar

from contextgauge.errors import StopError
from schemas.topics import MIB
from streams.edge.signals import ENDING_SIGNALS

Task = TypeVar("Task")
Part = TypeVar("Part")

_HELD_BYTES = 64 * MIB
"""Of parts that wait for an earlier task: beyond it, processes of later tasks wait too."""

_END = b""
"""After the last part of a task; no pickled object is empty."""


class TaskFailedError(Exception):
    """A task raised an error in its process; done again in this one, it shows which."""


class ProcessDiedError(StopError):
    """A process ended before its task did; `how` says by what."""

    def __init__(self, processes: int, how: str) -> None:
        super().__init__(
            f"one of {processes} processes died ({how}), and the output ends before what it was to "
            "give: is there too little memory? Use --processes 1"
        )
        self.how = how


_FAILED = pickle.dumps(TaskFailedError())


class Forks(Generic[Task, Part]):
    """Does tasks by `work`, in `processes` processes, from `start` to `stop`.

    Start it before any thread. `work` returns a task's parts; both must be picklable.
    """

    def __init__(self, work: Callable[[Task], Iterable[Part]], processes: int) -> None:
        self._work = work
        self._processes = processes
        self._pids: dict[Connection, int] = {}
        self._tasks: Sequence[Task] = ()
        self._doing: dict[Connection, int] = {}
        """The tasks at work, by the pipes of their processes."""
        self._next = 0
        self._parts: dict[int, deque[bytes]] = {}
        self._held_bytes = 0

    def start(self) -> None:
        """Start the processes. Raises StopError where the system has no room for them."""
        try:
            for _ in range(self._processes):
                self._fork()
        except OSError as error:
            self.stop()
            raise StopError(
                f"cannot start {self._processes} processes ({error.strerror})"
            ) from error

    def stop(self) -> None:
        """End the processes. They write nothing, so nothing is left half done."""
        for pipe, pid in self._pids.items():
            pipe.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._pids.values():
            os.waitpid(pid, 0)
        self._pids.clear()

    def results(self, tasks: Sequence[Task]) -> Iterator[Generator[Part, None, None]]:
        """Yield each task's parts, in the order of the tasks. Once only.

        What is not taken of a task is dropped. Raises TaskFailedError for a part that could not
        be made, ProcessDiedError.
        """
        self._tasks = tasks
        for pipe in self._pids:
            self._assign(pipe)
        for task in range(len(tasks)):
            yield self._parts_of(task)
            for _ in self._values(task):
                pass
            del self._parts[task]

    def _parts_of(self, task: int) -> Generator[Part, None, None]:
        for value in self._values(task):
            part = pickle.loads(value)  # noqa: S301 -- from a fork of this process
            if isinstance(part, TaskFailedError):
                raise part
            yield part

    def _values(self, task: int) -> Iterator[bytes]:
        """Yield what came of a task that was not taken yet, until its end."""
        parts = self._parts[task]
        while not parts or parts[0] != _END:
            if not parts:
                self._receive(task)
                continue
            value = parts.popleft()
            self._held_bytes -= len(value)
            yield value

    def _receive(self, task: int) -> None:
        """Wait for a part, of this task alone where too much of later ones is held."""
        pipes = [
            pipe
            for pipe, doing in self._doing.items()
            if doing == task or self._held_bytes < _HELD_BYTES
        ]
        for pipe in wait(pipes):
            if not isinstance(pipe, Connection):
                raise TypeError(pipe)
            try:
                value = pipe.recv_bytes()
            except (EOFError, OSError) as error:
                self._report_death(pipe, error)
            self._parts[self._doing[pipe]].append(value)
            self._held_bytes += len(value)
            if value == _END:
                self._assign(pipe)

    def _assign(self, pipe: Connection) -> None:
        """Give a process the next task, if there is one."""
        self._doing.pop(pipe, None)
        if self._next == len(self._tasks):
            return
        self._doing[pipe], self._parts[self._next] = self._next, deque()
        try:
            pipe.send(self._tasks[self._next])
        except OSError as error:
            self._report_death(pipe, error)
        self._next += 1

    def _report_death(self, pipe: Connection, error: BaseException) -> NoReturn:
        pid = self._pids.pop(pipe)
        pipe.close()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        raise ProcessDiedError(self._processes, how) from error

    def _fork(self) -> None:
        own, other = Pipe()
        pid = os.fork()
        if pid:
            other.close()
            self._pids[own] = pid
            return
        try:
            for number in ENDING_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            own.close()
            for pipe in self._pids:  # else their processes would not see this process's end
                pipe.close()
            self._serve(other)
        finally:
            os._exit(1)  # the other end is closed, or a signal came at the very start

    def _serve(self, pipe: Connection) -> None:
        """Do the tasks that come, until the pipe is closed."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                task: Task = pipe.recv()
                for value in self._pickled(task):
                    pipe.send_bytes(value)
                pipe.send_bytes(_END)

    def _pickled(self, task: Task) -> Iterator[bytes]:
        try:
            for part in self._work(task):
                yield pickle.dumps(part, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception:  # noqa: BLE001 -- the other process does the task again, and shows it
            yield _FAILED
