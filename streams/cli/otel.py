"""`contextgauge otel`: records as events and figures for a backend of OpenTelemetry."""

from typing import Annotated, Final

import typer

from contextgauge.clock import SystemClock
from contextgauge.kafka.connection import bootstrap_servers
from schemas.topics import HOUR_MS
from streams.cli.extras import needs
from streams.cli.times import TIME_FORMS, parse_time
from streams.cli.workers.run import run
from streams.wiring.context import WorkerContext

_SDK: Final = frozenset(("opentelemetry", "requests"))


def otel(
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            show_default="1h ago",
            help=f"Where the very first start begins: {TIME_FORMS}. Later ones go on where the "
            "last one ended.",
        ),
    ] = None,
) -> None:
    """Send records to an OpenTelemetry collector, until stopped.

    Reads context.events and exports events and metrics over OTLP/HTTP. Where to is in the standard
    variables, such as OTEL_EXPORTER_OTLP_ENDPOINT. Records are acknowledged once the collector has
    accepted them. Run up to one worker per partition; any of them may be killed at any time.
    """
    clock = SystemClock()
    begin_ms = None if since is None else parse_time("--since", since, clock.now_ms())
    with needs("otel", "otlp", _SDK):
        from streams.edge.otlp.backend import signals  # noqa: PLC0415 -- slow
    wanted = signals()

    def since_ms() -> int:
        return clock.now_ms() - HOUR_MS if begin_ms is None else begin_ms

    async def work(worker: WorkerContext) -> None:
        from streams.wiring.otel import send_records  # noqa: PLC0415 -- as above

        await send_records(worker, wanted, since_ms)

    run("otel", work, bootstrap_servers)
