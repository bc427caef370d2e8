"""Several processes of one command: what starts them, stops them together, and tells of all.

    contextgauge derive --processes 2
      ├─ process 1   a worker as ever, member of the group
      └─ process 2   another

The processes are forked, so they run the very program and settings that were started. The
supervisor holds one end of a pipe, and each process waits at the other: a byte tells it to stop,
and so does the end of the pipe, however the supervisor came to its own. It works on nothing itself.
"""

import contextlib
import os
import signal
import socket
import sys
from importlib.metadata import version
from typing import NamedTuple

import structlog
import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import StopError
from streams.cli import logs
from streams.cli.build import is_compiled
from streams.cli.exits import Exit, by_signal
from streams.cli.workers.status_address import address_of, listener_of
from streams.edge.telemetry.combined import LOOPBACK, of_all
from streams.edge.telemetry.server import METRICS, StatusServer, listening, port_of
from streams.ports import Clock
from streams.settings import Settings

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM)

_BEYOND_LIMIT_S = 2.0
"""A process ends itself by force when its time is up; so much later it cannot, and is killed."""

logger = structlog.get_logger()


class Part(NamedTuple):
    """What a worker's process goes by; `listener` and `lifeline` where it is one of several."""

    settings: Settings
    listener: socket.socket | None = None
    lifeline: int | None = None


class _Process(NamedTuple):
    number: int
    port: int


def spread(name: str, chosen: Settings, count: int) -> Part:
    """Become `count` processes that each get a part, from 1 on; this one sees to them.

    So it returns in the new ones only, and ends this one by `typer.Exit`. To be called before any
    thread or event loop is started. Raises ConfigError where the settings' port cannot be had.
    """
    own = listener_of(chosen)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # by default it may be lost before it is taken
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    sys.stdout.flush()
    sys.stderr.flush()
    lifeline, held = os.pipe()
    processes: dict[int, _Process] = {}
    try:
        for number in range(1, count + 1):
            listener = listening(LOOPBACK, 0)
            pid = os.fork()
            if pid == 0:
                own.close()
                os.close(held)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD, signal.SIGALRM})
                structlog.contextvars.bind_contextvars(process=number)
                return Part(_own_settings(chosen, number, count), listener, lifeline)
            processes[pid] = _Process(number, port_of(listener))
            listener.close()
    except OSError as error:
        os.close(held)  # by which those that run know that they are to end
        for pid in processes:
            os.waitpid(pid, 0)
        raise StopError(
            f"could not start {count} processes ({error.strerror}): start fewer"
        ) from error
    os.close(lifeline)
    logs.configure(chosen)
    ports = {process.number: process.port for process in processes.values()}
    StatusServer(own, of_all(name, ports)).start()
    logger.info(
        "started",
        metrics=f"{address_of(chosen, own)}{METRICS}",
        processes={process.number: pid for pid, process in processes.items()},
        version=version("contextgauge"),
        compiled=is_compiled(),
    )
    raise typer.Exit(_Supervisor(processes, held, chosen.stop_timeout_s, SystemClock()).run())


def _own_settings(chosen: Settings, number: int, count: int) -> Settings:
    """Return what is one process's own: its name in the group, and where its status is."""
    return chosen.model_copy(
        update={
            "instance_id": f"{chosen.instance_id}-{number}" if chosen.instance_id else "",
            "metrics_host": LOOPBACK,
            # The first one looks whether they are too many; all would say the same.
            "derive_processes": count if number == 1 else 1,
        }
    )


class _Supervisor:
    """Waits for signals and for the ends of processes, from when they run until all have ended."""

    def __init__(
        self, processes: dict[int, _Process], held: int, limit_s: float, clock: Clock
    ) -> None:
        self._processes, self._held, self._limit_s, self._clock = processes, held, limit_s, clock
        self._began_s: float | None = None
        self._code = 0
        """What the first process that did not end well ended with."""

    def run(self) -> int:
        """Return the exit code."""
        self._collect()
        while self._processes:
            received = signal.Signals(signal.sigwait(_SIGNALS))
            if received == signal.SIGCHLD:
                self._collect()
            elif received == signal.SIGALRM:
                self._kill(Exit.TIME_LIMIT, "killed: the time to stop is up")
            elif self._began_s is None:
                logger.info("stopping", signal=received.name, limit_s=self._limit_s)
                self._stop()
            else:
                self._kill(by_signal(received), "ending at once", signal=received.name)
        seconds = self._clock.monotonic_s() - (self._began_s or self._clock.monotonic_s())
        logger.info("stopped", seconds=round(seconds, 2), exit_code=self._code)
        return self._code

    def _collect(self) -> None:
        """Take note of the processes that have ended; where one did by itself, stop the others."""
        while self._processes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            process = self._processes.pop(pid, None)
            if process is None:
                continue  # as the first process of a container it gets those of others too
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else by_signal(-ended)
            if self._began_s is None:
                # Also where somebody told it to end, and it did: the command has not been told.
                self._code = self._code or code or Exit.STOPPED
                logger.error(
                    "a process ended by itself: stopping the others",
                    process=process.number,
                    pid=pid,
                    exit_code=code,
                )
                self._stop()
            elif code:
                self._code = self._code or code
                logger.warning("a process ended", process=process.number, pid=pid, exit_code=code)

    def _stop(self) -> None:
        """Tell all processes to end in good order, within the limit."""
        self._began_s = self._clock.monotonic_s()
        with contextlib.suppress(BrokenPipeError):  # all have ended meanwhile
            os.write(self._held, b"\n" * len(self._processes))
        signal.setitimer(signal.ITIMER_REAL, self._limit_s + _BEYOND_LIMIT_S)

    def _kill(self, code: int, why: str, **told: str) -> None:
        self._code = self._code or code
        numbers = [process.number for process in self._processes.values()]
        logger.error(why, processes=numbers, **told)
        for pid in self._processes:
            os.kill(pid, signal.SIGKILL)
