"""What all long-running commands share: settings, logs, metrics, health, signals.

SIGTERM and SIGINT (Ctrl-C) stop a worker gracefully, within a time limit. A second one stops it at
once, which is safe too: the next worker repeats what was not committed.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from importlib.metadata import version
from typing import TypeAlias

import structlog
import uvloop

from contextgauge.clock import SystemClock
from contextgauge.errors import ContextgaugeError, RetryError
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli import logs
from streams.cli.build import is_compiled
from streams.cli.exits import Exit, code_of
from streams.cli.machine import collect_young_garbage
from streams.cli.workers.addresses import serving
from streams.cli.workers.stopping import Stopping
from streams.cli.workers.supervisor import Part, spread
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import METRICS
from streams.flow.common.retry import RetryLoop
from streams.ports import Health
from streams.settings import Settings
from streams.wiring.context import WorkerContext

Work: TypeAlias = Callable[[WorkerContext], Coroutine[None, None, None]]

logger = structlog.get_logger()


def run(
    name: str,
    work: Work,
    *required: Callable[[Settings], str],
    processes: Callable[[Settings], int] = lambda _: 1,
    options: Mapping[str, object] | None = None,
) -> None:
    """Run a worker to its end.

    `required` return the addresses that it needs. With more than one of `processes`, each of them
    runs the worker and this process supervises them. `options` are settings that the command line
    overrides. Raises StopError, and ConfigError before anything is started.
    """
    settings = wiring.settings().model_copy(update=options)
    for address in required:
        address(settings)
    structlog.contextvars.bind_contextvars(worker=name)
    count = processes(settings)
    part = Part(settings) if count == 1 else spread(name, settings, count)
    no_broker = asyncio.Event()
    logs.configure(part.settings, no_broker.set)
    collect_young_garbage()
    stopping = Stopping(SystemClock(), settings.stop_timeout_s, part.lifeline)
    try:
        uvloop.run(_run(name, work, part, stopping, no_broker))
    except Exception as error:
        code = code_of(error) if isinstance(error, ContextgaugeError) else Exit.INTERNAL
        logger.error("stopped", error=type(error).__name__, exit_code=int(code))  # noqa: TRY400 -- `main` shows it in full
        raise


async def _run(
    name: str, work: Work, part: Part, stopping: Stopping, no_broker: asyncio.Event
) -> None:
    settings = part.settings
    telemetry, clock, stop = PrometheusTelemetry(name, "worker"), SystemClock(), asyncio.Event()
    health = Health(name, clock, settings.stuck_after_s)
    stopping.listen(stop, lambda: health.worker("stopping"), health.doing)
    async with serving(settings, telemetry, health, part.listener) as address:
        logger.info(
            "started",
            metrics=f"{address}{METRICS}",
            version=version("contextgauge"),
            compiled=is_compiled(),
        )
        worker = WorkerContext(
            settings=settings, telemetry=telemetry, health=health, clock=clock, stop=stop
        )
        patience = RetryLoop(worker, "kafka")
        watching = asyncio.create_task(_watch_kafka(settings, patience, no_broker))
        working = asyncio.create_task(work(worker))
        try:
            await asyncio.wait({watching, working}, return_when=asyncio.FIRST_COMPLETED)
            failure = watching.exception() if watching.done() else None
            if failure is not None and not isinstance(failure, RetryError):
                # Kafka rejects the connection, as after a changed password.
                raise failure
            # A RetryError only means that the watch gave up because the worker is stopping.
            await working
        finally:
            for task in (watching, working):
                task.cancel()
            await asyncio.gather(watching, working, return_exceptions=True)
    logger.info("stopped", seconds=round(stopping.taken_s or 0.0, 2))


async def _watch_kafka(settings: Settings, patience: RetryLoop, no_broker: asyncio.Event) -> None:
    """Log that Kafka is away, and that it is back. Raises StopError where it rejects the client.

    A group member gets no error while its broker is away: the Kafka client retries on its own.
    """
    topic = settings.topic(AGENT_MESSAGES).name

    async def ask() -> None:
        async with wiring.started(wiring.kafka_log(settings, "contextgauge-watch")) as log:
            await log.partition_counts([topic])

    while True:
        await no_broker.wait()
        await patience.run(ask)
        no_broker.clear()
