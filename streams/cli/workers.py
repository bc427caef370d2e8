"""`contextgauge derive` and `contextgauge project`: the long-running workers.

SIGTERM and SIGINT (Ctrl-C) end a worker in good order; a second one ends it at once, which is
safe too: what was not committed is done again by the next.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Annotated, TypeAlias

import structlog
import typer
import uvloop

from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli import logs
from streams.core.errors import ConfigError, StopError
from streams.edge.clock import SystemClock
from streams.edge.metrics import PrometheusTelemetry, start_metrics_server
from streams.flow.retry import Patience
from streams.settings import Settings

Work: TypeAlias = Callable[
    [Settings, PrometheusTelemetry, asyncio.Event], Coroutine[None, None, None]
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

logger = structlog.get_logger()


def derive(*, allow_dead_letters: AllowDeadLetters = False) -> None:
    """Derive context records from the messages on Kafka, until told to stop.

    Reads agent.messages and writes context.events, dead letters and its state in transactions:
    start as many workers as there are partitions, and kill any at any time.
    """

    async def work(chosen: Settings, telemetry: PrometheusTelemetry, stop: asyncio.Event) -> None:
        log = wiring.kafka_log(chosen, "contextgauge-derive")
        try:
            await wiring.derive(
                chosen,
                log,
                telemetry=telemetry,
                clock=SystemClock(),
                stop=stop,
                allow_dead_letters=allow_dead_letters,
            )
        finally:
            await log.stop()

    run("derive", work, wiring.bootstrap_servers)


def project() -> None:
    """Fold the context records on Kafka into views in Redis, until told to stop.

    Where Redis has no views yet, or lost some, they are built from the beginning of
    context.events. Start as many workers as there are partitions, and kill any at any time.
    """

    async def work(chosen: Settings, telemetry: PrometheusTelemetry, stop: asyncio.Event) -> None:
        log = wiring.kafka_log(chosen, "contextgauge-project")
        store = wiring.redis_views(chosen)
        try:
            await wiring.project(
                chosen, log, store, telemetry=telemetry, clock=SystemClock(), stop=stop
            )
        finally:
            await store.stop()
            await log.stop()

    run("project", work, wiring.bootstrap_servers, wiring.redis_url)


def run(name: str, work: Work, *needed: Callable[[Settings], str]) -> None:
    """Run a worker to its end: settings, logs, metrics and signals are the same for all.

    `needed` are the addresses that it cannot do without. Raises StopError, ConfigError of the
    settings first of all.
    """
    chosen = wiring.settings()
    for address in needed:
        address(chosen)
    no_broker = asyncio.Event()
    logs.configure(chosen, no_broker.set)
    structlog.contextvars.bind_contextvars(worker=name)
    uvloop.run(_run(name, work, chosen, no_broker))


async def _run(name: str, work: Work, chosen: Settings, no_broker: asyncio.Event) -> None:
    telemetry = PrometheusTelemetry()
    try:
        port = start_metrics_server(telemetry, chosen.metrics_port, chosen.metrics_host)
    except OSError as error:
        raise ConfigError(
            f"CONTEXTGAUGE_METRICS_PORT={chosen.metrics_port} cannot be used on "
            f"{chosen.metrics_host} ({error.strerror}): choose another, or 0 for any free one"
        ) from error
    logger.info("started", metrics=f"http://{chosen.metrics_host}:{port}/metrics")
    stop = asyncio.Event()
    task = asyncio.current_task()

    def end(received: signal.Signals) -> None:
        if stop.is_set() and task is not None:
            logger.warning("ending at once", signal=received.name)
            task.cancel()
            return
        logger.info("stopping", signal=received.name)
        stop.set()

    loop = asyncio.get_running_loop()
    for received in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(received, end, received)
    patience = Patience(SystemClock(), telemetry, stop, name)
    telling = asyncio.create_task(_tell_of_outages(chosen, patience, no_broker))

    def refused() -> StopError | None:
        """Return why the broker will not have us any more, such as a password that has changed."""
        wrong = telling.exception() if telling.done() and not telling.cancelled() else None
        return wrong if isinstance(wrong, StopError) else None

    def end_if_refused(_: asyncio.Task[None]) -> None:
        if task is not None and refused() is not None:
            task.cancel()

    telling.add_done_callback(end_if_refused)
    try:
        await work(chosen, telemetry, stop)
    except asyncio.CancelledError:
        wrong = refused()
        raise (typer.Exit(128 + signal.SIGTERM) if wrong is None else wrong) from None
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
    logger.info("stopped", worker=name)


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
