"""A web server of a test's own, on a free port of this machine."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def web_server(
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]], method: str = "POST"
) -> AsyncIterator[str]:
    """Let a function answer what is asked with a method, `*` for any; yield the address."""
    app = web.Application()
    app.router.add_route(method, "/{tail:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
