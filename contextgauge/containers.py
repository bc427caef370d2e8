"""The session of a line, by its container (R1): a transcript, a rollout or a stream.

A container is one file or pipe. A `Scout` reads its lines first and decides what it is; the
`Container` it makes then gives each line's hint, in order. The message's own session always
comes before the hint.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.normalise import named_session
from contextgauge.normalise.fields import text
from contextgauge.normalise.runtimes import ADAPTERS, HEADS, line_of
from contextgauge.normalise.signals import Body
from contextgauge.normalise.spellings import TRANSCRIPT_FIELDS, is_transcript

ContainerKind: TypeAlias = Literal["transcript", "rollout", "stream"]


def _strings(words: Iterable[str]) -> bytes:
    return b'"(?:%s)"' % "|".join(map(re.escape, sorted(set(words)))).encode()


_SIGNS: Final = (*TRANSCRIPT_FIELDS, *HEADS)
SIGNS: Final = re.compile(_strings(_SIGNS))
"""JSON spellings, one of which is in any line that marks a transcript or a rollout."""

SIGN_BYTES: Final = max(map(len, _SIGNS)) + 2
"""No sign is longer."""

NAMES: Final = re.compile(
    _strings(name for each in ADAPTERS for name in (*each.spelling.session, *each.session_names))
    + rb"(?:\s*:\s*)?"
)
"""JSON spellings, one of which is in any line that names its session; with it goes the colon."""


class Line(NamedTuple):
    """One line of a file: where it stands, its bytes without the line end, and its hints.

    `size` is the line's length in bytes; it exceeds `len(value)` where only the beginning of a
    gigantic line was read. `thread_id`, `inherited` and
    `settings` are those of `InputMessage`.
    """

    file: str
    number: int
    value: bytes
    size: int
    session_hint: str | None
    thread_id: str | None = None
    inherited: bool | None = None
    settings: bytes | None = None


class Container:
    """The hint for each line of one container."""

    __slots__ = ("_encoded", "_encoded_hint", "hint", "kind", "origin", "thread_id")

    def __init__(
        self,
        kind: ContainerKind,
        hint: str | None,
        thread_id: str | None = None,
        origin: str | None = None,
    ) -> None:
        self.kind = kind
        self.hint = hint
        """The session of the next line that names none; constant but in a stream."""
        self.thread_id = thread_id
        """The subagent's thread whose rollout it is: a chain of its session (R30)."""
        self.origin = origin
        """The thread whose lines a rollout may begin with; None once it is past them."""
        self._encoded = b""
        self._encoded_hint: str | None = None

    def may_change(self, line: bytes) -> bool:
        """Return whether `pass_over` may change the hint, without parsing the line.

        It does not where all that the line could name, at any depth, is the hint.
        """
        if self.kind != "stream":
            return False
        if self.hint is not None and self.hint != self._encoded_hint:
            from contextgauge import json_codec  # noqa: PLC0415 -- the status line never needs it

            self._encoded, self._encoded_hint = json_codec.dumps(self.hint), self.hint
        hint = self._encoded
        for name in NAMES.finditer(line):
            if not hint or not line.startswith(hint, name.end()):
                return True
        return False

    def pass_over(self, body: Body) -> None:
        """Note a line's own session: in a stream it serves the lines after it."""
        if self.kind == "stream":
            self.hint = named_session(body) or self.hint


class Scout:
    """Finds out what a container is, from its lines' bodies in order.

    One line with `sessionId`, `isSidechain` or `parentUuid` makes it a transcript, a head (Codex'
    `session_meta`) a rollout; whichever comes first counts. A stream has neither: if it names one
    session, that is also the session of the lines before.
    """

    def __init__(self) -> None:
        self._kind: ContainerKind = "stream"
        self._session: str | None = None
        self._thread_id: str | None = None
        self._origin: str | None = None
        self._named: str | None = None
        self._has_unnamed = self._has_several = self._is_by_name = False
        self.in_stream = False
        """Whether a line in the stream's spelling was seen: what a pipe is taken by."""

    def look(self, body: Body) -> bool:
        """Take one line into account; return True when no later line can change the answer."""
        if self._kind == "stream":
            if is_transcript(body):
                self._kind = "transcript"
            elif line_of(body).head is not None:
                self._kind = "rollout"
            else:
                self._note(named_session(body))
        if self._kind == "transcript":
            self._session = text(body, "sessionId")
        elif self._kind == "rollout" and (read := line_of(body).head) is not None:
            head = read(body)
            self._session, self._thread_id, self._origin = head[:3]
            self._is_by_name = head.is_by_name
        return self._session is not None or self._is_by_name

    def note(self, body: Body) -> None:
        """Take a line of what is a stream already into account: whose session it names."""
        self._note(named_session(body))

    def _note(self, named: str | None) -> None:
        if named is None:
            self._has_unnamed = self._has_unnamed or not self.in_stream
            return
        self._has_several = self._has_several or self._named not in (None, named)
        self._named = self._named or named
        self.in_stream = True

    @property
    def is_known(self) -> bool:
        """Whether a line showed what the container is."""
        return self._kind != "stream" or self.in_stream

    @property
    def is_settled(self) -> bool:
        """Whether no later line of a stream matters to those before it."""
        return self.in_stream and (self._has_several or not self._has_unnamed)

    def container(
        self, name: str | None, fallback: str | None, thread_id: str | None = None
    ) -> Container:
        """Return the container.

        `name` is the session that the file's name stands for, which serves a transcript that
        never names its own, and `thread_id` the subagent's; `fallback` is the caller's, for lines
        that nothing else gives one.
        """
        if self._kind == "transcript":
            return Container("transcript", self._session or name or fallback)
        if self._kind == "stream":
            is_one = self._has_unnamed and not self._has_several
            return Container("stream", (self._named if is_one else None) or fallback)
        if self._is_by_name:
            return Container("rollout", self._session or name or fallback, thread_id)
        return Container(self._kind, self._session or fallback, self._thread_id, self._origin)
