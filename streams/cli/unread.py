"""Lines of newer versions whose figures are not read, in words."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from contextgauge.normalise.runtimes import RUNTIMES
from contextgauge.normalise.unread_lines import UnreadKind, UnreadLine
from streams.cli.screen.figures import count, safe

_LABELS: Final = {each.runtime: each.label for each in RUNTIMES if each.is_read}


def shown(counts: Mapping[UnreadKind, int]) -> list[str]:
    """Return a sentence for each type of line of a known runtime's version."""
    totals: Counter[tuple[str, str | None, UnreadLine]] = Counter()
    for kind, lines in counts.items():
        if kind.runtime in _LABELS:
            totals[_LABELS[kind.runtime], kind.version, kind.line] += lines
    return [
        safe(
            f"{count(lines, 'line')} of type {unread.type} of {label}"
            f"{'' if version is None else f' {version}'} "
            f"{'carries' if lines == 1 else 'carry'} {unread.figure} that this version does not "
            "read"
        )
        for (label, version, unread), lines in totals.items()
    ]
