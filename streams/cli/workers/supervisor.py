"""Several processes of one command: started, stopped and reported on together.

    contextgauge derive --processes 2
      ├─ process 1   a worker, member of the consumer group
      └─ process 2   another

The processes are forks, so they share the program and its settings. The supervisor holds one end of
a pipe, and each process waits at the other: a byte stops it, and so does the end of the pipe, when
the supervisor dies.
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
from streams.cli.workers.addresses import listener_of, url_of
from streams.edge.telemetry.combined import LOOPBACK, of_all
from streams.edge.telemetry.server import METRICS, StatusServer, listening, port_of
from streams.ports import Clock
from streams.settings import Settings

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM)

_BEYOND_LIMIT_S = 2.0
"""A process ends itself by force when its time is up; one that cannot is killed after that."""

logger = structlog.get_logger()


class Part(NamedTuple):
    """What a worker process gets; `listener` and `lifeline` if it is one of several."""

    settings: Settings
    listener: socket.socket | None = None
    lifeline: int | None = None


def spread(name: str, settings: Settings, count: int) -> Part:
    """Fork `count` processes, and supervise them in this one.

    It returns in the forks only; this process ends by `typer.Exit`. Call it before any thread or
    event loop is started. Raises ConfigError where the settings' port is not available.
    """
    own = listener_of("METRICS", settings.metrics_host, settings.metrics_port)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # by default it may be lost before sigwait
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    sys.stdout.flush()
    sys.stderr.flush()
    lifeline, held = os.pipe()
    processes: dict[int, int] = {}  # numbers by pid
    ports: dict[int, int] = {}
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
                return Part(_own_settings(settings, number, count), listener, lifeline)
            processes[pid] = number
            ports[number] = port_of(listener)
            listener.close()
    except OSError as error:
        os.close(held)  # stops those that run
        for pid in processes:
            os.waitpid(pid, 0)
        raise StopError(
            f"cannot start {count} processes ({error.strerror}): start fewer"
        ) from error
    os.close(lifeline)
    logs.configure(settings)
    StatusServer(own, of_all(name, ports)).start()
    logger.info(
        "started",
        metrics=f"{url_of(settings.metrics_host, own)}{METRICS}",
        processes={number: pid for pid, number in processes.items()},
        version=version("contextgauge"),
        compiled=is_compiled(),
    )
    raise typer.Exit(_Supervisor(processes, held, settings.stop_timeout_s, SystemClock()).run())


def _own_settings(settings: Settings, number: int, count: int) -> Settings:
    """Return the settings of one process: its own member ID and status address."""
    return settings.model_copy(
        update={
            "instance_id": f"{settings.instance_id}-{number}" if settings.instance_id else "",
            "metrics_host": LOOPBACK,
            # One of them checks whether they are too many; all would log the same.
            "derive_processes": count if number == 1 else 1,
        }
    )


class _Supervisor:
    """Waits for signals and for processes to end, until all have ended."""

    def __init__(self, processes: dict[int, int], held: int, limit_s: float, clock: Clock) -> None:
        self._processes, self._held, self._limit_s, self._clock = processes, held, limit_s, clock
        self._began_s: float | None = None
        self._code = 0
        """Exit code of the first process that failed."""

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
        """Collect processes that have ended; if one did by itself, stop the others."""
        while self._processes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            number = self._processes.pop(pid, None)
            if number is None:
                continue  # as PID 1 of a container it gets orphans of others too
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else by_signal(-ended)
            if self._began_s is None:
                # Even if a signal stopped it gracefully: the command itself was not stopped.
                self._code = self._code or code or Exit.STOPPED
                logger.error(
                    "a process ended by itself: stopping the others",
                    process=number,
                    pid=pid,
                    exit_code=code,
                )
                self._stop()
            elif code:
                self._code = self._code or code
                logger.warning("a process ended", process=number, pid=pid, exit_code=code)

    def _stop(self) -> None:
        """Let all processes stop gracefully, within the limit."""
        self._began_s = self._clock.monotonic_s()
        with contextlib.suppress(BrokenPipeError):  # all have ended
            os.write(self._held, b"\n" * len(self._processes))
        signal.setitimer(signal.ITIMER_REAL, self._limit_s + _BEYOND_LIMIT_S)

    def _kill(self, code: int, why: str, **fields: str) -> None:
        self._code = self._code or code
        logger.error(why, processes=list(self._processes.values()), **fields)
        for pid in self._processes:
            os.kill(pid, signal.SIGKILL)
