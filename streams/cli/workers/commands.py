"""`contextgauge derive` and `contextgauge project`: the long-running workers.

SIGTERM and SIGINT (Ctrl-C) end a worker in good order, within a time limit; a second one ends it
at once, which is safe too: what was not committed is done again by the next.
"""

import asyncio
from collections.abc import Callable, Coroutine
from importlib.metadata import version
from typing import Annotated, TypeAlias

import structlog
import typer
import uvloop

from contextgauge.clock import SystemClock
from contextgauge.errors import ContextgaugeError, RetryError
from contextgauge.kafka.connection import bootstrap_servers
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli import logs
from streams.cli.build import is_compiled
from streams.cli.exits import Exit, code_of
from streams.cli.workers.collector import look_among_the_young
from streams.cli.workers.status_address import serving
from streams.cli.workers.stopping import Stopping
from streams.cli.workers.supervisor import Part, spread
from streams.edge.telemetry.health import HealthBoard
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import METRICS
from streams.flow.common.retry import Patience
from streams.settings import Settings
from streams.settings.workers import MOST_PROCESSES
from streams.wiring import workers

Work: TypeAlias = Callable[
    [Settings, PrometheusTelemetry, HealthBoard, asyncio.Event], Coroutine[None, None, None]
]
"""A worker: it runs until the event is set."""

AllowDeadLetters = Annotated[
    bool,
    typer.Option(
        "--allow-dead-letters",
        help="Go on where more than half of the last 1 000 messages were dead letters; "
        "otherwise the worker stops then.",
    ),
]

Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        min=1,
        max=MOST_PROCESSES,
        show_default="CONTEXTGAUGE_DERIVE_PROCESSES, 1",
        help="Run so many workers as processes of this command, to use more than one CPU: they "
        "share the partitions, stop together, and are told of at one address.",
    ),
]

logger = structlog.get_logger()


def derive(*, processes: Processes = None, allow_dead_letters: AllowDeadLetters = False) -> None:
    """Derive context records from the messages on Kafka, until told to stop.

    Reads agent.messages and writes context.events, dead letters and its state in transactions:
    start as many workers as there are partitions, and kill any at any time.
    """

    async def work(
        chosen: Settings,
        telemetry: PrometheusTelemetry,
        health: HealthBoard,
        stop: asyncio.Event,
    ) -> None:
        log = wiring.kafka_log(chosen, "contextgauge-derive")
        try:
            await workers.derive(
                chosen,
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
        processes=lambda chosen: processes or chosen.derive_processes,
    )


def project() -> None:
    """Fold the context records on Kafka into views in Redis, until told to stop.

    Where Redis has no views yet, or lost some, they are built from the beginning of
    context.events. Start as many workers as there are partitions, and kill any at any time.
    """

    async def work(
        chosen: Settings,
        telemetry: PrometheusTelemetry,
        health: HealthBoard,
        stop: asyncio.Event,
    ) -> None:
        log = wiring.kafka_log(chosen, "contextgauge-project")
        store = wiring.redis_views(chosen)
        try:
            await workers.project(
                chosen,
                log,
                store,
                telemetry=telemetry,
                health=health,
                clock=SystemClock(),
                stop=stop,
            )
        finally:
            await store.stop()
            await log.stop()

    run("project", work, bootstrap_servers, wiring.redis_url)


def run(
    name: str,
    work: Work,
    *needed: Callable[[Settings], str],
    processes: Callable[[Settings], int] = lambda _: 1,
) -> None:
    """Run a worker to its end: settings, logs, metrics, health and signals are the same for all.

    `needed` are the addresses that it cannot do without. Where there are to be more `processes`
    than one, each of them comes to the worker, and this one sees to them instead. Raises StopError,
    ConfigError of the settings first of all.
    """
    chosen = wiring.settings()
    for address in needed:
        address(chosen)
    structlog.contextvars.bind_contextvars(worker=name)
    count = processes(chosen)
    part = Part(chosen) if count == 1 else spread(name, chosen, count)
    no_broker = asyncio.Event()
    logs.configure(part.settings, no_broker.set)
    look_among_the_young()
    stopping = Stopping(SystemClock(), chosen.stop_timeout_s, part.lifeline)
    try:
        uvloop.run(_run(name, work, part, stopping, no_broker))
    except Exception as error:
        code = code_of(error) if isinstance(error, ContextgaugeError) else Exit.INTERNAL
        logger.error("stopped", error=type(error).__name__, exit_code=int(code))  # noqa: TRY400 -- told in full by whoever ran the command
        raise


async def _run(
    name: str, work: Work, part: Part, stopping: Stopping, no_broker: asyncio.Event
) -> None:
    chosen = part.settings
    telemetry, clock, stop = PrometheusTelemetry(name, "worker"), SystemClock(), asyncio.Event()
    health = HealthBoard(name, clock, chosen.stuck_after_s)
    stopping.listen(stop, lambda: health.worker("stopping"), health.doing)
    async with serving(chosen, telemetry, health, part.listener) as address:
        logger.info(
            "started",
            metrics=f"{address}{METRICS}",
            version=version("contextgauge"),
            compiled=is_compiled(),
        )
        patience = Patience(clock, telemetry, health, stop, "kafka")
        telling = asyncio.create_task(_tell_of_outages(chosen, patience, no_broker))
        working = asyncio.create_task(work(chosen, telemetry, health, stop))
        try:
            await asyncio.wait({telling, working}, return_when=asyncio.FIRST_COMPLETED)
            wrong = telling.exception() if telling.done() else None
            if wrong is not None and not isinstance(wrong, RetryError):
                # The broker will not have us any more, as after a password has changed.
                raise wrong
            # Else the watch has only given up waiting, being told to stop.
            await working
        finally:
            for task in (telling, working):
                task.cancel()
            await asyncio.gather(telling, working, return_exceptions=True)
    logger.info("stopped", seconds=round(stopping.taken_s or 0.0, 2))


async def _tell_of_outages(chosen: Settings, patience: Patience, no_broker: asyncio.Event) -> None:
    """Say that Kafka is away, and when it works again. Raises StopError where it refuses us.

    A member whose broker goes away hears nothing of it: the client goes on trying on its own.
    """
    topic = chosen.topic(AGENT_MESSAGES).name

    async def ask() -> None:
        log = wiring.kafka_log(chosen, "contextgauge-watch")
        await log.start()
        try:
            await log.partition_counts([topic])
        finally:
            await log.stop()

    while True:
        await no_broker.wait()
        await patience.until_done(ask)
        no_broker.clear()
