"""The status of several processes under one address: each is asked on demand.

Health is good where that of all is, and each reason names its process. Figures keep their
names and get one label more, `process`.
"""

import http.client
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from schemas.records import Json
from streams import codec
from streams.edge.telemetry.server import (
    LIVE,
    METRICS,
    READY,
    StatusHandler,
    StatusResponse,
    not_a_path,
    verdict,
)

LOOPBACK: Final = "127.0.0.1"
"""Where the processes serve their own: only the supervisor needs to reach them."""

_PATIENCE_S = 2.0
"""They answer from threads of their own, within milliseconds; a prober waits for 5 s or so."""

_WORD: Final = {LIVE: "live", READY: "ready"}


def of_all(name: str, ports: Mapping[int, int]) -> StatusHandler:
    """Return what answers for a worker's processes, which serve on these ports, by number."""

    def answer(path: str, accept: str) -> StatusResponse:
        if path == METRICS:
            encode, content_type = choose_encoder(accept)
            registry = CollectorRegistry()
            registry.register(_Figures(_asked(ports, path)))
            return StatusResponse(HTTPStatus.OK, content_type, encode(registry))
        if path in _WORD:
            return _health(name, _WORD[path], _asked(ports, path))
        return not_a_path(path)

    return answer


def _asked(ports: Mapping[int, int], path: str) -> dict[int, bytes | None]:
    """Return what each process answers, None where it does not."""

    def ask(port: int) -> bytes | None:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_PATIENCE_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    with ThreadPoolExecutor(len(ports)) as pool:
        return dict(zip(ports, pool.map(ask, ports.values()), strict=True))


def _health(name: str, word: str, bodies: Mapping[int, bytes | None]) -> StatusResponse:
    reasons: list[Json] = []
    processes: dict[str, Json] = {}
    is_good = True
    for number, body in bodies.items():
        if body is None:
            is_good = False
            reasons.append(f"process {number} does not answer")
            continue
        document = codec.loads(body)
        processes[str(number)] = document
        is_good = is_good and document[word]
        reasons += [f"process {number}: {reason}" for reason in document["reasons"]]
    return verdict(
        is_good, {word: is_good, "worker": name, "reasons": reasons, "processes": processes}
    )


class _Figures(Collector):
    """The figures of all processes that answered: a family's lines must stand together."""

    def __init__(self, bodies: Mapping[int, bytes | None]) -> None:
        self._bodies = bodies

    def collect(self) -> Iterable[Metric]:
        """Return the families, with the samples of all."""
        families: dict[str, Metric] = {}
        for number, body in self._bodies.items():
            for family in text_string_to_metric_families((body or b"").decode()):
                whole = families.setdefault(
                    family.name, Metric(family.name, family.documentation, family.type)
                )
                whole.samples += [
                    sample._replace(labels={**sample.labels, "process": str(number)})
                    for sample in family.samples
                ]
        return families.values()
