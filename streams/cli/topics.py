"""`contextgauge topics`: create and list the Kafka topics."""

import asyncio
from typing import Annotated

import typer
from rich.table import Table

from contextgauge.errors import ConfigError
from schemas.topics import CO_PARTITIONED, DAY_MS, TOPICS, Topic
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.screen.output import err, out, write_json
from streams.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Create and list the Kafka topics.")


@app.command()
def create() -> None:
    """Create the topics that are missing, and check that the partition counts agree.

    Names, partitions and retention come from the settings. Topics that are there are left as
    they are.
    """
    chosen = wiring.settings()
    created, counts = asyncio.run(create_topics(chosen))
    _show(chosen, counts)
    left = len(counts) - len(created)
    there = f"; {left} were there, and are left as they are" if left else ""
    err.print(f"created {len(created)} of {len(counts)} topics{there}", soft_wrap=True)
    check_counts(chosen, counts)


@app.command("list")
def list_topics(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List the topics, and tell which are missing. Ends with exit code 1 if any is."""
    chosen = wiring.settings()
    counts = asyncio.run(_partition_counts(chosen))
    if as_json:
        write_json([{"name": name, "partitions": count} for name, count in counts.items()])
    else:
        _show(chosen, counts)
    if None in counts.values():
        raise typer.Exit(Exit.STOPPED)


async def create_topics(chosen: Settings) -> tuple[list[str], dict[str, int | None]]:
    """Create what is missing; return the created names, and all topics' partition counts."""
    topics = [chosen.topic(topic) for topic in TOPICS]
    log = wiring.kafka_log(chosen)
    await log.start()
    try:
        created = await log.create_topics(topics, chosen.partitions)
        return created, await log.partition_counts([topic.name for topic in topics])
    finally:
        await log.stop()


async def _partition_counts(chosen: Settings) -> dict[str, int | None]:
    log = wiring.kafka_log(chosen)
    await log.start()
    try:
        return await log.partition_counts([chosen.topic(topic).name for topic in TOPICS])
    finally:
        await log.stop()


def check_counts(chosen: Settings, counts: dict[str, int | None]) -> None:
    """Raise ConfigError where topics that belong together differ in their partitions."""
    together = {topic.name: counts[topic.name] for topic in map(chosen.topic, CO_PARTITIONED)}
    if len(set(together.values())) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in together.items())
        raise ConfigError(
            f"partition counts differ ({told}): a session must have the same partition in all; "
            "delete and create again what is wrong, or use another CONTEXTGAUGE_TOPIC_PREFIX"
        )


def _show(chosen: Settings, counts: dict[str, int | None]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("Topic", no_wrap=True, overflow="fold")  # half a name would be another's
    for name in ("Partitions", "Key", "Kept"):
        table.add_column(name)
    for topic in map(chosen.topic, TOPICS):
        count = counts[topic.name]
        partitions = "[red]missing[/red]" if count is None else str(count)
        table.add_row(topic.name, partitions, topic.key, _kept(topic))
    out.print(table, soft_wrap=True)


def _kept(topic: Topic) -> str:
    if topic.cleanup == "compact":
        return "the last of each key"
    return "for ever" if topic.retention_ms < 0 else f"{topic.retention_ms // DAY_MS} days"
