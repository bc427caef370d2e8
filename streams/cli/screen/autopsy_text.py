"""What `contextgauge autopsy` prints: what was lost, with its evidence, and the comparisons."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from contextgauge.compaction.carried.failure_lines import reasons_in
from streams.cli.screen.figures import count, safe
from streams.cli.screen.output import cell, out, say, table_width
from streams.cli.screen.tables import Cells, fitted, plain_table
from streams.core.autopsy.autopsy import BoundaryFindings, ItemFinding, SessionAutopsy, totals
from streams.core.autopsy.consequences import CALLS, Consequences
from streams.core.autopsy.intervals import CaseShare, ShareComparison
from streams.core.autopsy.items import Item
from streams.core.autopsy.remains import VERDICTS

_KINDS: Final = {
    "turn": "user's turns",
    "request": "open requests",
    "decision": "decisions",
    "file": "files",
    "error": "errors",
}
_CONSEQUENCES: Final = {
    "files_read_again": "files read again",
    "failing_calls_repeated": "failing calls repeated",
    "turns_restated": "turns restated",
    "constraints_possibly_violated": "possible violations",
}
_SEQUELS: Final = {
    "files_read_again": "read again",
    "failing_calls_repeated": "failed again",
    "turns_restated": "restated",
    "constraints_possibly_violated": "maybe violated",
}
_COLOURS: Final = {"LOST": "red", "DEGRADED": "yellow", "PRESERVED": "green", "unknown": "dim"}

_PARTS: Final = 3
"""Names of a path's end in a table."""

_EXCERPT: Final = 56
_LACKS: Final = 36
"""Characters of an item, and of what is missing of it, in a table; `--json` has the whole."""

_SHOWN: Final = 20
"""Lost and degraded items of a boundary in a table."""

_ID: Final = 13
"""Characters of an id in a table: of a longer one, as a UUID, the end."""

_GONE: Final = frozenset({"LOST", "DEGRADED"})
_LEAST: Final = 16
"""Characters that are left of a column where the terminal is narrow."""


class Autopsied(NamedTuple):
    """A session of a file."""

    session_id: str
    path: str
    result: SessionAutopsy


def all_of(sessions: Sequence[Autopsied]) -> tuple[list[ItemFinding], Consequences]:
    """Return the findings and comparisons of all sessions together."""
    findings: list[ItemFinding] = []
    followed = Consequences()
    for session in sessions:
        followed = followed.plus(session.result.consequences)
        for boundary in session.result.boundaries:
            findings += boundary.findings
    return findings, followed


def show(sessions: Sequence[Autopsied]) -> None:
    """Print what boundaries lost, totals, and what followed them."""
    shown = [each for each in sessions if each.result.boundaries or each.result.unseen]
    for session in shown:
        say(f"{safe(session.session_id)}  {safe(session.path)}", "bold", to=out)
        for number, boundary in enumerate(session.result.boundaries, 1):
            _show_boundary(number, boundary)
        if session.result.unseen:
            say(
                f"  {count(session.result.unseen, 'compaction')} without a summary that can be "
                "read, or without what was before it: unknown",
                to=out,
            )
    findings, followed = all_of(shown)
    boundaries = sum(len(each.result.boundaries) for each in shown)
    if not boundaries:
        say("no compaction with a summary that can be read", to=out)
        return
    say("", to=out)
    say(f"{count(boundaries, 'compaction')}, by comparison of characters (~)", to=out)
    table = plain_table("", *VERDICTS, right=VERDICTS)
    for kind, verdicts in totals(findings).items():
        table.add_row(cell(_KINDS[kind]), *(cell(f"{verdicts[each]:,}") for each in VERDICTS))
    out.print(table)
    say("", to=out)
    say(f"in the first {CALLS} calls after a boundary, and without one", to=out)
    wrapped = ("after", "without", "change", "outcome")
    table = plain_table("", *wrapped, wrap=wrapped)
    for name, compared in followed._asdict().items():
        table.add_row(
            cell(_CONSEQUENCES[name]),
            cell(_share_words(compared.after)),
            cell(_share_words(compared.control)),
            cell(_difference_words(compared)),
            cell(compared.outcome()),
        )
    out.print(table)


