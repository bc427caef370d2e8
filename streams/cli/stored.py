"""Sessions of the views in Redis, for commands that show them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError, StopError
from schemas.views import SessionView
from streams import wiring
from streams.cli.listing import Order
from streams.cli.screen.figures import safe
from streams.core.session_status import THRESHOLDS
from streams.core.until_compaction import CompactionPoints
from streams.serve.views.sessions import SessionLookupError, Sessions, active_sessions
from streams.serve.views.snapshot import ViewsGoneError
from streams.settings import Settings
from streams.wiring.deployment import check_reader

_T = TypeVar("_T")

if TYPE_CHECKING:
    from streams.edge.redis.view_store import RedisViews


async def ranked(reader: Sessions, order: Order, limit: int) -> list[SessionView]:
    """Return the first sessions of an order; by pressure, live ones come first."""
    if order is Order.recent:
        return await reader.ranked("recent", limit)
    return await reader.fullest(limit, SystemClock().now_ms() - THRESHOLDS.stale_after_ms)


def stored_views(settings: Settings) -> "RedisViews":
    """Return the view store of the settings. Raises ConfigError, with what needs no Redis."""
    try:
        return wiring.redis_views(settings)
    except ConfigError as error:
        if settings.redis_url is not None:
            raise
        raise ConfigError(
            f"{error}; or see this machine's transcripts with `contextgauge view`, "
            "`contextgauge top` or `contextgauge sessions`"
        ) from None


@asynccontextmanager
async def opened_views(settings: Settings) -> AsyncIterator["RedisViews"]:
    """Give the view store of the settings, whose keys are this deployment's. Raises ConfigError."""
    async with wiring.started(stored_views(settings)) as store:
        await check_reader(settings)
        yield store


async def find_session(reader: Sessions, name: str) -> tuple[SessionView, CompactionPoints]:
    """Return a session, and where its compactions are expected. Raises SessionLookupError."""
    view = await reader.find(name)
    return view, await reader.points([view], wiring.compaction_points(wiring.settings()))


def read_views(read: Callable[[Sessions], Awaitable[_T]], within_s: float | None = None) -> _T:
    """Return what `read` returns, of the views in the settings' Redis.

    Raises StopError where there is no such session, or where the views are gone, and RetryError
    where that takes longer than `within_s`.
    """
    settings = wiring.settings()

    async def run() -> _T:
        try:
            async with asyncio.timeout(within_s), opened_views(settings) as store:
                return await read(await active_sessions(store, SystemClock()))
        except TimeoutError:
            raise RetryError(f"Redis did not answer within {within_s:g} s") from None

    try:
        return asyncio.run(run())
    except (SessionLookupError, ViewsGoneError) as error:
        # Ids are input, and each line of an error is printed as one of its own.
        raise StopError(safe(str(error))) from error
