"""A rebuild with no more rights in Redis than docs/CONNECTING.md gives to who projects."""

import asyncio

import pytest

from contextgauge.clock import SystemClock
from streams.edge.memory.log import MemoryLog
from streams.edge.redis.access import RedisAccess
from streams.edge.redis.view_store import RedisViews
from tests.flow.project_kit import ProjectKit
from tests.flow.rebuild_kit import Run, drip
from tests.flow.test_audit import audited
from tests.flow.test_rebuild import MORE, SOME
from tests.patience import PATIENCE_S
from tests.secure.documented import redis_acl
from tests.secure.services import PASSWORD, Secured

pytestmark = pytest.mark.extended

PREFIX = "rebuilding"


async def test_all_that_a_rebuild_does_is_allowed(secured_redis: Secured) -> None:
    rules = redis_acl("projector", PREFIX, PASSWORD)
    admin = secured_redis.redis()
    admin.execute_command("ACL", "SETUSER", "rebuilder", "reset", *rules)  # type: ignore[no-untyped-call]  # redis-py
    url = f"redis://localhost:{secured_redis.ports['redis_plain']}/0"
    access = RedisAccess(username="rebuilder", password=PASSWORD)
    working, store = (RedisViews(url, PREFIX, access) for _ in range(2))
    kit = ProjectKit(MemoryLog(SystemClock()), working)
    await kit.create_topic()
    await kit.append(SOME)
    async with kit.running() as worker, asyncio.timeout(PATIENCE_S):
        await kit.caught_up(worker)
        live = asyncio.create_task(drip(kit, MORE))
        await Run(store).to_end()
        await live
        assert await kit.caught_up(worker, at_least=2) == 2
    assert await kit.documents(2) == await kit.expected()
    assert (await audited(ProjectKit(kit.log, store))).different == 0
    await store.stop()
    await working.stop()
