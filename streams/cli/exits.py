"""Exit codes of all commands: a closed table, by what a supervisor should do.

`docs/RUNBOOK.md` has the same table; a test compares the two. A code never changes its meaning.
"""

import traceback
from enum import IntEnum
from typing import Self

from contextgauge.errors import (
    ConfigError,
    DeadLetterFlood,
    PositionError,
    RetryError,
    VersionError,
)
from streams.ports import UnreadableBatchError

_SIGNALLED = 128
"""A command that signal n ended exits with 128 + n, as in a shell."""


class Exit(IntEnum):
    """The codes. A restart helps after STOPPED (perhaps), TIME_LIMIT, INTERNAL and AWAY only."""

    DONE = 0, "Done, or stopped as requested."
    STOPPED = (
        1,
        (
            "It stopped, and the message says why; some of what was requested does not exist or "
            "cannot be read; or `doctor` found an error."
        ),
    )
    WRONG = 2, "Wrong arguments or settings, a topic that is missing or has other partitions."
    VERSION = 3, "Something stored has a version that this build cannot read."
    POSITION = 4, "A stored position is not among what the log still has."
    FLOOD = 5, "More than half of the last messages were dead letters."
    TIME_LIMIT = 6, "It did not stop in time and was ended by force."
    DIFFERENT = 7, "The views differ from the log."
    INTERNAL = 70, "An error in the program itself; the message shows where."
    AWAY = 75, "Kafka or Redis is away, and the command does not wait for it."

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Make a member of the table: its code is its value."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


def by_signal(number: int) -> int:
    """Return the exit code of a command that a signal ended."""
    return _SIGNALLED + number


_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (ConfigError, Exit.WRONG),
    (VersionError, Exit.VERSION),
    (PositionError, Exit.POSITION),
    (DeadLetterFlood, Exit.FLOOD),
    (RetryError, Exit.AWAY),
)

_TITLES: dict[Exit, str] = {
    Exit.VERSION: "An unknown version",
    Exit.POSITION: "A position is out of range",
    Exit.FLOOD: "Dead letters",
}
"""Sections of docs/RUNBOOK.md, for what a message cannot explain."""


def code_of(error: BaseException) -> Exit:
    """Return the exit code for one of the project's errors."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.STOPPED)


def runbook_title(error: BaseException) -> str | None:
    """Return the section of docs/RUNBOOK.md with the remedy; None: the message has it."""
    if isinstance(error, UnreadableBatchError):
        return "A batch cannot be read"
    return _TITLES.get(code_of(error))


def where(error: BaseException) -> str:
    """Return where an unexpected error happened: types and frames, those of its causes first.

    Its own text is omitted: it may quote a message.
    """
    errors: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        frames = "".join(traceback.format_tb(cause.__traceback__))
        errors.insert(0, f"{frames}{type(cause).__module__}.{type(cause).__qualname__}")
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(errors)
