"""The session's state as it is stored: in parts, and read back as if never put away."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import Json, Record
from streams.core.errors import VersionError
from streams.core.known import KEPT, SLOTS
from streams.core.state import (
    SESSION_PART,
    STATE_VERSION,
    Chain,
    Session,
    pack,
    part_names,
    unpack,
)
from streams.core.transitions import start_of
from streams.edge import codec
from streams.flow.funnel import Funnel, Intake
from tests.core.given import (
    LARGE,
    MODEL,
    OTHER_MODEL,
    RULES,
    SESSION,
    START_MS,
    Body,
    Given,
    any_message,
    assistant,
    boundary,
    compacting,
    init,
    line,
    model_window,
    reset,
    result,
    session,
    side,
    status,
    succeeded,
    summary,
    user,
)
from tests.core.strategies import SESSIONS, Action, write


class Store:
    """What a changelog holds after compaction: the newest value of each part, as bytes."""

    def __init__(self) -> None:
        self.parts: dict[str, bytes] = {}

    def put(self, before: Session | None, after: Session) -> None:
        for name, part in pack(before, after).items():
            if part is None:
                del self.parts[name]
            else:
                self.parts[name] = codec.dumps(part)

    def get(self) -> Session:
        return unpack(SESSION, {name: codec.loads(part) for name, part in self.parts.items()})


def intake(raw: bytes, number: int) -> Intake:
    """A message as it came; every third was not seen live."""
    return Intake(raw, "s-1", START_MS + number * 1000 if number % 3 else None)


def never_stopping(lines: Sequence[bytes]) -> list[Record]:
    funnel = Funnel(RULES)
    return [
        record
        for number, raw in enumerate(lines)
        for record in funnel.take(intake(raw, number)).records
    ]


def stopping(lines: Sequence[bytes], cuts: set[int]) -> list[Record]:
    """Derive with a new worker after each cut, which knows only what the last one stored."""
    funnel = Funnel(RULES)
    stores: dict[str, Store] = {}
    stored: dict[str, Session] = {}
    records: list[Record] = []
    for number, raw in enumerate(lines):
        if number in cuts:
            for name, state in funnel.sessions.items():
                stores.setdefault(name, Store()).put(stored.get(name), state)
            stored = {name: store.get() for name, store in stores.items()}
            funnel = Funnel(RULES)
            funnel.sessions = dict(stored)
        records.extend(funnel.take(intake(raw, number)).records)
    return records


@given(SESSIONS, st.sets(st.integers(0, 60)))
def test_restoring_at_any_batch_cut_gives_the_same_records(
    plan: tuple[list[Action], bool], cuts: set[int]
) -> None:
    actions, transcript = plan
    lines = write("s-1", actions, transcript=transcript)
    assert stopping(lines, cuts) == never_stopping(lines)


@given(SESSIONS)
def test_restoring_after_every_message_gives_the_same_records(
    plan: tuple[list[Action], bool],
) -> None:
    actions, transcript = plan
    lines = write("s-1", actions, transcript=transcript)
    assert stopping(lines, set(range(len(lines)))) == never_stopping(lines)


def rich() -> Given:
    """A session in which every part of the state says something."""
    odd = [init(LARGE, cwd="/half \ud800"), assistant("a", read=90_000), user("/compact")]
    limits = any_message("autocompact_state", enabled=True, threshold=9, effective_window=10)
    others = [
        result({MODEL: model_window(300_000), LARGE: model_window(900_000)}),
        assistant("s", read=9, parent_tool_use_id="toolu_1", agent_id="a1"),
        line(assistant("b", read=7, output=40, model="unheard-of"), at=5),
        side(assistant("t", read=900_000, model=OTHER_MODEL), "b2", subagent_type="explorer"),
        boundary({"trigger": "auto", "pre_tokens": 5, "preserved_messages": {"anchor_uuid": "x"}}),
        limits,
        compacting(at=9),
        succeeded(),
        user("/compact"),
    ]
    return session(*odd, *others)


def test_a_session_is_read_back_as_it_was_put_away() -> None:
    before = rich().session()
    store = Store()
    store.put(None, before)
    assert store.get() == before
    assert before.hint == "manual"
    assert before.facts.exceeded


@pytest.mark.parametrize("ends", [(), (succeeded(),), (status(None),)])
def test_an_attempt_is_read_back_in_its_phase_with_both_clocks(ends: tuple[Body, ...]) -> None:
    told = Given()
    told.take(compacting(at=3), received_ms=START_MS + 500)
    told.take(*ends)
    state = told.session()
    store = Store()
    store.put(None, state)
    assert store.get().attempt == state.attempt
    assert start_of(state.attempt) is not None


@pytest.mark.parametrize("first", [boundary(), reset(), user(), init(), line(summary())])
def test_a_session_of_one_message_is_read_back(first: dict[str, Any]) -> None:
    state = session(first).session()
    store = Store()
    store.put(None, state)
    assert store.get() == state


def test_only_what_changed_is_stored() -> None:
    told = rich()
    before = told.session()
    told.take(side(user(), "b2"))
    changed = pack(before, told.session())
    assert {name.split(":")[0] for name in changed} == {"session", "chain", "known"}
    assert [name for name in changed if name.startswith("chain:")] == ["chain:b2"]
    assert pack(told.session(), told.session()) == {}


def test_a_chain_that_left_is_a_part_that_is_gone() -> None:
    told = session(*(side(user(), f"agent{number}") for number in range(64)))
    before = told.session()
    told.take(side(user(), "newcomer"))
    changed = pack(before, told.session())
    assert changed["chain:agent0"] is None
    assert changed["chain:newcomer"] is not None


def test_parts_are_plain_json() -> None:
    parts = pack(None, rich().session())
    assert json.loads(json.dumps(parts)) == parts
    assert STATE_VERSION == 1


def test_all_parts_that_were_ever_stored_are_named_for_removal() -> None:
    told = Given()
    store = Store()
    for number in range(KEPT // 50 + 5):
        before = told.funnel.sessions.get(SESSION)
        told.take(*(user(f"{number} {at}") for at in range(50)), side(user(), f"a{number % 3}"))
        store.put(before, told.session())
    assert set(part_names(told.session())) == set(store.parts)
    assert len([name for name in store.parts if name.startswith("known:")]) == SLOTS
    small = session(user()).session()
    assert sorted(part_names(small)) == sorted(pack(None, small))


def test_a_restored_session_knows_exactly_what_it_knew() -> None:
    told = Given()
    store = Store()
    bodies = [user(str(number)) for number in range(KEPT + 300)]
    for begin in range(0, len(bodies), 97):
        before = told.funnel.sessions.get(SESSION)
        told.take(*bodies[begin : begin + 97])
        store.put(before, told.session())
        told.funnel.sessions[SESSION] = store.get()
    counted = told.chain().total
    told.take(*bodies[-KEPT:])
    assert told.chain().total == counted == len(bodies)
    told.take(bodies[0])
    assert told.chain().total == counted + 1


def damaged(**changes: object) -> dict[str, Json]:
    """The parts of a session with some of them replaced; None takes a part away."""
    parts: dict[str, Any] = pack(None, rich().session())
    for name, part in changes.items():
        key = {"known": "known:0", "chain": "chain:main"}.get(name, name)
        if part is None:
            del parts[key]
        else:
            parts[key] = part
    return parts


def changed(part: str, **fields: object) -> dict[str, Json]:
    parts: dict[str, Any] = damaged()
    parts[part] = parts[part] | fields
    return parts


UNREADABLE: dict[str, Mapping[str, Json]] = {
    "nothing": {},
    "no session part": damaged(session=None),
    "no known causes": damaged(known=None),
    "a part that is no object": damaged(session=5),
    "a chain that is no object": damaged(chain=["x"]),
    "known causes that are no object": damaged(known="text"),
    "causes that are not base64": damaged(known={"number": 0, "hashes": "!!"}),
    "causes that are no text": damaged(known={"number": 0, "hashes": 7}),
    "causes of another chunk": damaged(known={"number": 65, "hashes": ""}),
    "too few causes": damaged(known={"number": 0, "hashes": ""}),
    "no sequence": {**damaged(), SESSION_PART: {"applied": 1}},
    "a sequence that is no number": changed(SESSION_PART, sequence="x"),
    "a time that is no number": changed(SESSION_PART, last_ms=True),
    "a phase that is not known": changed(SESSION_PART, phase="half open"),
    "a start of other fields": changed(SESSION_PART, start=["id"]),
    "facts that are no object": changed(SESSION_PART, facts=[]),
    "facts that are not known": changed(SESSION_PART, facts={"later": 1}),
    "facts of another shape": changed(SESSION_PART, facts={"exceeded": 5}),
    "a chain's field that is not known": changed("chain:main", later=1),
    "a chain's memory that is no text": changed("chain:main", memory=5),
    "a chain's thresholds that are no list": changed("chain:main", announced=5),
    "a chain's boundary of other fields": changed("chain:main", unmeasured=["id"]),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_parts_that_cannot_be_read_are_a_version_error(what: str) -> None:
    with pytest.raises(VersionError, match="state of session 's-1' cannot be read"):
        unpack("s-1", UNREADABLE[what])


def test_fields_that_are_not_stored_have_their_defaults() -> None:
    parts: dict[str, Any] = pack(None, session(user()).session())
    assert parts["chain:main"] == {"touched": 1, "messages": 1, "since_boundary": 1, "total": 1}
    assert unpack(SESSION, parts).chains["main"] == Chain(
        touched=1, messages=1, since_boundary=1, total=1
    )
