"""Sessions that rest: nothing that is derived or written depends on it, and memory does."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from contextgauge.errors import VersionError
from contextgauge.normalise.signals import InputMessage
from schemas.topics import DAY_MS, HOUR_MS
from streams.core.derivation.rules_config import STATE_VERSION
from streams.core.derivation.stored_state import pack
from streams.edge.sqlite.values import TemporaryValues
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.deriver import Deriver
from streams.flow.derive.memory_values import MemoryValues
from streams.flow.derive.partition_state import PartitionState
from streams.flow.derive.stored_sessions import Activity, StoredSessions, changes_of
from streams.ports import LogRecord, ValueStore
from tests.flow.derive_kit import RULES, samples
from tests.flow.test_partition_state import (
    CONFIG,
    DAYS_100_MS,
    OFTEN,
    START_MS,
    YEAR_9999_MS,
    at,
    new_state,
    reading,
    run,
)

NEVER = DeriveConfig(cold_hours=10**9)
Values = Callable[[], ValueStore]
values = pytest.mark.parametrize("values", [MemoryValues, TemporaryValues])


def over_months(chance: random.Random) -> list[LogRecord]:
    """Return messages of all kinds with hours or days between them, and later times at the end."""
    lines = [(session_id.encode(), value) for session_id, value in samples(2)]
    readings = [(f"s{n % 20}".encode(), reading(f"s{n % 20}", n)) for n in range(400)]
    hours = sorted(chance.randrange(1_000) for _ in range(len(lines) + len(readings)))
    mixed = [lines.pop(0) if lines and chance.random() < 0.7 else each for each in readings * 2]
    mixed += lines
    messages = [
        LogRecord(0, START_MS + hour * HOUR_MS, key, value, ())
        for hour, (key, value) in zip(hours, mixed, strict=False)
    ]
    first = at([("s1", 0)], OFTEN)
    later = at([("s1", YEAR_9999_MS)] * 3 + [("s2", DAYS_100_MS + 41 * DAY_MS)] * OFTEN)
    whole = enumerate([*first, *messages, *later])
    return [message._replace(offset=offset) for offset, message in whole]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("batch", "restore_every", "values"),
    [(1, 0, MemoryValues), (13, 3, TemporaryValues), (101, 0, TemporaryValues)],
)
def test_sessions_that_rest_give_what_those_in_use_give(
    batch: int, restore_every: int, values: Values
) -> None:
    """With all that a session has, also where it comes back, is evicted, or confirms a time."""
    messages = over_months(random.Random(batch))  # noqa: S311 -- nothing secret
    never = run(messages, batch, restore_every, NEVER)
    for hours in (CONFIG.cold_hours, 0, -1):
        done = run(messages, batch, restore_every, DeriveConfig(cold_hours=hours), values)
        assert (done.records, done.evicted) == (never.records, never.evicted)
        assert Counter(done.changelog) == Counter(never.changelog)
    assert never.evicted > 10


@values
def test_a_session_that_rests_is_removed_with_all_that_was_written_of_it(values: Values) -> None:
    deriver, written, activity = Deriver(RULES), dict[bytes, bytes | None](), Activity(0, None)
    for number in range(200 + 2 * 64):
        deriver.derive(InputMessage(reading("s", number), "s"))
        if number < 200:
            continue
        for session_id, before, after in deriver.end_steps():
            written |= changes_of(session_id, before, after, activity)
        stored = StoredSessions("state", values())
        stored.keep("s", deriver.sessions["s"], activity)
        dropped = stored.drop("s")
        assert not any(dropped.values())
        assert dropped.keys() == {key for key, value in written.items() if value}
        stored.keep("s", deriver.sessions["s"], activity)
        taken = stored.take("s")
        assert taken is not None
        assert pack(None, taken) == pack(None, deriver.sessions["s"])


def after_hours(state: PartitionState, session: str, hour: int) -> int:
    """Derive a message of a session so late; return how many sessions rest then."""
    message = reading(session, 1_000 + hour)
    state.apply([LogRecord(9, START_MS + hour * HOUR_MS, session.encode(), message, ())])
    state.finish(10)
    return state.stored_sessions


def test_a_session_rests_after_hours_without_a_message() -> None:
    state = new_state()
    state.apply(at([("a", 0)], OFTEN))
    messages = [("a", 0), ("b", 1), ("b", 2), ("b", 3), ("b", 4), ("a", 4), ("c", 7)]
    assert [after_hours(state, *each) for each in messages] == [0, 0, 0, 1, 1, 0, 2]


def test_a_resting_session_that_cannot_be_read_says_so() -> None:
    stored = StoredSessions("state")
    stored.add([(b'["s","session"]', b"[%d,0,null,{broken" % STATE_VERSION)])
    with pytest.raises(VersionError, match="state of session 's' cannot be read"):
        stored.be_active("s", Activity(1, None))
    with pytest.raises(VersionError, match="state of session 's' cannot be read"):
        stored.take("s")


def test_a_batch_puts_few_sessions_to_rest() -> None:
    """Others wait for the next: to store them takes time, in which no record would be written."""
    state = new_state()
    state.apply(at([(f"s{number}", 0) for number in range(50)], 3))
    state.finish(150)
    assert [after_hours(state, "now", hour) for hour in (3, 3, 3, 3)] == [20, 40, 50, 50]
    assert state.sessions == 51


@pytest.mark.extended
@pytest.mark.parametrize("messages_each", [2, 20])
def test_sessions_in_use_do_not_pile_up_in_a_backlog(messages_each: int) -> None:
    state, offset = new_state(), 0
    in_use = []
    for hour in range(30):
        names = [f"{hour}-{number}" for number in range(50)]
        messages = at([(name, hour * HOUR_MS) for name in names], messages_each)
        state.apply([each._replace(offset=offset + each.offset) for each in messages])
        offset += len(messages)
        state.finish(offset)
        in_use.append(len(state.in_use))
    assert state.sessions == 30 * 50
    assert max(in_use) == in_use[-1] == 3 * 50


def test_a_session_rests_again_after_a_message_that_changed_nothing() -> None:
    state = new_state()
    state.apply(at([(f"s{number}", 0) for number in range(30)], 4))
    state.finish(120)
    assert [after_hours(state, "now", hour) for hour in (3, 4)] == [20, 30]
    last = at([("s0", 0)], 4)[-1]
    state.apply([last])
    state.finish(11)
    assert list(state.in_use) == ["now"]
