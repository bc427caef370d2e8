"""Two projectors on one partition: wherever they meet, the views are the fold of the log."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from contextgauge.errors import ReseekError
from streams.edge.memory.view_store import MemoryViews
from streams.edge.redis.view_store import RedisViews
from streams.flow.project import view_write
from streams.flow.project.partition import PartitionProjector
from streams.ports import Batch, LogRecord, ViewStore
from tests.doubles.dump import dump
from tests.flow.project_kit import SAMPLE, projector_of, wanted

pytestmark = pytest.mark.extended

LOG = SAMPLE[:120]
END = LOG[-1].offset + 2


class Stepping:
    """A store whose calls are counted; before one of them something else happens."""

    def __init__(
        self, store: ViewStore, step: int, meanwhile: Callable[[], Awaitable[None]]
    ) -> None:
        self._store, self._step, self._meanwhile = store, step, meanwhile
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self._step:
                await self._meanwhile()
            return await method(*arguments, **named)

        return call


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.service)])
async def store(request: pytest.FixtureRequest, key_prefix: str) -> AsyncIterator[ViewStore]:
    """Give each store in turn."""
    made: ViewStore = MemoryViews()
    if request.param == "redis":
        made = RedisViews(request.getfixturevalue("redis_url"), key_prefix)
    await made.start()
    yield made
    await made.stop()


def batch_at(position: int, size: int) -> Batch:
    """Return what a poll gives at a position."""
    records: list[LogRecord] = [item for item in LOG if item.offset >= position][:size]
    return Batch(records, records[-1].offset + 2 if records else END)


async def follow(projector: PartitionProjector, size: int, end: int = END) -> None:
    """Project to the end as the worker does: after a mismatch from the stored position on."""
    while True:
        try:
            assert await projector.open()
            while projector.position < end:
                await projector.apply(batch_at(projector.position, size))
        except ReseekError:
            continue
        return


@pytest.mark.parametrize(("size", "other_size"), [(40, 40), (40, 25), (7, 7)])
async def test_two_projectors_meet_at_any_step(
    store: ViewStore, monkeypatch: pytest.MonkeyPatch, size: int, other_size: int
) -> None:
    monkeypatch.setattr(view_write, "MAX_DOCUMENTS", 30)
    step, wrong = 0, []
    while True:
        step += 1
        await store.drop(1, 0)
        other = projector_of(store)
        await other.begin(0)
        assert await other.open()

        async def meanwhile(other: PartitionProjector = other) -> None:
            try:
                await other.apply(batch_at(other.position, other_size))
            except ReseekError:
                assert await other.open()
                await other.apply(batch_at(other.position, other_size))

        stepping: Any = Stepping(store, step, meanwhile)
        await follow(projector_of(stepping), size)
        await follow(other, size)
        if await dump(store, 1, 0) != wanted(LOG):
            wrong.append(step)
        if stepping.calls < step:
            break
    assert step > 8
    assert wrong == []
