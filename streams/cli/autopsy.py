"""`contextgauge autopsy`: what compactions of transcripts lost, and what followed."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, NamedTuple

import typer

from contextgauge.normalise import session_of
from contextgauge.records import Json
from schemas.messages import DeadLetter
from streams import codec
from streams.cli.exits import Exit
from streams.cli.inputs import own_sources, sources_of
from streams.cli.screen.figures import count, safe
from streams.cli.screen.lines import quiet_pipe, write_error
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import cell, out, reading, say, write_json
from streams.cli.screen.sessions_table import NOTHING_HERE
from streams.cli.screen.tables import plain_table
from streams.core.autopsy.autopsy import (
    BoundaryFindings,
    Finding,
    SessionAutopsy,
    SessionReading,
    totals,
)
from streams.core.autopsy.consequences import CALLS, Consequences
from streams.core.autopsy.intervals import Comparison, Interval, Share
from streams.core.autopsy.remains import VERDICTS
from streams.edge.files import reading as files
from streams.edge.files.formats import reason_of
from streams.edge.files.watch import Failed, InputSource

_KINDS: Final = {
    "turn": "user's turns",
    "request": "open requests",
    "decision": "decisions",
    "file": "files",
    "error": "errors",
}
_CONSEQUENCES: Final = {
    "files_read_again": "files read that were known before",
    "failing_calls_repeated": "failures of calls that failed before",
    "turns_restated": "turns that repeat an earlier one",
}
_COLOURS: Final = {"LOST": "red", "DEGRADED": "yellow", "PRESERVED": "green", "unknown": "dim"}

_EXCERPT: Final = 72
"""Characters of an item in a table; `--json` has the whole."""

_SHOWN: Final = 20
"""Lost and degraded items of a boundary in a table."""


class _Autopsied(NamedTuple):
    """A session of a file."""

    session_id: str
    path: str
    result: SessionAutopsy


def autopsy(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts or folders. Default: the sessions that runtimes store on this "
            "machine.",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what compactions kept and lost, and what agents did again after them.

    Each of the user's turns, decisions, files and errors before a boundary is PRESERVED, DEGRADED
    (a part of it is left) or LOST in what the model sees after it; unknown where that is not in the
    file. The judgement compares characters and knows no meaning. What was done again is compared
    with the same sessions without a boundary.
    """
    is_whole = True

    def failed(path: str, error: OSError) -> None:
        nonlocal is_whole
        is_whole = False
        write_error(f"{safe(path)}: {reason_of(error)}\n")

    sources = sources_of(paths) if paths else own_sources(failed)
    if not sources and not paths:
        say(NOTHING_HERE)
        return
    with reading():
        known: set[str] = set()
        sessions = [
            _Autopsied(session_id, source.name, each.autopsy(known))
            for source in sources
            for session_id, each in _sessions(source, failed)
        ]
    with quiet_pipe():
        if as_json:
            write_json(_document(sessions))
        else:
            _show(sessions)
    if not is_whole:
        raise typer.Exit(Exit.STOPPED)


def _sessions(source: InputSource, failed: Failed) -> Iterator[tuple[str, SessionReading]]:
    """Yield the sessions of a source."""
    sessions: dict[str, SessionReading] = {}
    for block in files.read([source], failed=failed):
        for line in block:
            body = codec.decode(line.value)
            if isinstance(body, DeadLetter):
                continue
            session = session_of(body, line.session_hint)
            if session is not None:
                sessions.setdefault(session, SessionReading()).add(body)
    yield from sessions.items()


def _all(sessions: Sequence[_Autopsied]) -> tuple[list[Finding], Consequences]:
    findings: list[Finding] = []
    followed = Consequences()
    for session in sessions:
        followed = followed.plus(session.result.consequences)
        for boundary in session.result.boundaries:
            findings += boundary.findings
    return findings, followed


def _document(sessions: Sequence[_Autopsied]) -> Json:
    findings, followed = _all(sessions)
    counts: dict[str, Json] = {
        kind: {str(each): number for each, number in verdicts.items()}
        for kind, verdicts in totals(findings).items()
    }
    compared: dict[str, Json] = {
        name: _comparison(each) for name, each in followed._asdict().items()
    }
    return {
        "sessions": [
            {
                "session_id": each.session_id,
                "path": each.path,
                "unseen_boundaries": each.result.unseen,
                "boundaries": [_boundary(boundary) for boundary in each.result.boundaries],
            }
            for each in sessions
            if each.result.boundaries or each.result.unseen
        ],
        "totals": counts,
        "calls_after_a_point": CALLS,
        "consequences": compared,
    }


def _boundary(boundary: BoundaryFindings) -> Json:
    return {
        "summary_id": boundary.summary_id,
        "is_readable": boundary.is_readable,
        "items": [
            {
                "kind": item.kind,
                "text": item.text,
                "message_ids": list(item.message_ids),
                "verdict": trace.verdict,
                "found_in": list(trace.message_ids),
            }
            for item, trace in boundary.findings
        ],
    }


def _comparison(compared: Comparison) -> Json:
    difference = compared.difference()
    return {
        "after": _share(compared.after),
        "control": _share(compared.control),
        "difference": None if difference is None else _interval(difference),
        "outcome": compared.outcome(),
    }


def _share(share: Share) -> Json:
    return {
        "hits": share.hits,
        "n": share.n,
        "share": share.value if share.n else None,
        "interval": _interval(share.interval()) if share.n else None,
    }


def _interval(interval: Interval) -> Json:
    return [interval.low, interval.high]


def _show(sessions: Sequence[_Autopsied]) -> None:
    shown = [each for each in sessions if each.result.boundaries or each.result.unseen]
    for session in shown:
        say(f"{safe(session.session_id)}  {safe(session.path)}", "bold", to=out)
        for number, boundary in enumerate(session.result.boundaries, 1):
            _show_boundary(number, boundary)
        if session.result.unseen:
            say(
                f"  {count(session.result.unseen, 'compaction')} without a summary that can be "
                "read: unknown",
                to=out,
            )
    findings, followed = _all(shown)
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
    table = plain_table("", "after", "without", "difference", "")
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
    say(f"  boundary {number}  {safe(boundary.summary_id)}  {words or 'nothing to judge'}", to=out)
    gone = [each for each in boundary.findings if each.trace.verdict in {"LOST", "DEGRADED"}]
    if gone:
        table = plain_table("", "", "", "")
        table.show_header = False
        for item, trace in gone[:_SHOWN]:
            text = " ".join(item.text.split())
            text = text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
            table.add_row(
                cell(f"    {trace.verdict}", _COLOURS[trace.verdict]),
                cell(item.kind),
                cell(text),
                cell(item.message_ids[-1], "dim"),
            )
        out.print(table)
    if len(gone) > _SHOWN:
        say(f"    and {len(gone) - _SHOWN:,} more: --json has them", to=out)


def _share_words(share: Share) -> str:
    if not share.n:
        return "unknown (none)"
    low, high = share.interval()
    return f"{share.value:.0%} of {share.n:,} ({low:.0%} to {high:.0%})"


def _difference_words(compared: Comparison) -> str | None:
    difference = compared.difference()
    if difference is None:
        return None
    points = 100 * (compared.after.value - compared.control.value)
    low, high = (100 * each for each in difference)
    return f"{points:+.0f} points ({low:+.0f} to {high:+.0f})"
