"""`contextgauge dead`: shows dead letters, and sends those again that can be derived."""

import asyncio
import signal
import sys
from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, StopError
from contextgauge.kafka.producer import KafkaProducer
from contextgauge.normalise.fields import MAX_LONG_NAME
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli.dead import report
from streams.cli.dead.connection import DeadLetterConnection, connected, guarded
from streams.cli.dead.options import (
    Addresses,
    OfSession,
    Reasons,
    Since,
    Until,
    parse_address,
    selection,
)
from streams.cli.exits import Exit
from streams.cli.screen.figures import exact
from streams.cli.screen.lines import quiet_pipe
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import err, out, say, write_json
from streams.cli.screen.reading_bar import reading_bar
from streams.edge.kafka.fetching import records_of
from streams.flow.dead_letters.letters import Letter
from streams.flow.dead_letters.reading import DeadReading, Selection, Span
from streams.flow.dead_letters.redrive import RedriveConfig, RedriveResult
from streams.flow.dead_letters.redrive import redrive as redrive_letters

app = typer.Typer(
    no_args_is_help=True,
    help="List dead letters, and send them again.",
)


@app.command("list")
def list_letters(
    addresses: Addresses = None,
    *,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    session: OfSession = None,
    limit: Annotated[int, typer.Option(min=1, help="List at most this many.")] = 50,
    summary: Annotated[
        bool, typer.Option("--summary", help="Count all letters by reason instead of listing them.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object a line, for programs.")
    ] = False,
) -> None:
    """List dead letters, newest first: address, time, reason, key and size.

    Message content is not shown; see `contextgauge dead show`. A letter that was sent again is
    listed until the topic's retention deletes it.
    """
    selected = selection(addresses, reason, since, until, session, SystemClock().now_ms())
    with quiet_pipe():
        if summary:
            asyncio.run(_count(selected, as_json=as_json))
        else:
            asyncio.run(_list(selected, limit, as_json=as_json))


async def _list(selected: Selection, limit: int, *, as_json: bool) -> None:
    shown: list[report.Brief] = []
    more = False
    with reading_bar("reading", shown=not (as_json and out.is_terminal)) as progress:
        async with connected(selected) as connection:
            reading = await connection.begin(report.brief, progress)
            async for letter in reading.newest_first():
                more = len(shown) == limit
                if more:
                    break
                shown.append(letter)
                if as_json:
                    write_json(report.brief_json(letter))
    if not shown:
        _print_none(selected)
    elif not as_json:
        out.print(report.letters_table(shown, out.width))
    if more:
        last = f"the newest {exact(len(shown))}: --limit shows more, --summary counts all"
        say(last, "dim")


async def _count(selected: Selection, *, as_json: bool) -> None:
    tallies: defaultdict[str, report.Tally] = defaultdict(report.Tally)

    def counted(letter: Letter) -> tuple[str, int, int]:
        return letter.reason, letter.died_ms, letter.size

    with reading_bar("counting") as progress:
        async with connected(selected) as connection:
            reading = await connection.begin(counted, progress)
            async for reason, died_ms, size in reading.as_sent():
                tallies[reason].add(died_ms, size)
    if as_json:
        for line in report.summary_json(tallies):
            write_json(line)
    elif tallies:
        out.print(report.summary_table(tallies))
    else:
        _print_none(selected)


def _print_none(selected: Selection) -> None:
    say("no dead letters" if selected == Selection() else "no such dead letters")


