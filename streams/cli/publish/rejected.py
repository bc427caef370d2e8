"""Lines that cannot be sent or derived from: the first are reported one by one, then counted."""

import sys
from collections import Counter
from collections.abc import Mapping

from contextgauge.containers import Line
from schemas.messages import DeadLetter
from streams.cli.screen.figures import safe

_REPORTED = 20
"""Enough to see what is wrong; a file of another kind would fill the screen with it."""

_REMEDIES = {"no_session": ", or pass one with --session (a second time also with --again)"}


def report(line: Line, letter: DeadLetter, remedies: Mapping[str, str] = _REMEDIES) -> None:
    """Report a line on standard error: where it is, and what is wrong with it."""
    remedy = remedies.get(letter.reason, "")
    text = safe(f"{line.file}:{line.number}: {letter.reason}: {letter.detail}{remedy}")
    sys.stderr.write(f"{text}\n")


class RejectedLines:
    """Reports the first rejected lines, and counts all by reason."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()

    def __call__(self, line: Line, letter: DeadLetter) -> None:
        """Count a line, and report it if it is one of the first."""
        self._reasons[letter.reason] += 1
        total = self._reasons.total()
        if total <= _REPORTED:
            report(line, letter)
        elif total == _REPORTED + 1:
            sys.stderr.write("more lines could not be sent: they are counted at the end\n")

    def summary(self) -> list[str]:
        """Return a line for the end, or none."""
        total = self._reasons.total()
        if not total:
            return []
        by_reason = ", ".join(
            f"{count:,} {reason}" for reason, count in self._reasons.most_common()
        )
        where = (
            f"the first {_REPORTED} are above; {by_reason}" if total > _REPORTED else "see above"
        )
        return [f"{total:,} could not be sent: {where}"]
