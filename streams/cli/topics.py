"""`contextgauge topics`: create and list the Kafka topics."""

import asyncio

import typer

from contextgauge.errors import ConfigError
from schemas.topics import CO_PARTITIONED, DAY_MS, TOPICS, Topic
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import out, say, write_json
from streams.cli.screen.tables import plain_table
from streams.settings import Settings
from streams.wiring.partition_counts import counts_differ

app = typer.Typer(no_args_is_help=True, help="Create and list the Kafka topics.")


@app.command()
def create() -> None:
    """Create missing topics, and check that the partition counts agree.

    Names, partitions and retention come from the settings. Existing topics are not changed.
    """
    settings = wiring.settings()
    created, counts = asyncio.run(_counted(settings, create=True))
    _show(settings, counts)
    existing = len(counts) - len(created)
    unchanged = f"; {existing} existing topics unchanged" if existing else ""
    say(f"created {len(created)} of {len(counts)} topics{unchanged}")
    _check_counts(settings, counts)


@app.command("list")
def list_topics(
    *,
    as_json: AsJson = False,
) -> None:
    """List the topics, including missing ones. Exits with 1 if any is missing."""
    settings = wiring.settings()
    _, counts = asyncio.run(_counted(settings, create=False))
    if as_json:
        write_json([{"name": name, "partitions": count} for name, count in counts.items()])
    else:
        _show(settings, counts)
    if None in counts.values():
        raise typer.Exit(Exit.STOPPED)


async def _counted(settings: Settings, *, create: bool) -> tuple[list[str], dict[str, int | None]]:
    """Return the names of the created topics, and the partition counts of all topics."""
    topics = [settings.topic(topic) for topic in TOPICS]
    async with wiring.started(wiring.kafka_log(settings)) as log:
        created = await log.create_topics(topics, settings.partitions) if create else []
        return created, await log.partition_counts([topic.name for topic in topics])


def _check_counts(settings: Settings, counts: dict[str, int | None]) -> None:
    """Raise ConfigError where co-partitioned topics differ in their partitions."""
    by_topic = {topic.name: counts[topic.name] for topic in map(settings.topic, CO_PARTITIONED)}
    if len(set(by_topic.values())) > 1:
        raise ConfigError(counts_differ(by_topic))


def _show(settings: Settings, counts: dict[str, int | None]) -> None:
    others = ("Partitions", "Key", "Retention")
    table = plain_table("Topic", *others, wrap=others)  # names are never cut
    for topic in map(settings.topic, TOPICS):
        count = counts[topic.name]
        partitions = "[red]missing[/red]" if count is None else str(count)
        table.add_row(topic.name, partitions, topic.key, _retention(topic))
    out.print(table, soft_wrap=True)


def _retention(topic: Topic) -> str:
    if topic.cleanup == "compact":
        return "compacted"
    return "unlimited" if topic.retention_ms < 0 else f"{topic.retention_ms // DAY_MS} days"
