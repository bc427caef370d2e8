"""The contract of the control plane's store: the same tests on its twin in memory and on Redis."""

from collections.abc import AsyncIterator

import pytest

from contextgauge.errors import RetryError, VersionError
from schemas.commands import CommandView, ControlView, DecisionView, ThresholdsSet
from streams.edge.redis.control import KEPT_MS, RedisControlStore
from streams.ports import ControlStore
from tests.doubles.control_store import MemoryControlStore
from tests.flow.derive_kit import until

COMMAND = CommandView(
    command_id="c-1",
    trigger="auto",
    requested_by="control",
    instructions="keep ünïcode",
    cause_id="r-1",
    state="finished",
    requested_ms=1,
    finished_ms=2,
    outcome="completed",
    receipt={"tokens_before": 5, "steps": [{"rung": "summarise"}]},
)
DECISION = DecisionView(
    id="d-1",
    time_ms=1,
    fired=True,
    reason="above_threshold",
    command_id="c-1",
    cause_id="r-1",
    model=None,
    used_tokens=5,
    window=10,
    window_source="catalog",
    threshold_tokens=4,
)
VIEW = ControlView(
    session_id="s-1",
    commands=(COMMAND,),
    decisions=(DECISION,),
    thresholds=ThresholdsSet(scope="session", name="s-1", requested_by="ada", automatic=True),
)


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.service)])
async def store(
    request: pytest.FixtureRequest, key_prefix: str
) -> AsyncIterator[MemoryControlStore | RedisControlStore]:
    made: MemoryControlStore | RedisControlStore = MemoryControlStore()
    if request.param == "redis":
        made = RedisControlStore(request.getfixturevalue("redis_url"), key_prefix)
    await made.start()
    yield made
    await made.stop()


async def test_nothing_is_known_at_first(store: ControlStore) -> None:
    assert await store.control_view("s-1") is None
    assert await store.control_seen_ms(0) is None


async def test_views_are_replaced_and_the_report_is_noted(store: ControlStore) -> None:
    other = ControlView(session_id="lone \ud800")
    await store.put(0, {"s-1": VIEW, other.session_id: other}, 7, 1_000)
    assert await store.control_view("s-1") == VIEW
    assert await store.control_view(other.session_id) == other
    assert (await store.control_seen_ms(0), await store.control_seen_ms(1)) == (1_000, None)
    await store.put(0, {}, 7, 2_000)
    assert await store.control_seen_ms(0) == 2_000


@pytest.mark.service
async def test_an_owner_of_the_past_changes_nothing(store: ControlStore) -> None:
    await store.put(0, {"s-1": VIEW}, 7, 2_000)
    with pytest.raises(RetryError, match="a later owner of partition 0"):
        await store.put(0, {"s-1": ControlView(session_id="s-1")}, 6, 3_000)
    assert await store.control_view("s-1") == VIEW
    assert await store.control_seen_ms(0) == 2_000


@pytest.mark.parametrize("kind", ["memory", pytest.param("redis", marks=pytest.mark.service)])
async def test_the_owner_of_a_log_that_was_created_again_begins_at_its_start(
    request: pytest.FixtureRequest, key_prefix: str, kind: str
) -> None:
    store: MemoryControlStore | RedisControlStore = MemoryControlStore(owned_ms=30)
    if kind == "redis":
        url = request.getfixturevalue("redis_url")
        store = RedisControlStore(url, key_prefix, owned_ms=30)
    await store.put(0, {"s-1": VIEW}, 500, 2_000)
    empty = ControlView(session_id="s-1")

    async def is_stored() -> bool:
        try:
            await store.put(0, {"s-1": empty}, 3, 3_000)
        except RetryError:
            return False
        return True

    await until(is_stored)
    assert await store.control_view("s-1") == empty
    assert await store.control_seen_ms(0) == 3_000
    await store.put(0, {"s-1": VIEW}, 4, 4_000)
    assert await store.control_view("s-1") == VIEW
    await store.stop()


@pytest.mark.service
async def test_views_expire_and_other_versions_are_refused(redis_url: str, key_prefix: str) -> None:
    store = RedisControlStore(redis_url, key_prefix)
    await store.put(0, {"s-1": VIEW}, 7, 2_000)
    redis, key = store._redis, store._session("s-1")  # noqa: SLF001 -- what it holds is tested
    assert 0 < await redis.pttl(key) <= KEPT_MS
    assert 0 < await redis.pttl(store._partition(0)) <= KEPT_MS  # noqa: SLF001 -- as above
    await redis.set(key, b'{"version":99}')
    with pytest.raises(VersionError, match="version 99"):
        await store.control_view("s-1")
