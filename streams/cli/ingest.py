"""`contextgauge ingest`: takes messages over HTTP; uvicorn in a worker's event loop.

It reads nothing, and writes `agent.messages` only. Any number of servers may run, and any may be
killed: what was answered with 202 is in Kafka.
"""

import warnings
from functools import partial
from typing import Annotated

import structlog
import typer

from contextgauge.delivery.outgoing import MessageFormat
from contextgauge.delivery.sender import DeliveryConfig, Problem
from contextgauge.errors import ConfigError
from contextgauge.kafka.connection import UnsafeConnectionWarning, bootstrap_servers
from contextgauge.settings.forms import PREFIX
from contextgauge.state_folder import state_folder, text_key
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli.serve.running import Report, run_server
from streams.cli.serve.server import log_problem
from streams.cli.workers.addresses import listener_of, url_of
from streams.cli.workers.run import run
from streams.edge.hosts import is_of_this_machine
from streams.edge.telemetry.server import answers
from streams.ingest.context import Ingesting
from streams.ingest.intake import Intake
from streams.settings import Settings
from streams.wiring.context import WorkerContext
from streams.wiring.serve import publishers

_WAITING_MESSAGES = 100_000
"""Some 100 MB of small messages in memory."""

logger = structlog.get_logger()


def ingest(
    *,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            show_default=f"{PREFIX}INGEST_HOST",
            help="Address to listen on: 127.0.0.1 is for this machine only, 0.0.0.0 for all.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65_535,
            show_default=f"{PREFIX}INGEST_PORT",
            help="Port to listen on; 0: any free one.",
        ),
    ] = None,
) -> None:
    """Take messages over HTTP and publish them to Kafka, until stopped.

    A request is answered with 202 once Kafka has acknowledged its messages. By default only this
    machine can connect, on port 8643.
    """
    if host == "":
        raise ConfigError("--host is empty: name an address, such as 127.0.0.1")
    options = {"ingest_host": host, "ingest_port": port}
    given = {name: value for name, value in options.items() if value is not None}
    run("ingest", _ingest, bootstrap_servers, options=given)


async def _ingest(worker: WorkerContext) -> None:
    """Serve until it is stopped. Raises ConfigError, StopError."""
    from streams.ingest.app import create_ingest_app  # noqa: PLC0415 -- loads aiokafka

    settings = worker.settings
    ingesting = _ingesting(worker)
    if settings.ingest_tokens_file is None and not ingesting.only_here:
        warnings.warn(
            f"{PREFIX}INGEST_HOST={settings.ingest_host} without {PREFIX}INGEST_TOKENS_FILE: "
            "anyone who can connect can publish messages of any session",
            UnsafeConnectionWarning,
            stacklevel=1,
        )
    listener = listener_of("INGEST", settings.ingest_host, settings.ingest_port)
    with listener:
        logger.info("taking messages", address=url_of(settings.ingest_host, listener))
        begun = partial(worker.health.worker, "member")
        app = create_ingest_app(ingesting)
        await run_server(worker.stop, app, listener, settings.ingest_proxies, begun)


def _ingesting(worker: WorkerContext) -> Ingesting:
    """Return what the server needs. Raises ConfigError."""
    settings = worker.settings
    form = _form(settings)
    config = DeliveryConfig(
        topic=settings.topic(AGENT_MESSAGES).name,
        form=form,
        when_full="drop_new",
        max_messages=_WAITING_MESSAGES,
        max_bytes=settings.ingest_waiting_bytes,
    )
    log = wiring.kafka_log(settings, "contextgauge-ingest")
    return Ingesting(
        clock=worker.clock,
        telemetry=worker.telemetry,
        health=worker.health,
        probe=answers(worker.telemetry, worker.health),
        report=Report(worker.clock, log_problem),
        readers=publishers(settings),
        only_here=is_of_this_machine(settings.ingest_host),
        names=[name.lower() for name in settings.ingest_names],
        requests_per_s=settings.ingest_requests_per_s,
        settings=f"{PREFIX}INGEST",
        host_setting=f"{PREFIX}INGEST_HOST",
        rate_hint="send several messages in one request",
        requests_metric="ingest_requests",
        seconds_metric="ingest_request_seconds",
        intake=Intake(log, worker.clock, config, _log_delivery),
        form=form,
        body_limit_bytes=settings.ingest_body_limit_bytes,
        waiting_bytes=settings.ingest_waiting_bytes,
    )


def _form(settings: Settings) -> MessageFormat:
    key = text_key(state_folder(settings.state_folder)) if settings.ingest_no_text else None
    return MessageFormat(settings.message_limit_bytes, key)


def _log_delivery(kind: Problem, text: str) -> None:
    logger.warning("messages wait", kind=kind, problem=text)
