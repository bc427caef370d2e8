"""Adds what is set where a session runs to its lines, as they are published while it runs (R33).

Settings are those of now, so what was written earlier goes without. One line carries them: the
first of a session that names its folder, and again one after they changed.
"""

from collections.abc import Iterator
from typing import Final

from contextgauge.containers import Line
from contextgauge.normalise import normalise
from contextgauge.normalise.signals import InputMessage, SessionFacts
from schemas.messages import DeadLetter
from streams import codec
from streams.core.runtime_settings import written
from streams.edge.files.runtime_settings import SettingsReader
from streams.ports import Clock, LineBatch

_AGAIN_S: Final = 5.0
"""Settings that change are published so late: until then no file is read again."""

_SIGN: Final = b'"cwd"'
"""In each line that names a folder."""


class LiveSettings:
    """The settings that were published of sessions, by these pieces; see the module."""

    def __init__(self, reader: SettingsReader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self._read_s = clock.monotonic_s()
        self._known: set[tuple[str | None, str | None]] = set()
        """Containers whose settings were looked up since the files were read."""
        self._sent: dict[tuple[str | None, str | None], dict[str, object]] = {}

    def added(self, pieces: Iterator[LineBatch]) -> Iterator[LineBatch]:
        """Yield the pieces, with settings on some of the lines that were just written."""
        for piece in pieces:
            if piece.live and piece.lines:
                self._read_again()
                yield piece._replace(lines=[self._with_settings(line) for line in piece.lines])
            else:
                yield piece

    def _read_again(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._read_s >= _AGAIN_S:
            self._read_s = now_s
            self._reader.forget()
            self._known.clear()

    def _with_settings(self, line: Line) -> Line:
        container = (line.session_hint, line.thread_id)
        if container in self._known or _SIGN not in line.value:
            return line
        facts = _facts_of(line)
        if facts is None:
            return line
        self._known.add(container)
        fields = written(self._reader.settings(facts.runtime, facts.cwd))
        if fields == self._sent.get(container):
            return line
        self._sent[container] = fields
        return line._replace(settings=codec.dumps(fields))


def _facts_of(line: Line) -> SessionFacts | None:
    """Return what a line says of its session, if that is its runtime and folder."""
    body = codec.decode(line.value)
    if isinstance(body, DeadLetter):
        return None
    normal = normalise(body, InputMessage(line.value))
    for signal in () if normal is None else normal.signals:
        if isinstance(signal, SessionFacts) and signal.runtime and signal.cwd:
            return signal
    return None
