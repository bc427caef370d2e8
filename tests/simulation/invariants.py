"""What must be so after every run, read from the log and compared with the stores."""

from collections import Counter

from contextgauge.compaction.engine.plan import PlanRejectedError
from contextgauge.partitioner import key_bytes
from contextgauge.records import Json
from schemas.commands import (
    CancelRequested,
    CommandAccepted,
    CommandCalled,
    CommandFinished,
    CommandPlanned,
    CompactRequested,
)
from streams.core.conversation.fold import ConversationFold
from streams.flow.control.commands.message_tail import lines_of
from streams.flow.derive.deriver import Deriver, input_message
from tests.flow.derive_kit import RULES
from tests.simulation.control import MESSAGES, Control
from tests.simulation.view_server import run_at_once

Line = dict[str, Json]


def violations(world: Control) -> list[str]:
    """Return all that is wrong after a run."""
    wrong = _outcomes(world)
    records = world.records(MESSAGES)
    deriver = Deriver(RULES)
    derived = [
        (each.key, record)
        for each in records
        for record in deriver.derive(input_message(each)).records
    ]
    for session in world.sessions:
        wrong += _conversation(world, session)
        kinds = Counter(each.kind for key, each in derived if key == key_bytes(session))
        own = sum(
            1 for _, line in lines_of(records, session) if line.get("subtype") == "compact_boundary"
        )
        if kinds["compact_boundary"] != own:
            wrong.append(f"{session}: {own} boundaries became {kinds['compact_boundary']} records")
        announced = {
            (each.command_id, each.attempt)
            for each in world.entries()
            if isinstance(each, CommandCalled) and each.session_id == session
        }
        # The agent goes on meanwhile, which ends no attempt (R14). Its own compaction and a reset
        # end one, and the next sign of life begins it again.
        ended = kinds["context_reset"] + sum(
            1
            for _, line in lines_of(records, session)
            if line.get("subtype") == "compact_boundary"
            and "contextgauge" not in str(line["compact_metadata"])
        )
        if kinds["compaction_start"] > len(announced) + ended:
            wrong.append(
                f"{session}: {kinds['compaction_start']} starts of {len(announced)} attempts"
            )
    ids = Counter(each.id for _, each in derived)
    wrong += [f"the record {each} came twice" for each, count in ids.items() if count > 1]
    return wrong


def _outcomes(world: Control) -> list[str]:  # noqa: C901 -- one case for each kind of entry
    wrong, done, accepted = [], dict[str, CommandFinished](), set[str]()
    cancelled, requested = set[str](), set[str]()
    attempts: Counter[tuple[str, int]] = Counter()
    for data in world.entries():
        if isinstance(data, CompactRequested):
            requested.add(data.command_id)
        elif isinstance(data, CancelRequested):
            if data.command_id in requested:
                cancelled.add(data.command_id)
        elif isinstance(data, CommandAccepted | CommandPlanned | CommandCalled | CommandFinished):
            name = data.command_id
            if name in done:
                wrong.append(f"{name}: {data.kind} after its outcome {done[name].outcome}")
            if isinstance(data, CommandAccepted):
                if name in accepted:
                    wrong.append(f"{name}: accepted twice")
                accepted.add(name)
            elif isinstance(data, CommandPlanned):
                attempts[name, data.attempt] += 1
            elif isinstance(data, CommandFinished):
                if name in cancelled and data.outcome == "completed":
                    wrong.append(f"{name}: completed, although it was cancelled before")
                done[name] = data
    wrong += [f"{name}: no outcome" for name in requested - done.keys()]
    wrong += [f"{each}: planned {count} times" for each, count in attempts.items() if count > 1]
    return wrong


def _conversation(  # noqa: C901, PLR0912 -- one branch for each thing that may be wrong
    world: Control, session: str
) -> list[str]:
    wrong: list[str] = []
    fold, statuses, uuids, ids = ConversationFold(), [], [], list[str]()
    for offset, line in lines_of(world.records(MESSAGES), session):
        is_own = line.get("subtype") == "compact_boundary" and "contextgauge" in str(
            line.get("compact_metadata")
        )
        if is_own:
            uuids.append(line["uuid"])
        try:
            fold.add(line, offset, strict=is_own)
        except PlanRejectedError as error:
            wrong.append(f"{session}: the boundary at {offset} does not fit: {error}")
            fold.add(line, offset)
        if line.get("subtype") == "status":
            statuses.append(line.get("status"))
        ids.append(str(line["uuid"]))
    completed = [
        each.boundary_uuid
        for each in world.entries()
        if isinstance(each, CommandFinished)
        and each.session_id == session
        and each.outcome == "completed"
    ]
    if uuids != completed:
        wrong.append(f"{session}: boundaries {uuids}, completed {completed}")
    if statuses and statuses[-1] == "compacting":
        wrong.append(f"{session}: an attempt was announced, and never ended")
    wrong += [f"{each} was published twice" for each, count in Counter(ids).items() if count > 1]
    history = fold.result.history
    there = {each.id for each in (*history.active, *history.archived)}
    said = {
        str(line["uuid"])
        for name, line in world.published
        if name == session and "message" in line and not line.get("isCompactSummary")
    }
    if said - there:
        wrong.append(f"{session}: in neither archive nor active: {sorted(said - there)}")
    stored = run_at_once(world.kept.conversation, session)
    if stored is None:
        if said:
            wrong.append(f"{session}: no conversation is kept")
    elif list(stored.history.active) != list(history.active):
        wrong.append(f"{session}: the store's conversation is not the fold of the log")
    view = run_at_once(world.views.control_view, session)
    seen = {each.command_id: each.outcome for each in view.commands} if view else {}
    for data in world.entries():
        if not isinstance(data, CommandFinished) or data.session_id != session:
            continue
        if seen.get(data.command_id, data.outcome) != data.outcome:
            wrong.append(f"{data.command_id}: the view says {seen[data.command_id]}")
    return wrong
