"""Views in a real Redis, as a projector would have written them."""

from collections.abc import Iterable

from contextgauge.clock import SystemClock
from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.records import Record
from streams.core.derivation.rules_config import Rules
from streams.edge.redis.view_store import RedisViews
from streams.flow.derive.deriver import Deriver
from streams.ports import ViewChanges, ViewPosition
from streams.ports.view_store import ProjectorHeartbeat
from tests.doubles.dump import fold_records

PARTITIONS = 2
GENERATION = 1


def records_of(lines: Iterable[tuple[bytes, str | None]]) -> list[Record]:
    """Return the records of lines, each with the session that its container tells."""
    deriver = Deriver(Rules(bundled()))
    return [
        record
        for value, hint in lines
        for record in deriver.derive(InputMessage(value, hint)).records
    ]


async def write_views(
    url: str, key_prefix: str, records: list[Record], *, lag_ms: int | None = 0
) -> None:
    """Fold the records into the views of the active generation, in place of those before.

    The projector tells that it is so far behind; None: it tells nothing.
    """
    store = RedisViews(url, key_prefix)
    await store.start()
    try:
        await store._redis.delete(f"{key_prefix}:active")  # noqa: SLF001 -- what is active stays
        for partition, dump in enumerate(fold_records(records, PARTITIONS)):
            await store.drop(GENERATION, partition)
            changes = ViewChanges(
                leaving={},
                views=dump.views,
                compactions={
                    (session, name): document
                    for session, documents in dump.compactions.items()
                    for name, document in documents.items()
                },
                entries=[],
                recent={session: int(score) for session, score in dump.rankings["recent"].items()},
                pressure=dict(dump.rankings["pressure"]),
                idle={session: int(score) for session, score in dump.idle.items()},
                stats=dict(dump.stats),
                live=[],
                agents={},
            )
            position = ViewPosition(len(records), 0, PARTITIONS, caught_up=False, build="test")
            await store.apply(
                GENERATION, partition, expected=None, position=position, changes=changes
            )
            if lag_ms is not None:
                heartbeat = ProjectorHeartbeat(SystemClock().now_ms(), len(records), lag_ms)
                await store.report_heartbeat(GENERATION, partition, "test", heartbeat)
        await store.begin_next(GENERATION, "test")
        await store.activate(GENERATION, "test")
    finally:
        await store.stop()
