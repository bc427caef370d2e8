"""Lines that cannot be sent or derived from: the first are reported one by one, then counted."""

from collections import Counter
from collections.abc import Callable
from typing import Literal

from contextgauge.containers import Line
from contextgauge.errors import StopError
from schemas.messages import DeadLetter
from streams.cli.screen.figures import safe
from streams.cli.screen.lines import write_error

_REPORTED = 20
"""Enough to see what is wrong with some lines."""

_REPORTED_OF_ANOTHER_KIND = 3
"""Enough of a file in which no line is right: it is something other than a transcript."""

_NO_SESSION = {
    "sent": ", or pass one with --session (a second time also with --again)",
    "derived": ", or pass one with `contextgauge replay --session`",
    "read": "",
}


class RejectedLines:
    """Reports the first rejected lines, and counts all by reason.

    `verb` is what could not be done with them. `remedy` follows on a line without a session. While
    `is_any_right` returns False for the lines so far, very few are reported. `to` gets the reports.
    """

    def __init__(
        self,
        verb: Literal["sent", "derived", "read"] = "sent",
        remedy: str | None = None,
        *,
        is_any_right: Callable[[], bool] = lambda: True,
        to: Callable[[str], object] = write_error,
    ) -> None:
        self._write = to
        self._verb = verb
        self._is_any_right = is_any_right
        self._reported = 0
        self._held: list[str] = []
        self._remedy = _NO_SESSION[verb] if remedy is None else remedy
        self._reasons: Counter[str] = Counter()

    def __call__(self, line: Line, letter: DeadLetter) -> None:
        """Count a line, and report it if it is one of the first."""
        self._reasons[letter.reason] += 1
        total = self.total
        if total <= _REPORTED:
            self._held.append(safe(f"{line.file}:{line.number}: {self._why(letter)}"))
        elif total == _REPORTED + 1:
            self._held.append(f"more lines could not be {self._verb}: they are counted at the end")
        self._report()

    def _why(self, letter: DeadLetter) -> str:
        if letter.reason == "not_json":
            return "not JSON"  # the parser's position is one within the line
        remedy = self._remedy if letter.reason == "no_session" else ""
        return f"{letter.reason}: {letter.detail}{remedy}"

    def _report(self) -> None:
        """Report what is held back, up to the limit of now."""
        limit = _REPORTED + 1 if self._is_any_right() else _REPORTED_OF_ANOTHER_KIND
        now = self._held[: max(0, limit - self._reported)]
        del self._held[: len(now)]
        self._reported += len(now)
        for text in now:
            self._write(f"{text}\n")

    @property
    def total(self) -> int:
        """How many lines were rejected."""
        return self._reasons.total()

    def only(self, reason: str) -> bool:
        """Return whether this is the reason of all of them."""
        return self._reasons.keys() == {reason}

    def none_right(self, name: str) -> StopError:
        """Return the error of an input, all of whose lines were rejected."""
        line = f"{name}: no line (of {self.total:,})"
        if self.only("no_session"):
            return StopError(f"{line} names a session")
        return StopError(f"{line} could be {self._verb}: this does not look like a transcript")

    def report_all(self) -> None:
        """Report what is held back, if any line was right, and how many were rejected."""
        self._report()
        total, shown = self.total, min(self._reported, _REPORTED)
        if total:
            where = "see above"
            if shown < total:
                where = f"the first {shown} are above; {by_reason(self._reasons)}"
            self._write(f"{total:,} could not be {self._verb}: {where}\n")


def by_reason(reasons: Counter[str]) -> str:
    """Return how many lines were rejected for each reason: 50 no_session, 1 not_json."""
    return ", ".join(f"{lines:,} {reason}" for reason, lines in reasons.most_common())
