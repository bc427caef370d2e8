"""`contextgauge autopsy`: what compactions of transcripts lost, and what followed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from contextgauge.errors import ConfigError, StopError
from contextgauge.normalise import session_of
from schemas.messages import DeadLetter
from schemas.records import Json
from streams import codec
from streams.cli.exits import Exit
from streams.cli.inputs import LeftOut, is_path, named_or_own
from streams.cli.only_session import only_id
from streams.cli.publish.rejected import RejectedLines
from streams.cli.screen.autopsy_text import Autopsied, all_of, show
from streams.cli.screen.figures import first_of, safe
from streams.cli.screen.lines import quiet_pipe
from streams.cli.screen.options import AsJson, OwnPaths
from streams.cli.screen.output import reading, say, write_json
from streams.cli.screen.sessions_table import NOTHING_HERE
from streams.cli.transcripts import no_session
from streams.core.autopsy.autopsy import AutopsyReading, BoundaryFindings, totals
from streams.core.autopsy.consequences import CALLS
from streams.core.autopsy.intervals import CaseShare, Interval, ShareComparison
from streams.edge.files import reading as files
from streams.edge.files.watch import Failed, InputSource


def autopsy(
    paths: OwnPaths = None,
    *,
    wanted: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="ID", help="Only this session: its ID or a unique prefix of it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what compactions kept and lost, and what agents did again after them.

    Each of the user's turns, decisions, files and errors before a boundary is PRESERVED, DEGRADED
    (a part of it is left) or LOST in what the model sees after it; unknown where that is not in the
    file. The judgement compares characters and knows no meaning. What was done again is compared
    with the same sessions without a boundary.
    """
    left_out = LeftOut()
    for each in paths or ():
        if not is_path(each):
            raise ConfigError(
                f"{safe(each)}: no such file. A session's ID goes with an option: "
                f"`contextgauge autopsy --session {safe(each)}`"
            )
    sources = named_or_own(paths or (), left_out)
    if not sources and not paths:
        say(NOTHING_HERE)
        return
    with reading():
        known: defaultdict[str, set[str]] = defaultdict(set)
        lines = _Lines()
        sessions = [
            # Of several that begin as wanted one is chosen: what is in the others is not known.
            Autopsied(session_id, source.name, each.autopsy(known[session_id if wanted else ""]))
            for source in sources
            for session_id, each in _sessions(source, wanted, left_out, lines)
        ]
        lines.report(first_of([source.name for source in sources]))
        chosen = _chosen({each.session_id for each in sessions}, wanted)
        sessions = [each for each in sessions if each.session_id in chosen]
    with quiet_pipe():
        if as_json:
            write_json(_document(sessions))
        else:
            show(sessions)
    if left_out.count:
        raise typer.Exit(Exit.STOPPED)


class _Lines:
    """Counts lines, and reports those that cannot be read."""

    def __init__(self) -> None:
        self.right = 0
        self.rejected = RejectedLines("read", is_any_right=lambda: self.right > 0)

    def report(self, name: str) -> None:
        """Report how many were rejected. Raises StopError where none was right."""
        if not self.right:
            raise self.rejected.none_right(name) if self.rejected.total else no_session(name, 0)
        self.rejected.report_all()


def _sessions(
    source: InputSource, wanted: str | None, failed: Failed, lines: _Lines
) -> Iterator[tuple[str, AutopsyReading]]:
    """Yield the sessions of a source that begin as wanted, and forget each."""
    sessions: dict[str, AutopsyReading] = {}
    for block in files.read([source], failed=failed):
        for line in block:
            body = codec.decode(line.value)
            if isinstance(body, DeadLetter):
                lines.rejected(line, body)
                continue
            lines.right += 1
            session = session_of(body, line.session_hint)
            if session is not None and session.startswith(wanted or ""):
                if session not in sessions:
                    sessions[session] = AutopsyReading()
                sessions[session].add(body)
    while sessions:
        session = next(iter(sessions))
        yield session, sessions.pop(session)


def _chosen(sessions: set[str], wanted: str | None) -> set[str]:
    """Return the sessions to show. Raises StopError where not one begins as wanted."""
    if wanted is None:
        return sessions
    session = only_id(wanted, sessions)
    if session is None:
        raise StopError(
            f"no session begins with {safe(wanted)}: `contextgauge sessions` lists those of this "
            "machine, `contextgauge sessions PATH` those of a path"
        )
    return {session}


def _document(sessions: Sequence[Autopsied]) -> Json:
    findings, followed = all_of(sessions)
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
                "missing": list(trace.missing),
                "followed_by": [
                    {"consequence": each.consequence, "message_id": each.message_id}
                    for each in sequels
                ],
            }
            for item, trace, sequels in boundary.findings
        ],
    }


def _comparison(compared: ShareComparison) -> Json:
    difference = compared.difference()
    return {
        "after": _share(compared.after),
        "control": _share(compared.control),
        "difference": None if difference is None else _interval(difference),
        "outcome": compared.outcome(),
    }


def _share(share: CaseShare) -> Json:
    return {
        "hits": share.hits,
        "n": share.n,
        "share": share.value if share.n else None,
        "interval": _interval(share.interval()) if share.n else None,
    }


def _interval(interval: Interval) -> Json:
    return [interval.low, interval.high]
