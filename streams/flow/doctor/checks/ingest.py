"""The check of the server that takes messages over HTTP, where there is one."""

from collections.abc import Iterator

from streams.flow.doctor.facts import Expected, Facts, known
from streams.flow.doctor.findings import Result, check, ok, warning


@check("ingest.ready")
def ready(facts: Facts, expected: Expected) -> Iterator[Result]:  # noqa: ARG001 -- as the others
    """While it takes nothing, services that publish over HTTP keep their messages, or lose them."""
    server = known(facts.ingest)
    if not server.is_there:
        yield ok(f"no server takes messages over HTTP at {server.address}")
    elif server.reasons is None:
        yield ok(f"takes messages over HTTP at {server.address}")
    else:
        yield warning(
            f"takes no messages over HTTP: {server.reasons}",
            "See the log of `contextgauge ingest`, and the checks of Kafka and the topics. If "
            "another program has the port, set CONTEXTGAUGE_INGEST_PORT",
            server.address,
        )


CHECKS = (ready,)
