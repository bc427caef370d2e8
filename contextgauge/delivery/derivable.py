"""Notices a publisher whose messages can never give a figure, and says why, once.

A program that publishes events of a kind that nothing reads would otherwise see an empty page and
no error. Only a publisher's first messages are looked at, until one of them is of use.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from contextgauge import json_codec
from contextgauge.documents import document
from contextgauge.messages import DeadLetter
from contextgauge.normalise import normalise
from contextgauge.normalise.fields import text
from contextgauge.normalise.runtimes import ADAPTERS
from contextgauge.normalise.signals import (
    InputMessage,
    Response,
    SessionFacts,
    Signal,
    TurnEnded,
)

LOOKED_AT: Final = 100
"""Messages after which it is certain enough: every agent's first turn has a size within them.

Pieces of a response that is streamed do not count, of which a turn may have thousands.
"""

_NAMED: Final = 3
"""Types that the report names."""

_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,63}", re.ASCII)
"""What a type looks like. Other texts may be of a user, and are not repeated."""

_PIECES: Final = re.compile(r"response\.|chat\.completion\.chunk|.*delta", re.ASCII | re.IGNORECASE)
"""Types of pieces of a stream, whose size comes with the last of them."""

_REASONS: Final = tuple(
    (re.compile(types), reason) for each in ADAPTERS for types, reason in each.without_size
)
"""What is known of kinds of messages without a size, by how their types begin."""


class DerivableCheck:
    """Looks at a publisher's messages, up to a `limit`, until one is of use."""

    def __init__(self, limit: int | None = LOOKED_AT) -> None:
        self._limit = limit
        self._count = self._whole = 0
        self._types: dict[str, None] = {}
        self._reason: str | None = None
        self.is_over = False
        """Whether there is nothing to look at any more."""

    def look(self, body: Mapping[str, object] | bytes) -> str | None:
        """Take a message into account; return what to report, once and if at all."""
        parsed = json_codec.decode_fast(body) if isinstance(body, bytes) else body
        if isinstance(parsed, DeadLetter):
            return None  # reported as what it is
        message = cast("dict[str, Any]", parsed if isinstance(parsed, dict) else dict(parsed))
        normal = normalise(message, InputMessage(b""))
        if normal is not None and any(map(_is_of_use, normal.signals)):
            self.is_over = True
            return None
        self._count += 1
        kind = text(message, "type") or text(message, "method") or text(message, "object") or ""
        self._note(kind)
        if _PIECES.match(kind) is None:
            self._whole += 1
        return self.end() if self._whole == self._limit else None

    def _note(self, kind: str) -> None:
        if len(self._types) <= _NAMED:
            self._types[kind if _TYPE.fullmatch(kind) else "unknown"] = None
        if self._reason is None:
            fitting = (reason for begin, reason in _REASONS if begin.match(kind))
            self._reason = next(fitting, None)

    def end(self) -> str | None:
        """Return what to report when no more messages come; None where there is nothing to say."""
        if self.is_over or self._count == 0:
            return None
        self.is_over = True
        if self._count == 1:
            subject, verb = "the only message", "gives no size and no compaction"
        else:
            subject = f"none of the first {self._count:,} messages"
            verb = "gives a size or a compaction"
        return f"{subject} {verb}: {self._reason or self._unread_types()}"

    def _unread_types(self) -> str:
        names = [*self._types][:_NAMED]
        more = ", …" if len(self._types) > _NAMED else ""
        return (
            f"no rule reads messages of their types ({', '.join(names)}{more}); publish messages "
            f"with a `usage`, as {document('LIBRARY.md')} lists them"
        )


def _is_of_use(signal: Signal) -> bool:
    """Return whether a signal is more than facts of a session or the end of a turn."""
    if isinstance(signal, Response):
        return signal.usage is not None or signal.boundary is not None or bool(signal.edits)
    return not isinstance(signal, SessionFacts | TurnEnded)
