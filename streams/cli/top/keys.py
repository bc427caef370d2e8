"""Keys of a terminal: its input read key by key, and the bytes that keys are."""

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
    "H": "home",
    "F": "end",
    "1~": "home",
    "4~": "end",
    "5~": "page up",
    "6~": "page down",
    "7~": "home",
    "8~": "end",
}
"""What terminals send behind `ESC [` or `ESC O`."""

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

    What is cut within a character or a sequence is kept for the next bytes.
    """

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def read(self, data: bytes) -> Iterator[str]:
        """Yield the keys that the bytes hold; a sequence that is not known is none."""
        text = self._rest + self._text.decode(data)
        self._rest = ""
        while text:
            found = _SEQUENCE.match(text)
            if found is not None:
                text = text[found.end() :]
                if found[1] in _SEQUENCES:
                    yield _SEQUENCES[found[1]]
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
    """A terminal that gives each key at once and shows none, while the context lasts."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)

    def __enter__(self) -> Self:
        tty.setcbreak(self._descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Have the terminal as it was before; entering again takes it."""
        with suppress(termios.error):  # it may be gone
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
