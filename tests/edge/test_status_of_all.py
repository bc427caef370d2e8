"""The status of several processes at one address: what is gathered, and what is missing."""

import json
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streams.edge.telemetry.combined import LOOPBACK, of_all
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import StatusResponse, StatusServer, answers, listening, port_of
from streams.ports import Health
from tests.edge.test_health import FakeClock


class Two:
    """Two processes' servers, and what answers for both."""

    def __init__(self) -> None:
        self.telemetries = {number: PrometheusTelemetry("derive", "worker") for number in (1, 2)}
        self.boards = {number: Health("derive", FakeClock(), 60.0) for number in (1, 2)}
        self.servers: dict[int, StatusServer] = {}
        ports = {}
        for number, telemetry in self.telemetries.items():
            listener = listening(LOOPBACK, 0)
            ports[number] = port_of(listener)
            server = StatusServer(listener, answers(telemetry, self.boards[number]))
            self.servers[number] = server
            server.start()
        self._answer = of_all("derive", ports)

    def ask(self, path: str, accept: str = "") -> StatusResponse:
        return self._answer(path, accept)


@pytest.fixture
def two() -> Iterator[Two]:
    two = Two()
    yield two
    for server in two.servers.values():
        server.stop()


def test_figures_of_processes_are_distinguished_by_a_label(two: Two) -> None:
    two.telemetries[1].count("derive_messages", 3, partition="0")
    two.telemetries[2].count("derive_messages", 4, partition="1")
    two.telemetries[2].observe("derive_commit_seconds", 0.1)
    answer = two.ask("/metrics")
    assert (answer.status, answer.content_type.split(";")[0]) == (HTTPStatus.OK, "text/plain")
    text = answer.body.decode()
    assert 'contextgauge_derive_messages_total{partition="0",process="1"} 3.0\n' in text
    assert 'contextgauge_derive_messages_total{partition="1",process="2"} 4.0\n' in text
    assert 'contextgauge_derive_commit_seconds_count{process="2"} 1.0\n' in text
    heads = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads)) > 10
    single = two.telemetries[1].registry.collect()
    assert {family.name for family in single} == {
        family.name for family in text_string_to_metric_families(text)
    }


def test_figures_are_available_in_openmetrics_format(two: Two) -> None:
    two.telemetries[2].count("derive_messages", 4, partition="1")
    answer = two.ask("/metrics", "application/openmetrics-text; version=1.0.0")
    assert answer.content_type.startswith("application/openmetrics-text")
    text = answer.body.decode()
    assert 'contextgauge_derive_messages_total{partition="1",process="2"} 4.0\n' in text
    assert text.endswith("# EOF\n")


def test_health_is_good_if_all_processes_are_healthy(two: Two) -> None:
    two.boards[1].worker("member")
    answer = two.ask("/readyz")
    document = json.loads(answer.body)
    assert (answer.status, document["ready"]) == (HTTPStatus.SERVICE_UNAVAILABLE, False)
    assert document["reasons"] == ["process 2: the worker is starting"]
    assert document["processes"]["1"]["ready"] is True
    two.boards[2].worker("member")
    answer = two.ask("/readyz")
    assert (answer.status, json.loads(answer.body)["reasons"]) == (HTTPStatus.OK, [])
    answer = two.ask("/healthz")
    assert (answer.status, json.loads(answer.body)["live"]) == (HTTPStatus.OK, True)


def test_an_unresponsive_process_is_reported(two: Two) -> None:
    two.telemetries[1].count("derive_messages", 3, partition="0")
    two.servers[2].stop()
    answer = two.ask("/healthz")
    document = json.loads(answer.body)
    assert (answer.status, document["live"]) == (HTTPStatus.SERVICE_UNAVAILABLE, False)
    assert document["reasons"] == ["process 2 does not answer"]
    assert document["processes"].keys() == {"1"}
    figures = two.ask("/metrics")
    assert figures.status == HTTPStatus.OK
    assert b'process="1"' in figures.body
    assert b'process="2"' not in figures.body


def test_the_root_lists_the_endpoints_and_other_paths_are_not_found(two: Two) -> None:
    assert two.ask("/").status == HTTPStatus.OK
    assert two.ask("/metric").status == HTTPStatus.NOT_FOUND
