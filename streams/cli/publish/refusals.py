"""Lines that could not be sent: the first are told one by one, the others are counted."""

import sys
from collections import Counter

from contextgauge.containers import Line
from schemas.messages import DeadLetter
from streams.cli.screen.figures import safe

_TOLD = 20
"""Enough to see what is wrong; a file of another kind would fill the screen with it."""

_REMEDIES = {"no_session": ", or give one with --session (a second time also with --again)"}


def report(line: Line, letter: DeadLetter) -> None:
    """Tell of a malformed line on standard error: where it is, and what is wrong with it."""
    remedy = _REMEDIES.get(letter.reason, "")
    text = safe(f"{line.file}:{line.number}: {letter.reason}: {letter.detail}{remedy}")
    sys.stderr.write(f"{text}\n")


class Refusals:
    """Tells of the first malformed lines, and how many there were by reason."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def __call__(self, line: Line, letter: DeadLetter) -> None:
        """Take note of a line."""
        before = self.reasons.total()
        self.reasons[letter.reason] += 1
        if before < _TOLD:
            report(line, letter)
        elif before == _TOLD:
            sys.stderr.write("more lines could not be sent: they are counted at the end\n")

    def summary(self) -> list[str]:
        """Return what there is to say at the end."""
        total = self.reasons.total()
        if not total:
            return []
        by_reason = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
        where = "see above" if total <= _TOLD else f"the first {_TOLD} are above; {by_reason}"
        return [f"{total:,} could not be sent: {where}"]
