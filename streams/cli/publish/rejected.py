"""Lines that cannot be sent or derived from: the first are reported one by one, then counted."""

import sys
from collections import Counter
from typing import Literal

from contextgauge.containers import Line
from schemas.messages import DeadLetter
from streams.cli.screen.figures import safe

_REPORTED = 20
"""Enough to see what is wrong; a file of another kind would fill the screen with it."""

_NO_SESSION = {
    "sent": ", or pass one with --session (a second time also with --again)",
    "derived": ", or pass one with `contextgauge replay --session`",
}


class RejectedLines:
    """Reports the first rejected lines, and counts all by reason.

    `verb` is what could not be done with them: sent or derived. `remedy` follows on a line without
    a session.
    """

    def __init__(
        self, verb: Literal["sent", "derived"] = "sent", remedy: str | None = None
    ) -> None:
        self._verb = verb
        self._remedy = _NO_SESSION[verb] if remedy is None else remedy
        self._reasons: Counter[str] = Counter()

    def __call__(self, line: Line, letter: DeadLetter) -> None:
        """Count a line, and report it if it is one of the first."""
        self._reasons[letter.reason] += 1
        total = self.total
        if total <= _REPORTED:
            remedy = self._remedy if letter.reason == "no_session" else ""
            text = f"{line.file}:{line.number}: {letter.reason}: {letter.detail}{remedy}"
            sys.stderr.write(f"{safe(text)}\n")
        elif total == _REPORTED + 1:
            more = f"more lines could not be {self._verb}: they are counted at the end"
            sys.stderr.write(f"{more}\n")

    @property
    def total(self) -> int:
        """How many lines were rejected."""
        return self._reasons.total()

    def only(self, reason: str) -> bool:
        """Return whether this is the reason of all of them."""
        return self._reasons.keys() == {reason}

    def summary(self) -> list[str]:
        """Return a line for the end, or none."""
        total = self.total
        if not total:
            return []
        by_reason = ", ".join(
            f"{count:,} {reason}" for reason, count in self._reasons.most_common()
        )
        where = (
            f"the first {_REPORTED} are above; {by_reason}" if total > _REPORTED else "see above"
        )
        return [f"{total:,} could not be {self._verb}: {where}"]