def _show_boundary(number: int, boundary: BoundaryFindings) -> None:
    counts = totals(boundary.findings)
    words = ", ".join(
        f"{n:,} {verdict}"
        for verdict in VERDICTS
        if (n := sum(verdicts[verdict] for verdicts in counts.values()))
    )
    say(
        f"  boundary {number}  summary {safe(_short(boundary.summary_id))}  "
        f"{words or 'nothing to judge'}",
        to=out,
    )
    if not boundary.is_readable:
        say(
            "    what the model sees after it is not all in the file, as text: what is not found "
            "is unknown",
            to=out,
        )
    if then := _then(boundary.findings):
        say(f"    then {then}", to=out)
    gone = [each for each in boundary.findings if each.trace.verdict in _GONE]
    gone.sort(key=lambda each: not each.sequels)  # first what had consequences
    if gone:
        _show_gone(gone[:_SHOWN])
    if len(gone) > _SHOWN:
        say(f"    and {len(gone) - _SHOWN:,} more: --json has them", to=out)


def _then(findings: Sequence[ItemFinding]) -> str:
    """Return what followed of items, and of how many that were lost or degraded."""
    followed = [(own.consequence, each.trace.verdict) for each in findings for own in each.sequels]
    if not followed:
        return ""
    counts = Counter(name for name, _ in followed)
    words = ", ".join(f"{number:,} {_SEQUELS[name]}" for name, number in counts.items())
    gone = sum(verdict in _GONE for _, verdict in followed)
    return f"{words}: {gone:,} of these were LOST or DEGRADED"


def _show_gone(findings: Sequence[ItemFinding]) -> None:
    verdicts = [
        cell(f"    {each.trace.verdict}", _COLOURS[each.trace.verdict]) for each in findings
    ]
    missing = [_line("; ".join(each.trace.missing[:1]), _LACKS) for each in findings]
    then = [
        ", ".join(f"{_SEQUELS[own.consequence]} {_short(own.message_id)}" for own in each.sequels)
        for each in findings
    ]
    columns = {
        "    verdict": [Cells(verdicts)],
        "item": [Cells([cell(each.item.kind) for each in findings])],
        "text": [Cells([cell(_excerpt(each.item)) for each in findings], _LEAST)],
        "was in": [Cells([cell(_short(each.item.message_ids[-1]), "dim") for each in findings])],
    }
    for name, texts in (("lacks", missing), ("then", then)):
        if any(texts):
            columns[name] = [Cells([cell(each) for each in texts], _LEAST)]
    out.print(fitted(columns, ("was in",), table_width(), cut=("text", "lacks", "then")))


def _excerpt(item: Item) -> str:
    """Return an item in a line: of a path the end, of a failure what says more than a status."""
    if item.kind == "file":
        parts = item.text.replace("\\", "/").split("/")
        return item.text if len(parts) <= _PARTS else "/".join(["…", *parts[-_PARTS:]])
    reasons = reasons_in(item.text) if item.kind == "error" else []
    return _line(reasons[0] if reasons else item.text, _EXCERPT)


def _line(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _short(message_id: str) -> str:
    return message_id if len(message_id) <= _ID else f"…{message_id[1 - _ID :]}"


def _share_words(share: CaseShare) -> str:
    if not share.n:
        return "unknown (none)"
    low, high = share.interval()
    return f"{share.value:.0%} of {share.n:,} ({low:.0%} to {high:.0%})"


def _difference_words(compared: ShareComparison) -> str | None:
    difference = compared.difference()
    if difference is None:
        return None
    points = 100 * (compared.after.value - compared.control.value)
    low, high = (100 * each for each in difference)
    return f"{points:+.0f} points ({low:+.0f} to {high:+.0f})"
