"""The session's state as it is stored: in parts, and read back as if never put away."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.errors import VersionError
from contextgauge.normalise.signals import InputMessage
from schemas.records import Record
from streams.core.derivation.known_causes import BLOCK, KEPT
from streams.core.derivation.rules_config import STATE_VERSION
from streams.core.derivation.state import Chain, KnownFacts, Session
from streams.core.derivation.stored_state import (
    SESSION_PART,
    StoredPart,
    pack,
    part_names,
    unpack,
)
from streams.flow.derive.deriver import Changed, Deriver
from tests.core.derivation.state_kit import Store, held, stored_parts, with_causes
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


def intake(raw: bytes, number: int) -> InputMessage:
    """A message as it came; every third was not seen live."""
    return InputMessage(raw, "s-1", START_MS + number * 1000 if number % 3 else None)


def never_stopping(lines: Sequence[bytes]) -> list[Record]:
    deriver = Deriver(RULES)
    return [
        record
        for number, raw in enumerate(lines)
        for record in deriver.derive(intake(raw, number)).records
    ]


def stopping(lines: Sequence[bytes], cuts: set[int]) -> list[Record]:
    """Derive with a new worker after each cut, which knows only what the last one stored."""
    deriver = Deriver(RULES)
    stores: dict[str, Store] = {}
    stored: dict[str, Session] = {}
    records: list[Record] = []
    for number, raw in enumerate(lines):
        if number in cuts:
            deriver.end_steps()
            for name, state in deriver.sessions.items():
                stores.setdefault(name, Store()).put(stored.get(name), state)
            stored = {name: store.get() for name, store in stores.items()}
            deriver = Deriver(RULES)
            deriver.sessions = dict(stored)
        records.extend(deriver.derive(intake(raw, number)).records)
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


@given(SESSIONS, st.sets(st.integers(0, 60)))
def test_messages_applied_in_place_give_the_same_as_messages_applied_one_by_one(
    plan: tuple[list[Action], bool], cuts: set[int]
) -> None:
    actions, transcript = plan
    lines = write("s-1", actions, transcript=transcript)
    one_by_one, in_place = Deriver(RULES), Deriver(RULES)
    changed: list[Changed] = []
    for number, raw in enumerate(lines):
        message = intake(raw, number)
        assert in_place.derive(message) == one_by_one.derive(message)
        one_by_one.end_steps()
        if number in cuts:
            changed += in_place.end_steps()
    changed += in_place.end_steps()
    assert in_place.sessions == one_by_one.sessions
    last: dict[str, Session] = {}
    for session_id, before, after in changed:
        assert before == last.get(session_id) != after
        last[session_id] = after
    assert last == in_place.sessions


@given(SESSIONS)
def test_a_state_is_not_modified_by_later_messages(plan: tuple[list[Action], bool]) -> None:
    """What a batch began with is compared with what it ended with, and must not move meanwhile."""
    actions, transcript = plan
    deriver = Deriver(RULES)
    states: list[tuple[Session, Session]] = []
    for number, raw in enumerate(write("s-1", actions, transcript=transcript)):
        deriver.derive(intake(raw, number))
        deriver.end_steps()
        states += [(state, copy.deepcopy(state)) for state in deriver.sessions.values()]
    assert [state for state, _ in states] == [then for _, then in states]


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


def test_a_session_round_trips_through_storage() -> None:
    before = rich().session()
    store = Store()
    store.put(None, before)
    assert store.get() == before
    assert before.hint == "manual"
    assert before.facts.exceeded


@pytest.mark.parametrize("ends", [(), (succeeded(),), (status(None),)])
def test_an_attempt_is_read_back_in_its_phase_with_both_clocks(ends: tuple[Body, ...]) -> None:
    given_session = Given()
    given_session.take(compacting(at=3), received_ms=START_MS + 500)
    given_session.take(*ends)
    state = given_session.session()
    store = Store()
    store.put(None, state)
    assert store.get().attempt == state.attempt
    assert state.attempt.start is not None


@pytest.mark.parametrize(
    "first",
    [boundary(), reset(), user(), init(), line(summary()), assistant(read=90_000)],
)
def test_a_session_of_one_message_is_read_back(first: dict[str, Any]) -> None:
    state = session(first).session()
    store = Store()
    store.put(None, state)
    assert store.get() == state


def test_only_changed_parts_are_stored() -> None:
    message = rich()
    before = message.session()
    message.take(side(user(), "b2"))
    changed = pack(before, message.session())
    assert {name.split(":")[0] for name in changed} == {"session", "chain"}
    assert [name for name in changed if name.startswith("chain:")] == ["chain:b2"]
    assert list(pack(message.session(), message.session())) == [SESSION_PART]


def test_the_part_of_a_chain_that_left_is_removed() -> None:
    crowded = session(*(side(user(), f"agent{number}") for number in range(64)))
    before = crowded.session()
    crowded.take(side(user(), "newcomer"))
    changed = pack(before, crowded.session())
    assert changed["chain:agent0"] is None
    assert changed["chain:newcomer"] is not None


@pytest.mark.parametrize("batch", [1, 7, 45, 111, 160])
def test_a_chain_that_left_leaves_nothing_and_comes_back_as_new(batch: int) -> None:
    """However its messages are batched, also where it leaves and comes back within one."""

    def responses(name: str) -> list[Body]:
        return [side(assistant(f"{name}{number}", read=number + 1), "a1") for number in range(45)]

    others: list[Body] = [side(user(str(number)), f"b{number}") for number in range(66)]
    bodies = [*responses("former"), *others, *responses("again")[:3]]
    together, apart = Store(), Store()
    whole, restored = Given(), Given()
    for end in range(batch, len(bodies) + batch, batch):
        before = restored.sessions().get(SESSION)
        restored.take(*bodies[end - batch : end])
        apart.put(before, restored.session())
        restored.sessions()[SESSION] = apart.get()
    whole.take(*bodies)
    together.put(None, whole.session())
    assert apart.parts == together.parts
    assert "chain:a1" in apart.parts
    assert "responses:a1" not in apart.parts
    assert restored.records == whole.records


def test_fields_are_plain_json() -> None:
    for part in pack(None, rich().session()).values():
        assert part is not None
        assert json.loads(json.dumps(part.fields)) == part.fields
    assert STATE_VERSION == 5


def test_all_parts_that_were_ever_stored_are_named_for_removal() -> None:
    given_session = Given()
    store = Store()
    for number in range(20):
        before = given_session.sessions().get(SESSION)
        given_session.take(
            *(user(f"{number} {turn}") for turn in range(50)), side(user(), f"a{number % 3}")
        )
        store.put(before, given_session.session())
    assert set(part_names(given_session.session())) == set(store.parts)
    assert len([name for name in store.parts if name.startswith("known:")]) == 16
    small = session(user()).session()
    assert sorted(part_names(small)) == sorted(pack(None, small))


def test_a_restored_session_knows_exactly_the_same_causes() -> None:
    given_session = Given()
    store = Store()
    bodies = [user(str(number)) for number in range(5_000)]
    for begin in range(0, len(bodies), 97):
        before = given_session.sessions().get(SESSION)
        given_session.take(*bodies[begin : begin + 97])
        store.put(before, given_session.session())
        given_session.sessions()[SESSION] = store.get()
    given_session.take(*bodies)
    assert given_session.chain().total == len(bodies)


def test_causes_that_left_are_deleted_from_what_is_stored() -> None:
    before, after, store = session(user()).session(), session(user()).session(), Store()
    before.known = with_causes(range(KEPT + BLOCK - 1))
    after.known = with_causes([KEPT + BLOCK - 1], before.known)
    store.put(None, before)
    store.put(before, after)
    assert "known:0" not in store.parts
    assert held(store.get().known) == held(after.known)
    assert set(store.parts) <= set(part_names(after))


def long() -> Given:
    """A session that has parts of every kind."""
    given = rich()
    given.take(*(assistant(f"long {number}", read=number) for number in range(20)))
    return given


def damaged(**changes: StoredPart | None) -> dict[str, StoredPart]:
    """The parts of a session with some of them replaced; None takes a part away."""
    parts = stored_parts(long())
    for name, part in changes.items():
        key = {"known": "known:0", "older": "responses:main"}.get(name, name)
        if part is None:
            del parts[key]
        else:
            parts[key] = part
    return parts


def changed(name: str, place: int, value: Any) -> dict[str, StoredPart]:
    """The parts of a session with one field of one part replaced."""
    parts = damaged()
    fields = [*parts[name].fields]
    fields[place] = value
    return parts | {name: parts[name]._replace(fields=fields)}


def longer(name: str) -> dict[str, StoredPart]:
    parts = damaged()
    return parts | {name: parts[name]._replace(fields=[*parts[name].fields, 1])}


UNREADABLE: dict[str, Mapping[str, StoredPart]] = {
    "nothing": {},
    "no session part": damaged(session=None),
    "no known causes": damaged(known=None),
    "causes of no chunk": damaged(known=StoredPart([], b"")),
    "causes of another chunk": damaged(known=StoredPart([65], b"")),
    "too few causes": damaged(known=StoredPart([0], b"")),
    "no older responses": damaged(older=None),
    "another number of older responses": changed("responses:main", 0, 1),
    "too few older responses": damaged(older=StoredPart([2], bytes(2 * 25))),
    "too many older responses": damaged(older=StoredPart([40], bytes(40 * 25))),
    "older responses of no chain": damaged(**{"responses:gone": StoredPart([1], bytes(25))}),
    "too few fields": {**damaged(), SESSION_PART: StoredPart([1])},
    "too many fields": longer(SESSION_PART),
    "a sequence that is no number": changed(SESSION_PART, 0, "x"),
    "a time that is no number": changed(SESSION_PART, 2, value=True),
    "a phase that is not known": changed(SESSION_PART, 4, "half open"),
    "a start of other fields": changed(SESSION_PART, 5, ["id"]),
    "causes of another number": changed(SESSION_PART, 9, 63),
    "facts that are no list": changed(SESSION_PART, 8, {}),
    "facts that are not known": changed(SESSION_PART, 8, [None] * 40),
    "facts of another shape": changed(SESSION_PART, 8, [*[None] * 9, 5]),
    "a chain's field that is not known": longer("chain:main"),
    "a chain's response that is not a string": changed("chain:main", 0, 5),
    "a chain's response that is no hash": changed("chain:main", 0, "!!"),
    "a chain's boundary of other fields": changed("chain:main", 13, ["id"]),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_parts_that_cannot_be_read_are_a_version_error(what: str) -> None:
    with pytest.raises(VersionError, match="state of session 's-1' cannot be read"):
        unpack("s-1", UNREADABLE[what])


def test_fields_that_are_not_stored_have_their_defaults() -> None:
    parts = damaged(older=None)
    parts["chain:main"] = StoredPart(["", None, None, 7])
    parts[SESSION_PART].fields[8] = ["codex"]
    state = unpack(SESSION, parts)
    assert state.chains["main"] == Chain(touched=7)
    assert state.facts == KnownFacts(runtime="codex")
