"""`contextgauge derive`, `project` and `conversations`: the workers of the pipeline."""

from functools import partial
from typing import Annotated

import typer

from contextgauge.kafka.connection import bootstrap_servers
from streams import wiring
from streams.cli.workers.run import run
from streams.settings.workers import MOST_PROCESSES
from streams.wiring import workers
from streams.wiring.context import WorkerContext
from streams.wiring.deployment import as_deployment


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
            help="Continue when more than half of the last 1,000 messages were dead letters, "
            "instead of stopping.",
        ),
    ] = False,
) -> None:
    """Derive context records from messages, until stopped.

    Reads agent.messages and writes context.events, dead letters and its state in transactions. Run
    up to one worker per partition; any of them may be killed at any time.
    """

    async def work(worker: WorkerContext) -> None:
        log = wiring.kafka_log(worker.settings, "contextgauge-derive")
        try:
            await workers.derive(
                worker,
                log,
                allow_dead_letters=allow_dead_letters,
                written_bytes=log.written_bytes,
            )
        finally:
            await log.stop()

    run(
        "derive",
        work,
        bootstrap_servers,
        processes=lambda settings: processes or settings.derive_processes,
    )


def project() -> None:
    """Fold context records into views in Redis, until stopped.

    Builds views that Redis does not have, or lost, from the beginning of context.events. Run up to
    one worker per partition; any of them may be killed at any time.
    """
    run("project", _project, bootstrap_servers, wiring.redis_url)


async def _project(worker: WorkerContext) -> None:
    log = wiring.kafka_log(worker.settings, "contextgauge-project")
    store = wiring.redis_views(worker.settings)
    try:
        await as_deployment(worker, partial(workers.project, worker, log, store))
    finally:
        await store.stop()
        await log.stop()


def conversations() -> None:
    """Keep the conversations of chosen sessions in Redis, until stopped.

    Whose text is kept is in the section [conversations] of the file in
    CONTEXTGAUGE_COMPACTION_FILE; without it, nothing is. Run up to one worker per partition; any of
    them may be killed at any time.
    """
    run("conversations", _conversations, bootstrap_servers, wiring.redis_url)


async def _conversations(worker: WorkerContext) -> None:
    workers.conversations_config(worker.settings)  # says what is wrong before anything is asked
    log = wiring.kafka_log(worker.settings, "contextgauge-conversations")
    store = wiring.redis_conversations(worker.settings)
    try:
        await as_deployment(worker, partial(workers.conversations, worker, log, store))
    finally:
        await store.stop()
        await log.stop()
