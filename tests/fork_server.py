"""Processes of the command that need not import anything: forked from one that has imported it all.

A start of `python -m streams` costs half a second of CPU time, nearly all of it imports; a fork
costs some hundredths. The forked process is one of its own: it has its own environment and
standard streams, runs `streams` as `__main__`, and ends as any interpreter does. Only modules that
read nothing of their environment when they are imported are there before the fork.
"""

import contextlib
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import streams

ROOT = Path(__file__).parents[1]
_MESSAGE_BYTES = 1 << 20

_READ_AT_START = ("COLUMNS", "LANG", "LC_", "MALLOC", "NO_COLOR", "PYTHON", "TERM", "TZ")
"""Variables that are read when an interpreter starts or a module is imported: where the server has
others, a fork will not do."""


class ForkServer:
    """A process that runs commands as forks of itself; it ends with the one that started it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._folder = TemporaryDirectory()
        self._address = f"{self._folder.name}/socket"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", self._address],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def stop(self) -> None:
        """End the server; what it runs goes on."""
        self._process.communicate()
        self._folder.cleanup()

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], stdin: str, timeout_s: float
    ) -> "subprocess.CompletedProcess[str] | None":
        """Run a command to its end; None where it needs an interpreter that starts with this."""
        before = self._environment
        names = [name for name in {*environment, *before} if name.startswith(_READ_AT_START)]
        if any(environment.get(name) != before.get(name) for name in names):
            return None
        asked = json.dumps([list(arguments), dict(environment)]).encode()
        read, write = os.pipe()
        with (
            TemporaryFile() as out,
            TemporaryFile() as errors,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.connect(self._address)
            pipes = [read, out.fileno(), errors.fileno()]
            socket.send_fds(connection, [b"%8d" % len(asked)], pipes)
            connection.sendall(asked)
            os.close(read)
            threading.Thread(target=_feed, args=(write, stdin.encode()), daemon=True).start()
            answers = connection.makefile("rb")
            pid = int(answers.readline())
            connection.settimeout(timeout_s)
            try:
                code = int(answers.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
            out.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(
                arguments, code, out.read().decode(), errors.read().decode()
            )


def _feed(pipe: int, content: bytes) -> None:
    """Write all of it, as far as it is read."""
    with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as target:
        target.write(content)


def _serve(address: str) -> list[str]:
    """Fork for each connection; return in the fork, with the arguments to run."""
    for module in pkgutil.walk_packages(streams.__path__, "streams."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    os.write(1, b"ready\n")
    while True:
        ready, _, _ = select.select([listener.fileno(), 0], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listener.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            listener.close()
            return _run(connection)
        connection.close()


def _run(connection: socket.socket) -> list[str]:
    """Fork again: one half is the command and returns, the other reports how it ended."""
    size, pipes, _, _ = socket.recv_fds(connection, 8, 3)
    asked = b""
    while len(asked) < int(size):
        asked += connection.recv(_MESSAGE_BYTES)
    arguments, environment = json.loads(asked)
    child = os.fork()
    if child:
        connection.sendall(b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    connection.close()
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return list(arguments)


if __name__ == "__main__":
    sys.argv[1:] = _serve(sys.argv[1])
    runpy.run_module("streams", run_name="__main__", alter_sys=True)
