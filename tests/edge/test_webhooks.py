"""Calls of webhooks against a real server: what is sent, how it is signed, what answers mean."""

import asyncio
import base64
import gzip
import hashlib
import hmac
import ssl
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from streams.edge.alerts.rules_file import Address, key_of
from streams.edge.alerts.webhooks import HttpWebhook, signature_of
from tests.secure.certificates import Authority
from tests.web_kit import web_server


class At(SystemClock):
    """A clock that stands."""

    def now_ms(self) -> int:
        return 1_793_534_400_500


class Server:
    """Answers with a status and headers, and keeps what it was sent."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b"x" * 100_000
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((request.path, headers, body))
        return web.Response(status=self.status, headers=self.headers, body=self.body)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    async with web_server(server.handle, "*") as address:
        server.url = f"{address}/hook"
        yield server


@pytest.fixture
async def webhook(server: Server) -> AsyncIterator[HttpWebhook]:
    webhook = HttpWebhook(Address(server.url, b"s3cret"), 2.0, At())
    yield webhook
    await webhook.stop()


async def test_a_call_is_signed_per_the_specification(server: Server, webhook: HttpWebhook) -> None:
    answer = await webhook.call("the-id", b'{"a":1}')
    assert answer.outcome == "delivered"
    ((path, headers, body),) = server.requests
    assert (path, body) == ("/hook", b'{"a":1}')
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == "the-id"
    assert headers["webhook-timestamp"] == "1793534400"
    mac = hmac.new(b"s3cret", b'the-id.1793534400.{"a":1}', hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()


def test_the_example_of_the_specification_is_reproduced() -> None:
    """The test vector that the specification's libraries share."""
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signature = signature_of(
        key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}'
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_an_invalid_base64_secret_is_reported_and_not_shown() -> None:
    with pytest.raises(ConfigError) as error:
        key_of("whsec_not base64!")
    assert "not base64!" not in str(error.value)


async def test_without_a_secret_nothing_is_signed(server: Server) -> None:
    webhook = HttpWebhook(Address(server.url), 2.0, At())
    await webhook.call("the-id", b"{}")
    await webhook.stop()
    assert "webhook-signature" not in server.requests[0][1]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, "delivered"),
        (204, "delivered"),
        (301, "retry"),
        (400, "refused"),
        (401, "retry"),
        (404, "retry"),
        (410, "refused"),
        (413, "refused"),
        (429, "retry"),
        (500, "retry"),
        (503, "retry"),
    ],
)
async def test_the_status_code_determines_the_outcome(
    server: Server, webhook: HttpWebhook, status: int, outcome: str
) -> None:
    server.status = status
    server.headers = {"location": server.url} if status == 301 else {}
    answer = await webhook.call("the-id", b"{}")
    assert answer.outcome == outcome
    assert answer.reason == f"it answered {status}"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("asked", "pause_s"),
    [
        ("7", 7.0),
        ("99999", 3_600.0),
        ("Sun, 01 Nov 2026 12:00:10 GMT", 9.5),
        ("Sun, 01 Nov 2020 12:00:10 GMT", 0.0),
        ("soon", None),
    ],
)
async def test_the_retry_after_header_of_a_receiver_is_read(
    server: Server, webhook: HttpWebhook, asked: str, pause_s: float | None
) -> None:
    server.status, server.headers = 429, {"retry-after": asked}
    assert (await webhook.call("the-id", b"{}")).retry_after_s == pause_s


async def test_a_refused_connection_is_retried_and_the_address_is_not_shown() -> None:
    webhook = HttpWebhook(Address("http://127.0.0.1:1/secret-token"), 2.0, At())
    answer = await webhook.call("the-id", b"{}")
    await webhook.stop()
    assert (answer.outcome, answer.reason) == (
        "retry",
        "it cannot be reached: the connection was refused",
    )


async def _said(url: str, context: ssl.SSLContext | None = None) -> str:
    webhook = HttpWebhook(Address(url, context=context), 5.0, At())
    try:
        answer = await webhook.call("the-id", b"{}")
    finally:
        await webhook.stop()
    assert answer.outcome == "retry"
    return answer.reason.removeprefix("it cannot be reached: ")


async def test_an_unknown_host_name_is_reported() -> None:
    assert await _said("http://secret.name.invalid/hook") == "its name is not found"


async def test_an_unavailable_proxy_is_reported_as_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert await _said("http://hooks.invalid/") == "the proxy: the connection was refused"


@pytest.mark.parametrize("secure", [False, True])
async def test_a_closed_connection_is_reported_with_the_cause(secure: bool) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"no TLS" if secure else b"")
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        said = await _said(f"http{'s' if secure else ''}://127.0.0.1:{port}/")
    assert said == ("TLS: no agreement with it" if secure else "it closed the connection")


@pytest.mark.parametrize(
    ("is_trusted", "host", "days", "why"),
    [
        (False, "localhost", 10, "is of no trusted authority"),
        (True, "other.example", 10, "is another name's"),
        (True, "localhost", -1, "has expired"),
    ],
)
async def test_a_rejected_certificate_is_reported_with_the_cause(
    tmp_path: Path, is_trusted: bool, host: str, days: int, why: str
) -> None:
    authority = Authority.make(tmp_path, "authority")
    made = authority.sign("server", host, days=days)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.certificate, made.key)
    trust = ssl.create_default_context(cafile=authority.file) if is_trusted else None

    def hear(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        said = await _said(f"https://localhost:{port}/", trust)
    assert said == f"TLS: its certificate {why}"


async def test_a_timeout_is_retried() -> None:
    async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    webhook = HttpWebhook(Address(f"http://127.0.0.1:{port}/"), 0.2, At())
    answer = await webhook.call("the-id", b"{}")
    await webhook.stop()
    server.close()
    assert (answer.outcome, answer.reason) == ("retry", "it did not answer in time")


@pytest.mark.parametrize("secret", ["", "whsec_"])
def test_an_empty_secret_is_refused(secret: str) -> None:
    with pytest.raises(ConfigError, match="empty"):
        key_of(secret)


async def test_an_answer_counts_once_its_status_is_known() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as broken:
        port = broken.sockets[0].getsockname()[1]
        webhook = HttpWebhook(Address(f"http://127.0.0.1:{port}/"), 5.0, At())
        assert (await webhook.call("id", b"{}")).outcome == "delivered"
        await webhook.stop()


@pytest.mark.parametrize(("exempt", "is_proxied"), [("", True), ("127.0.0.1", False)])
async def test_the_environments_proxy_is_used_and_no_password_of_netrc_is_sent(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exempt: str, is_proxied: bool
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", exempt)
    webhook = HttpWebhook(Address("http://127.0.0.1:9/hook"), 2.0, At())
    answer = await webhook.call("the-id", b"{}")
    await webhook.stop()
    assert (answer.outcome == "delivered") == is_proxied
    assert len(server.requests) == is_proxied
    assert all("authorization" not in headers for _, headers, _ in server.requests)
    webhook = HttpWebhook(Address(server.url), 2.0, At())
    await webhook.call("the-id", b"{}")
    await webhook.stop()
    assert "authorization" not in server.requests[-1][1]


async def test_an_answer_that_unpacks_to_much_is_not_unpacked_whole(
    server: Server, webhook: HttpWebhook
) -> None:
    server.headers = {"content-encoding": "gzip"}
    server.body = gzip.compress(bytes(200 << 20))
    tracemalloc.start()
    try:
        answer = await webhook.call("id", b"{}")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.outcome == "delivered"
    assert peak < 16 << 20