@app.command()
def show(
    address: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET", help="As in `dead list`.")],
    *,
    characters: Annotated[
        int, typer.Option(min=0, help="Show at most this many characters of the message.")
    ] = 2_000,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Write exactly the message's bytes, and nothing else."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter: its reason, what to do, its headers and its content.

    Control characters and invalid text are escaped.
    """
    span = parse_address(address)
    if span.end != span.begin + 1:
        raise ConfigError(f"{address!r} selects several: give one, as PARTITION:OFFSET")
    with quiet_pipe():
        letter = asyncio.run(_read(span))
        if raw:
            sys.stdout.buffer.write(letter.value)
            sys.stdout.buffer.flush()
        elif as_json:
            write_json(report.letter_json(letter))
        else:
            out.print(report.letter_box(letter, SystemClock().now_ms(), characters))


async def _read(span: Span) -> Letter:
    async with connected(Selection(spans=(span,))) as connection:
        reading = await connection.begin(lambda letter: letter)
        async for letter in reading.as_sent():
            return letter
        first, end = await connection.reader.bounds(span.partition)
    has = f"partition {span.partition} has offsets {first} to {end - 1}"
    raise StopError(f"no dead letter at {report.address_of(span)}: {has}")


@app.command()
def redrive(  # noqa: PLR0913 -- an option each
    addresses: Addresses = None,
    *,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    session: OfSession = None,
    every: Annotated[bool, typer.Option("--all", help="All letters.")] = False,
    assign_session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The session of messages that name none and have no key.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent, and send nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before sending.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send dead letters that can be derived now back to agent.messages.

    Each letter is first tried as the derive worker would: those that would become dead letters
    again are skipped and counted by reason. The bytes go unchanged to the partition of their
    session; only messages over the limit are shortened, as by `publish`. Messages that were already
    derived give no second record. The letters stay in their topic. Exits with code 1 if any letter
    is skipped.
    """
    selected = selection(addresses, reason, since, until, session, SystemClock().now_ms())
    _check_selected(selected, assign_session, every=every)
    if not (dry_run or yes or sys.stdin.isatty()):
        raise ConfigError("cannot ask without a terminal: give --yes to send, or --dry-run to look")
    asyncio.run(_redrive(selected, assign_session, dry_run=dry_run, yes=yes, as_json=as_json))


async def _redrive(
    selected: Selection, assign_session: str | None, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    missing = {span for span in selected.spans if span.end == span.begin + 1}

    def take(letter: Letter) -> Letter:
        missing.discard(Span(letter.partition, letter.offset, letter.offset + 1))
        return letter

    async with connected(selected) as connection:
        config = _redrive_config(connection, assign_session)
        # Once: letters that arrive during the question were not agreed to.
        reading = await connection.begin(take)
        result = RedriveResult()
        if not yes or dry_run:
            result = await _pass(reading, config, None, result)
            _report(result, config, selected, sent=False, as_json=as_json, asks=not dry_run)
        if not dry_run and (yes or (result.messages and _confirm(result, config))):
            result = await _send(connection, reading, config)
            _report(result, config, selected, sent=True, as_json=as_json)
    if missing:
        names = ", ".join(map(report.address_of, sorted(missing)))
        raise StopError(f"no dead letter at {names}, or the options do not select it")
    if result.skipped_letters:
        raise typer.Exit(Exit.STOPPED)


async def _send(
    connection: DeadLetterConnection, reading: DeadReading[Letter], config: RedriveConfig
) -> RedriveResult:
    """Send the letters; if that ends early, print how to continue."""
    result = RedriveResult()
    async with wiring.started(connection.log.producer()) as producer:
        try:
            return await guarded(_pass(reading, config, producer, result), producer)
        except BaseException:
            say(report.how_to_continue(reading.selection, connection.partitions, result.settled))
            raise


def _check_selected(selected: Selection, assign_session: str | None, *, every: bool) -> None:
    """Raise ConfigError if nothing is selected, or --all and something else."""
    if selected == Selection() and not every:
        raise ConfigError(
            "select letters: addresses, --reason, --since, --until, --session, or --all"
        )
    if selected != Selection() and every:
        raise ConfigError("--all cannot be combined with addresses or other selections")
    if assign_session is not None and not 0 < len(assign_session) <= MAX_LONG_NAME:
        raise ConfigError(f"--assign-session takes 1 to {exact(MAX_LONG_NAME)} characters")


def _redrive_config(connection: DeadLetterConnection, session: str | None) -> RedriveConfig:
    settings = connection.settings
    topic = settings.topic(AGENT_MESSAGES)
    return RedriveConfig(
        topic=topic.name,
        partitions=connection.message_partitions,
        rules=wiring.rules(settings),
        limit_bytes=settings.message_limit_bytes,
        retention_ms=topic.retention_ms,
        max_ahead_ms=topic.max_ahead_ms,
        unpack=partial(records_of, limit=settings.most_unpacked_bytes()),
        assign_session=session,
    )


async def _pass(
    reading: DeadReading[Letter],
    config: RedriveConfig,
    producer: KafkaProducer | None,
    result: RedriveResult,
) -> RedriveResult:
    """Process the letters once, and send them if there is a producer."""
    with reading_bar("trying" if producer is None else "sending") as progress:
        letters = replace(reading, progress=progress).as_sent()
        return await redrive_letters(letters, config, SystemClock(), producer, result)


def _report(
    result: RedriveResult,
    config: RedriveConfig,
    selected: Selection,
    *,
    sent: bool,
    as_json: bool,
    asks: bool = False,
) -> None:
    """Print the result: on standard output, or on standard error before a question."""
    if as_json and not asks:
        write_json(report.redrive_json(result, sent=sent))
    elif result.letters:
        console = err if asks else out
        for line in report.redrive_lines(result, config.topic, sent=sent):
            say(line, to=console)
    else:
        _print_none(selected)


def _confirm(result: RedriveResult, config: RedriveConfig) -> bool:
    """Ask whether to send. A no is not a failure, and Ctrl-C ends the command."""
    handler = signal.getsignal(signal.SIGINT)
    # The event loop's handler would not interrupt the question.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(f"Send {exact(result.messages)} to {config.topic}?", err=True)
    finally:
        signal.signal(signal.SIGINT, handler)
