"""A terminal of the test's own: a command runs in it, keys are pressed, and its screen is read."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from tests.commands import command_environment, listen_to_signals
from tests.patience import PATIENCE, PATIENCE_S

ROOT = Path(__file__).parents[2]

_HOME = b"\x1b[H"
"""What begins each frame of a screen that is drawn again and again."""

_DRAWN_S = 0.5 * PATIENCE
"""A frame to which nothing is added for so long is whole, if no other begins."""


def _take_terminal() -> None:
    """Make the new process the one that its terminal's Ctrl-C is for."""
    listen_to_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A pseudo-terminal of a size, with a program in it: `contextgauge`, if none is given."""

    def __init__(
        self,
        columns: int,
        rows: int,
        arguments: list[str],
        settings: Mapping[str, str],
        program: Sequence[str] = (sys.executable, "-m", "streams"),
    ) -> None:
        self._lock = threading.Lock()
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._own, inside = pty.openpty()
        self._size(columns, rows)
        self.modes = termios.tcgetattr(self._own)
        environment = command_environment(settings) | {"TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self.received = b""
        self._frame: list[str] = []
        self._latest_s = 0.0
        self.process = subprocess.Popen(
            [*program, *arguments],
            cwd=ROOT,
            env=environment,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 -- two calls
        )
        os.close(inside)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._own, 65_536)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self.received += data
                *frames, begun = data.split(_HOME)
                for drawn in frames:
                    self._stream.feed(drawn)
                    self._frame = list(self.screen.display)
                    self._stream.feed(_HOME)
                self._stream.feed(begun)
                self._latest_s = time.monotonic()

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Change the size, which the command hears of as of any window's."""
        with self._lock:
            self.screen.resize(rows, columns)
            self.screen.reset()
            self._frame = list(self.screen.display)
        self._size(columns, rows)

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._own, keys.encode())

    @property
    def lines(self) -> list[str]:
        """The screen as text; while a frame is drawn, the one before it."""
        with self._lock:
            is_drawn = time.monotonic() - self._latest_s > _DRAWN_S or not self._reading.is_alive()
            return list(self.screen.display) if is_drawn or not self._frame else self._frame

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    @property
    def settings_now(self) -> list[object]:
        """The terminal's modes: whether keys are shown, and given at once."""
        return list(termios.tcgetattr(self._own))

    def wait(self, fits: Callable[[str], bool]) -> str:
        """Wait until the screen fits, and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while not fits(text := self.text):
            assert time.monotonic() < deadline, f"the screen never came to it:\n{text}"
            time.sleep(0.02)
        return text

    def wait_for_bytes(self, part: bytes, begin: int = 0) -> None:
        """Wait until the command has written these bytes, after the first so many."""
        deadline = time.monotonic() + PATIENCE_S
        while part not in self.received[begin:]:
            assert time.monotonic() < deadline, self.received[begin:]
            time.sleep(0.02)

    def end(self) -> int:
        """Wait for the command's end and return its exit code."""
        code = self.process.wait(PATIENCE_S)
        self._reading.join(PATIENCE_S)
        return code

    def hang_up(self) -> None:
        """Close the window that the terminal is in."""
        os.close(self._own)
        self._own = -1

    def close(self) -> None:
        """Kill what still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self._own >= 0:
            self.hang_up()
