"""The lines of a session's transcript, with the places of its compactions: for its checkpoints."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from contextgauge.normalise import session_of
from contextgauge.normalise.fork_form import ForkForm
from contextgauge.normalise.runtimes import FORKS
from schemas.messages import DeadLetter
from schemas.records import MAIN_CHAIN, CompactBoundary, Record
from streams import codec, wiring
from streams.cli.inputs import session_folder, sources_of
from streams.core.conversation.checkpoints import SessionCheckpoint, checkpoints
from streams.edge.files import reading as files
from streams.edge.files.names import name_of
from streams.edge.files.watch import InputSource
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import derive_line


class SessionLines(NamedTuple):
    """A session's own lines; `boundaries` are the places of those that end its compactions.

    `form` is how its runtime's sessions are forked, None where that is not known. `subagents` are
    the other transcripts of the session. `path` is that of its own.
    """

    session_id: str
    lines: Sequence[dict[str, Any]]
    boundaries: Sequence[int]
    form: ForkForm | None
    subagents: int
    path: Path | None

    def checkpoints(self) -> list[SessionCheckpoint]:
        """Return its checkpoints, by number."""
        return checkpoints(self.lines, self.boundaries, self.form)


def lines_of_session(path: str, session_id: str, runtime: str | None) -> SessionLines:
    """Return the lines of a session of a path. Raises ConfigError for what cannot be read."""
    sources = sources_of([session_folder(path) or path])
    own = [each for each in sources if each.path is None or name_of(str(each.path)).is_main]
    lines: list[dict[str, Any]] = []
    boundaries: list[int] = []
    for body, records in _derived(own or sources, session_id):
        lines.append(body)
        boundaries += [len(lines) - 1] * sum(_ends_compaction(each, session_id) for each in records)
    first = next((each.path for each in own if each.path is not None), None)
    form = None if runtime is None else FORKS.get(runtime)
    return SessionLines(session_id, lines, boundaries, form, len(sources) - len(own), first)


def _derived(
    sources: Sequence[InputSource], session_id: str
) -> Iterable[tuple[dict[str, Any], Sequence[Record]]]:
    """Yield each line of a session with the records that it gives."""
    settings = wiring.settings()
    limit_bytes = settings.message_limit_bytes
    deriver = Deriver(wiring.rules(settings), limit_bytes=limit_bytes, stored=lambda _: None)
    for block in files.read(sources):
        for line in block:
            records = derive_line(deriver, line, limit_bytes).records
            body = codec.decode(line.value)
            if not isinstance(body, DeadLetter) and (
                session_of(body, line.session_hint) == session_id
            ):
                yield body, records
        deriver.end_steps()


def _ends_compaction(record: Record, session_id: str) -> bool:
    data = record.data
    return (
        isinstance(data, CompactBoundary)
        and data.chain == MAIN_CHAIN
        and data.session_id == session_id
    )
