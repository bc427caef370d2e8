"""`contextgauge derive`: the worker that derives context records from messages."""

import asyncio
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.kafka.connection import bootstrap_servers
from streams import wiring
from streams.cli.workers.run import run
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.ports import Health
from streams.settings import Settings
from streams.settings.workers import MOST_PROCESSES
from streams.wiring import workers


def derive(
    *,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            metavar="N",
            min=1,
            max=MOST_PROCESSES,
            show_default="CONTEXTGAUGE_DERIVE_PROCESSES, 1",
            help="Number of worker processes, to use more than one CPU. They share the partitions "
            "and one metrics address, and stop together.",
        ),
    ] = None,
    allow_dead_letters: Annotated[
        bool,
        typer.Option(
            "--allow-dead-letters",
            help="Continue when more than half of the last 1 000 messages were dead letters, "
            "instead of stopping.",
        ),
    ] = False,
) -> None:
    """Derive context records from messages, until stopped.

    Reads agent.messages and writes context.events, dead letters and its state in transactions. Run
    up to one worker per partition; any of them may be killed at any time.
    """

    async def work(
        settings: Settings,
        telemetry: PrometheusTelemetry,
        health: Health,
        stop: asyncio.Event,
    ) -> None:
        log = wiring.kafka_log(settings, "contextgauge-derive")
        try:
            await workers.derive(
                settings,
                log,
                telemetry=telemetry,
                health=health,
                clock=SystemClock(),
                stop=stop,
                allow_dead_letters=allow_dead_letters,
            )
        finally:
            await log.stop()

    run(
        "derive",
        work,
        bootstrap_servers,
        processes=lambda settings: processes or settings.derive_processes,
    )
