"""The server's figures: what a reader of the feed counts, and what a session is made of."""

import asyncio
from unittest.mock import Mock

from bench.serving import Reader, Writer, ask
from contextgauge.clock import SystemClock
from streams.edge.redis.view_store import RedisViews
from streams.serve.feed.feed import encoded
from tests.doubles.dump import dump
from tests.patience import PATIENCE_S


async def test_a_reader_counts_events_and_their_delay() -> None:
    reader = Reader("/v1/stream", is_sampled=True)
    transport = Mock(spec=asyncio.WriteTransport)
    reader.connection_made(transport)
    assert transport.write.call_args.args[0].startswith(b"GET /v1/stream HTTP/1.1\r\n")
    record = b'{"version":2,"time_ms":%d,"sequence":1}' % (SystemClock().now_ms() - 40)
    event = encoded(b"record", "1:0", record)
    reader.data_received(event)
    assert reader.events == 0
    reader.is_counting = True
    reader.data_received(event * 3)
    assert reader.events == 3
    assert all(40 <= delay < 5_000 for delay in reader.delays_ms)
    assert len(reader.delays_ms) == 3


async def test_sessions_are_projected_and_grow(redis_url: str) -> None:
    url = redis_url.rpartition("/")[0] + "/7"
    writer, store = Writer(url), RedisViews(url)
    await writer.start()
    await writer.begin(20)
    growing = asyncio.create_task(writer.grow(20, 500))
    async with asyncio.timeout(PATIENCE_S):
        while True:
            dumps = [await dump(store, 1, partition) for partition in range(4)]
            live = sum(len(dump.live) for dump in dumps)
            if live > 20 * 10:
                break
    growing.cancel()
    assert sum(len(dump.views) for dump in dumps) == 20
    await store.stop()


async def test_answers_are_read_to_their_end() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    answers = await ask(port, "/", "", asyncio.get_running_loop().time() + 0.05)
    assert answers.statuses == {200}
    assert answers.length == 5
    assert answers.delays_s
    server.close()
