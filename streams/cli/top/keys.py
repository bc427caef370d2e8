"""Keys of a terminal: raw input mode, and decoding of bytes to keys."""

import codecs
import re
import termios
import tty
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

_ESCAPE = "\x1b"

_SEQUENCES = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "1~": "home",
    "4~": "end",
    "5~": "page up",
    "6~": "page down",
    "7~": "home",
    "8~": "end",
}
"""What terminals send after `ESC [` or `ESC O`."""

_SEQUENCE = re.compile(r"\x1b[\[O]([0-9;]*[A-Za-z~])")
_BEGUN = re.compile(r"\x1b[\[O][0-9;]*\Z")

_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "clear",
    "\x0c": "redraw",
    _ESCAPE: "escape",
}


class Keys:
    """Turns bytes into keys: names such as `up` and `enter`, else the character itself.

    Incomplete characters and sequences wait for the next bytes.
    """

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def read(self, data: bytes) -> Iterator[str]:
        """Yield the keys in the bytes; unknown sequences are skipped."""
        text = self._rest + self._text.decode(data)
        self._rest = ""
        while text:
            sequence = _SEQUENCE.match(text)
            if sequence is not None:
                text = text[sequence.end() :]
                if sequence[1] in _SEQUENCES:
                    yield _SEQUENCES[sequence[1]]
            elif _BEGUN.match(text):
                self._rest = text
                return
            else:
                key, text = text[0], text[1:]
                if key in _CONTROLS:
                    yield _CONTROLS[key]
                elif key.isprintable():
                    yield key


class KeyByKey:
    """A terminal that delivers each key at once, without echo, while the context lasts."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)

    def __enter__(self) -> Self:
        tty.setcbreak(self._descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def restore(self) -> None:
        """Restore the terminal's former mode; it can be entered again."""
        with suppress(termios.error):  # it may be gone
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
