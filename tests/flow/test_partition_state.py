"""The state of a partition: what is persisted, what leaves when, whatever the batches."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pytest

from contextgauge.errors import VersionError
from schemas.messages import DeadLetter
from schemas.records import Record, SessionInfo
from schemas.topics import DAY_MS, HOUR_MS
from streams import codec
from streams.flow.dead_letters.letters import dead_record, letter_of
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.memory_values import MemoryValues
from streams.flow.derive.partition_state import InputPartition, PartitionState
from streams.flow.derive.partition_time import CLAIMS
from streams.ports import Headers, LogRecord, ValueStore
from tests.flow.derive_kit import RULES, expected, samples

CONFIG = DeriveConfig()
START_MS = 1_790_000_000_000
LIVE: Headers = (("observed", b"live"),)


def new_state(config: DeriveConfig = CONFIG, values: ValueStore | None = None) -> PartitionState:
    return PartitionState(RULES, config, InputPartition(0, 1, 1), values)


class Run(NamedTuple):
    """What a sequence of messages gave."""

    records: list[Record]
    changelog: list[tuple[bytes, bytes | None]]
    evicted: int

    def last_values(self) -> dict[bytes, bytes]:
        return {key: value for key, value in dict(self.changelog).items() if value is not None}


def run(
    messages: Sequence[LogRecord],
    batch: int,
    restore_every: int = 0,
    config: DeriveConfig = CONFIG,
    values: Callable[[], ValueStore] = MemoryValues,
) -> Run:
    """Derive in batches; restore from the changelog alone after every so many."""
    state, done = new_state(config, values()), Run([], [], 0)
    evicted = 0
    for number, start in enumerate(range(0, len(messages), batch), 1):
        part = messages[start : start + batch]
        state.apply(part)
        work = state.finish(part[-1].offset + 1)
        evicted += work.evicted
        done.records.extend(
            codec.from_binary(record.headers, record.value or b"")
            for record in work.records
            if record.topic == CONFIG.events_topic
        )
        done.changelog.extend(work.changes.items())
        if restore_every and number % restore_every == 0:
            state = restored(done.changelog, config, values())
            assert state.position == part[-1].offset + 1
    return done._replace(evicted=evicted)


def restored(
    changelog: Sequence[tuple[bytes, bytes | None]],
    config: DeriveConfig = CONFIG,
    values: ValueStore | None = None,
) -> PartitionState:
    state = new_state(config, values)
    state.add(changelog)
    for _ in state.load():
        pass
    assert state.position is not None
    return state


def reading(session_id: str, number: int) -> bytes:
    usage = {"input_tokens": 1_000 + number, "output_tokens": 1}
    message = {"id": f"m{number}", "model": "claude-sonnet-4-5", "usage": usage}
    return codec.dumps(
        {"type": "assistant", "uuid": f"u{number}", "session_id": session_id, "message": message}
    )


def at(steps: Iterable[tuple[str, int]], times: int = 1) -> list[LogRecord]:
    """Return so many readings for each (session, milliseconds after the start)."""
    repeated = [step for step in steps for _ in range(times)]
    return [
        LogRecord(number, START_MS + ms, session.encode(), reading(session, number), ())
        for number, (session, ms) in enumerate(repeated)
    ]


YEAR_9999_MS = 253_370_764_800_000 - START_MS
DAYS_100_MS = 100 * DAY_MS
OFTEN = CLAIMS + 1
"""So many messages, and a later time is believed."""


SAMPLES = [
    LogRecord(2 * number, START_MS + number, session_id.encode(), value, ())
    for number, (session_id, value) in enumerate(samples(2))
]


@pytest.mark.extended
@pytest.mark.parametrize(("batch", "restore_every"), [(1, 5), (13, 2), (100, 0), (10_000, 0)])
def test_batches_and_restores_change_no_record(batch: int, restore_every: int) -> None:
    done = run(SAMPLES, batch, restore_every)
    assert done.records == expected(samples(2), 1)[0]
    assert done.last_values() == run(SAMPLES, 10_000).last_values()


def test_a_null_header_of_a_message_is_like_a_missing_one() -> None:
    null: Any = (("task_id", None), ("trace", None), *LIVE)
    messages = [record._replace(headers=null) for record in SAMPLES]
    live = [record._replace(headers=LIVE) for record in SAMPLES]
    assert run(messages, 100).records == run(live, 100).records


def test_a_dead_letter_keeps_a_null_header() -> None:
    null: Any = (("trace", None),)
    message = LogRecord(3, START_MS, None, b"{", null)
    written = dead_record(message, DeadLetter("not_json", "cut off"), (), "dead", 0)
    letter = letter_of(0, LogRecord(0, START_MS, written.key, written.value, written.headers))
    assert (letter.headers, letter.reason) == (null, "not_json")


def test_a_batch_writes_what_changed() -> None:
    """A session that is untouched, and parts of one that are, are not written again."""
    state = new_state()
    state.apply(at([("one", 0), ("two", 0)]))
    first = state.finish(2).changes
    state.apply([LogRecord(2, START_MS, b"two", reading("two", 99), ())])
    second = state.finish(3).changes
    assert {codec.loads(key)[0] for key in first} == {"one", "two", "position"}
    assert {codec.loads(key)[0] for key in second} == {"two", "position"}
    assert codec.dumps(["two", "activity"]) not in second
    assert list(second)[-1] == codec.dumps(["position"])


def test_an_idle_session_leaves_with_all_its_parts() -> None:
    idle = CONFIG.idle_days * DAY_MS
    steps = [("idle", 0), ("busy", 0), ("busy", idle // 2), ("busy", idle + 2 * HOUR_MS)]
    done = run(at(steps, OFTEN), 50)
    assert done.evicted == 1
    assert {codec.loads(key)[0] for key in done.last_values()} == {"busy", "position"}
    gone = {key for key, value in done.changelog if value is None}
    assert gone == {key for key, _ in done.changelog if codec.loads(key)[0] == "idle"}


def test_a_session_within_its_time_stays() -> None:
    idle = CONFIG.idle_days * DAY_MS
    done = run(at([("idle", 0), ("busy", idle)], OFTEN), 50)
    assert done.evicted == 0


@pytest.mark.extended
@pytest.mark.parametrize(("batch", "restore_every"), [(1, 0), (67, 1), (5_000, 0)])
def test_idleness_does_not_depend_on_batching(batch: int, restore_every: int) -> None:
    """Also of a session that comes back, and of one whose whole life is within one batch."""
    day = DAY_MS
    steps = [("a", 0), ("b", 0), ("c", 50 * day), ("a", 60 * day), ("b", 95 * day)]
    steps += [("d", 95 * day), ("c", 94 * day), ("e", 300 * day), ("a", 1), ("b", 300 * day)]
    messages = at(steps, OFTEN)
    whole, done = run(messages, 1), run(messages, batch, restore_every)
    assert done.records == whole.records
    assert done.last_values() == whole.last_values()
    sequences = {(r.data.session_id, r.sequence) for r in whole.records if r.sequence == 1}
    firsts = [r.data.session_id for r in whole.records if r.sequence == 1]
    assert sorted(firsts) == ["a", "a", "b", "b", "c", "d", "e"]
    assert len(sequences) == 5


def test_a_timestamp_from_the_past_evicts_no_session() -> None:
    done = run(at([("a", 0), ("b", -400 * DAY_MS), ("b", 1)], OFTEN), 50)
    assert done.evicted == 0


@pytest.mark.extended
@pytest.mark.parametrize(("batch", "restore_every"), [(13, 1), (5_000, 0)])
@pytest.mark.parametrize("wrong", [1, CLAIMS - 1])
def test_a_wrong_clock_evicts_no_session_and_time_advances(
    batch: int, restore_every: int, wrong: int
) -> None:
    busy = [("busy", ms) for ms in range(OFTEN)]
    claims = [("wrong", YEAR_9999_MS)] * wrong
    known = run(at([("idle", 0), *busy, *claims, ("busy", 500)]), batch, restore_every)
    assert known.evicted == 0
    days = [("busy", hour * 12 * HOUR_MS) for hour in range(2 * 91)]
    later = at([("idle", 0), *busy, *claims, *days, ("wrong", YEAR_9999_MS)])
    done = run(later, batch, restore_every)
    assert done.evicted == len({"idle", "wrong"})
    assert done.records == run(later, 1).records
    assert done.last_values() == run(later, 1).last_values()
    assert _time_ms(done) == START_MS + 181 * 12 * HOUR_MS


@pytest.mark.parametrize(("batch", "restore_every"), [(13, 1), (5_000, 0)])
def test_a_pause_advances_time_and_resumed_sessions_stay(batch: int, restore_every: int) -> None:
    """Also with a clock of the year 9999 and one of 1970 among those that are right."""
    before = [(session, ms) for ms in range(OFTEN) for session in ("idle", "back")]
    after = [("back", DAYS_100_MS), ("wrong", YEAR_9999_MS), ("stuck", -START_MS)]
    after += [("busy", DAYS_100_MS + ms) for ms in range(CLAIMS - 3)]
    most = at([*before, *after])
    assert run(most, batch, restore_every).evicted == 0
    messages = at([*before, *after, ("busy", DAYS_100_MS + 999)])
    done = run(messages, batch, restore_every)
    assert done.evicted == 1
    assert {codec.loads(key)[0] for key in done.last_values()} >= {"back", "wrong", "stuck"}
    assert done.records == run(messages, 1).records
    assert done.last_values() == run(messages, 1).last_values()
    assert _time_ms(done) == START_MS + DAYS_100_MS


def test_the_first_timestamp_of_a_partition_is_not_trusted_alone() -> None:
    done = run(at([("wrong", YEAR_9999_MS), *[("busy", ms) for ms in range(CLAIMS)]]), 1)
    assert _time_ms(done) == START_MS + CLAIMS - 1
    assert done.evicted == 0


def test_an_unreadable_claim_raises_a_version_error() -> None:
    document = {"v": 1, "position": 1, "partitions": 1, "kafka_time_ms": 1, "claim": {"begin": 1}}
    with pytest.raises(VersionError):
        restored([(codec.dumps(["position"]), codec.dumps(document))])


def _time_ms(done: Run) -> object:
    return codec.loads(done.last_values()[codec.dumps(["position"])])["kafka_time_ms"]


@pytest.mark.parametrize(
    ("headers", "created", "time_ms"),
    [
        ((), True, None),
        (LIVE, True, START_MS),
        (LIVE, False, None),
        ((("observed", b"yes"),), True, None),
    ],
)
def test_r28_the_kafka_time_counts_where_it_is_marked_live(
    *, headers: Headers, created: bool, time_ms: int | None
) -> None:
    state = new_state()
    state.apply([LogRecord(0, START_MS, b"s", reading("s", 1), headers, created)])
    records = state.finish(1).records
    times = [codec.from_binary(r.headers, r.value or b"").time_ms for r in records]
    assert times
    assert times == [time_ms] * len(times)


@pytest.mark.parametrize(("value", "task_id"), [(b"task-1", "task-1"), (b"\xff", None)])
def test_a_header_names_the_task(value: bytes, task_id: str | None) -> None:
    state = new_state()
    state.apply([LogRecord(0, START_MS, b"s", reading("s", 1), (("task_id", value),))])
    (first, *_) = state.finish(1).records
    assert codec.from_binary(first.headers, first.value or b"").data.task_id == task_id


@pytest.mark.parametrize(("value", "agent_id"), [(b"a-1", "a-1"), (b"\xff", None)])
def test_a_header_names_the_agent_of_the_session(value: bytes, agent_id: str | None) -> None:
    state = new_state()
    state.apply([LogRecord(0, START_MS, b"s", reading("s", 1), (("agent_id", value),))])
    read = [codec.from_binary(r.headers, r.value or b"").data for r in state.finish(1).records]
    agents = [data.publisher_agent_id for data in read if isinstance(data, SessionInfo)]
    assert agents == ([] if agent_id is None else [agent_id])


def test_r01_the_key_names_a_session_that_the_message_does_not() -> None:
    line = codec.dumps({"type": "assistant", "message": {"usage": {"input_tokens": 5}}})
    lone = "\ud800 lone"
    state = new_state()
    state.apply([LogRecord(0, START_MS, codec.key_bytes(lone), line, ())])
    work = state.finish(1)
    assert {record.key for record in work.records} == {codec.key_bytes(lone)}
    assert restored(list(work.changes.items())).sessions == 1


def test_figures_of_a_batch() -> None:
    state = new_state()
    messages = at([("a", 0), ("a", 5)])
    state.apply([*messages, LogRecord(2, START_MS + 7, None, b"{", ())])
    work = state.finish(9)
    assert work.dead == [False, False, True]
    assert work.reasons == {"not_json": 1}
    assert work.kinds["context_reading"] == 2
    assert work.last_ms == START_MS + 7
    assert work.position == state.position == 9
    assert state.finish(9).records == []
