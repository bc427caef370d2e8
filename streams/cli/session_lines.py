"""The lines of a session's transcript, with the places of its compactions: for its checkpoints."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from contextgauge.normalise import session_of
from contextgauge.normalise.fork_form import ForkForm
from contextgauge.normalise.runtimes import FORKS
from schemas.messages import DeadLetter
from schemas.records import MAIN_CHAIN, CompactBoundary, Record
from streams import codec, wiring
from streams.cli.inputs import sources_of
from streams.core.conversation.checkpoints import (
    BoundaryReport,
    SessionCheckpoint,
    checkpoints,
)
from streams.edge.files import reading as files
from streams.edge.files.names import name_of
from streams.edge.files.watch import InputSource
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import derive_line


class SessionLines(NamedTuple):
    """A session's own lines; `boundaries` are those that end its compactions, by their places.

    `form` is how its runtime's sessions are forked, None where that is not known. `subagents` are
    the other transcripts of the session, `paths` those with its own lines, in reading order.
    """

    session_id: str
    lines: Sequence[dict[str, Any]]
    boundaries: Sequence[tuple[int, BoundaryReport]]
    form: ForkForm | None
    subagents: int
    paths: Sequence[Path]

    @property
    def path(self) -> Path | None:
        """The transcript that it goes on in; None of subagents' alone."""
        return self.paths[-1] if self.paths else None

    def checkpoints(self) -> list[SessionCheckpoint]:
        """Return its checkpoints, one for each of its boundaries."""
        return checkpoints(self.lines, [at for at, _ in self.boundaries], self.form)


def lines_of_session(path: str, session_id: str, runtime: str | None) -> SessionLines:
    """Return the lines of a session of a path. Raises ConfigError for what cannot be read."""
    sources = sources_of([path])
    own = [each for each in sources if _is_main(each)]
    others = [each for each in sources if own and not _is_main(each)]
    lines: list[dict[str, Any]] = []
    boundaries: list[tuple[int, BoundaryReport]] = []
    paths: dict[Path, None] = {}
    for source, body, records in _derived(own or sources, session_id):
        if own and source.path is not None:
            paths[source.path] = None
        boundaries += [
            (len(lines), BoundaryReport(each.id, each.time_ms))
            for each in records
            if _ends_compaction(each, session_id)
        ]
        lines.append(body)
    form = None if runtime is None else FORKS.get(runtime)
    subagents = sum(_session_in(each) == session_id for each in others)
    return SessionLines(session_id, lines, boundaries, form, subagents, list(paths))


def _is_main(source: InputSource) -> bool:
    return source.path is None or name_of(str(source.path)).is_main


def _session_in(source: InputSource) -> str | None:
    """Return the session of a transcript, which its first line that names one is of."""
    for line in chain.from_iterable(files.read([source])):
        body = codec.decode(line.value)
        named = None if isinstance(body, DeadLetter) else session_of(body, line.session_hint)
        if named is not None:
            return named
    return None


def _derived(
    sources: Sequence[InputSource], session_id: str
) -> Iterable[tuple[InputSource, dict[str, Any], Sequence[Record]]]:
    """Yield each line of a session with the source that has it and the records that it gives."""
    settings = wiring.settings()
    limit_bytes = settings.message_limit_bytes
    deriver = Deriver(wiring.rules(settings), limit_bytes=limit_bytes, stored=lambda _: None)
    for source, block in ((each, block) for each in sources for block in files.read([each])):
        for line in block:
            records = derive_line(deriver, line, limit_bytes).records
            body = codec.decode(line.value)
            if not isinstance(body, DeadLetter) and (
                session_of(body, line.session_hint) == session_id
            ):
                yield source, body, records
        deriver.end_steps()


def _ends_compaction(record: Record, session_id: str) -> bool:
    data = record.data
    return (
        isinstance(data, CompactBoundary)
        and data.chain == MAIN_CHAIN
        and data.session_id == session_id
    )
