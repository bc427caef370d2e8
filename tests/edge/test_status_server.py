"""Metrics and health over HTTP: their paths, and that they answer while the event loop does not."""

import json
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import StatusServer, answers, listening, port_of
from streams.ports import Health
from tests.edge.test_health import FakeClock
from tests.patience import PATIENCE_S


class Served:
    """A server under test, and what it serves."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.telemetry = PrometheusTelemetry()
        self.health = Health("derive", self.clock, 60.0)
        listener = listening("127.0.0.1", 0)
        self.server = StatusServer(listener, answers(self.telemetry, self.health))
        self.server.start()
        self.port = port_of(listener)

    def ask(self, path: str, method: str = "GET", host: str | None = None) -> tuple[int, str, str]:
        """Return the status, the content type and the body."""
        headers = {} if host is None else {"Host": host}
        address = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(address, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                body = answer.read().decode()
                return answer.status, answer.headers["Content-Type"], body
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read().decode()


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.server.stop()


def test_figures_are_served_for_prometheus(served: Served) -> None:
    served.telemetry.count("derive_messages", 3, partition="1")
    status, content_type, body = served.ask("/metrics?name=x")
    assert (status, content_type.split(";")[0]) == (200, "text/plain")
    assert 'contextgauge_derive_messages_total{partition="1"} 3.0\n' in body


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_a_web_page_with_a_name_of_its_own_for_this_machine_reads_nothing(
    served: Served, path: str
) -> None:
    status, _, body = served.ask(path, host=f"evil.example:{served.port}")
    assert status == 421
    assert "set CONTEXTGAUGE_METRICS_HOST" in body
    for host in ("localhost:9464", "127.0.0.1", "[::1]:9464"):
        assert served.ask(path, host=host)[0] in {200, 503}


def test_a_server_of_all_interfaces_answers_to_any_name() -> None:
    listener = listening("0.0.0.0", 0)  # noqa: S104 -- what is tested
    server = StatusServer(listener, answers(*_nothing()))
    server.start()
    address = f"http://127.0.0.1:{port_of(listener)}/metrics"
    request = urllib.request.Request(address, headers={"Host": "deriver.example:9464"})
    try:
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200
    finally:
        server.stop()


def test_health_is_json_with_a_matching_status_code(served: Served) -> None:
    status, content_type, body = served.ask("/healthz")
    assert (status, content_type, json.loads(body)["live"]) == (200, "application/json", True)
    status, _, body = served.ask("/readyz")
    assert (status, json.loads(body)["reasons"]) == (503, ["the worker is starting"])
    served.health.worker("member")
    assert served.ask("/readyz")[0] == 200


def test_the_root_lists_the_endpoints_and_other_paths_are_not_found(served: Served) -> None:
    assert served.ask("/") == (200, "text/plain; charset=utf-8", "/metrics\n/healthz\n/readyz\n")
    assert served.ask("/metric")[0] == 404
    assert served.ask("/metric", "HEAD") == (404, "text/plain; charset=utf-8", "")
    assert served.ask("/healthz", "POST")[0] == 501


async def test_it_answers_while_the_event_loop_is_blocked(served: Served) -> None:
    served.health.beat()
    served.clock.now_s += 61
    seen: list[tuple[int, str, str]] = []
    asking = threading.Thread(target=lambda: seen.append(served.ask("/healthz")))
    asking.start()
    # In the loop's own thread: nothing else of the loop runs meanwhile.
    asking.join(PATIENCE_S)
    (answer,) = seen
    assert answer[0] == 503
    assert "the event loop has stood still" in answer[2]


def test_a_prober_that_disconnects_causes_no_error(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    hurt = struct.pack("ii", 1, 0)  # closing with this resets the connection
    served.telemetry.count("derive_messages", 3, partition="1" * 10_000_000)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, hurt)
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert client.recv(1)
    assert served.ask("/healthz")[0] == 200
    # The threads that answered have ended, or at least noticed.
    for thread in threading.enumerate():
        if "process_request" in thread.name:
            thread.join(PATIENCE_S)
    assert capfd.readouterr().err == ""


def test_a_taken_port_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            listening("127.0.0.1", port_of(taken))


def test_it_serves_over_ipv6_too() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        listener = listening("::1", 0)
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    server = StatusServer(listener, answers(*_nothing()))
    server.start()
    try:
        with urllib.request.urlopen(f"http://[::1]:{port_of(listener)}/healthz") as answer:
            assert answer.status == 200
    finally:
        server.stop()


def _nothing() -> tuple[PrometheusTelemetry, Health]:
    return PrometheusTelemetry(), Health("derive", FakeClock(), 60.0)
