"""`contextgauge dead`: look at the dead letters, and send those back that can be derived from."""

import asyncio
import signal
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from contextgauge.kafka.producer import KafkaProducer
from contextgauge.normalise.fields import MAX_LONG_NAME
from contextgauge.partitioner import partition_of
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli.dead import screen
from streams.cli.dead.options import (
    Addresses,
    OfSession,
    Reasons,
    Since,
    Until,
    parse_address,
    selection,
)
from streams.cli.dead.topic import Open, guarded, opened_topic
from streams.cli.exits import Exit
from streams.cli.screen.lines import quiet_pipe
from streams.cli.screen.output import err, exact, out, safe, write_json
from streams.flow.dead_letters.letters import Letter
from streams.flow.dead_letters.reading import DeadReading, Selection, Span
from streams.flow.dead_letters.redrive import RedriveConfig, Redriven
from streams.flow.dead_letters.redrive import redrive as redrive_letters
from streams.settings import Settings

NOT_ALL = Exit.STOPPED
"""Exit code where a letter that was named is not there, or one stays."""

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

app = typer.Typer(
    no_args_is_help=True,
    help="Messages that could not be derived from: look at them, and send them again.",
)


@app.command("list")
def list_letters(
    addresses: Addresses = None,
    *,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    session: OfSession = None,
    limit: Annotated[int, typer.Option(min=1, help="List so many at most.")] = 50,
    summary: Annotated[
        bool, typer.Option("--summary", help="Count them all by reason, instead of listing them.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object a line, for programs.")
    ] = False,
) -> None:
    """List the dead letters, those that died last first: where, when, why, key and size.

    What they say is not shown; `contextgauge dead show` does. A letter that was sent again is
    listed until the topic's retention takes it: a log is not changed.
    """
    chosen = wiring.settings()
    wanted = selection(addresses, reason, since, until, session, SystemClock().now_ms())

    async def work(opened: Open) -> None:
        if summary:
            await _count(opened, wanted, as_json=as_json)
        else:
            await _list(opened, wanted, limit, as_json=as_json)

    with quiet_pipe():
        _run(chosen, wanted, work)


async def _list(opened: Open, wanted: Selection, limit: int, *, as_json: bool) -> None:
    shown: list[screen.Brief] = []
    more = False
    with screen.Bar("reading", shown=not (as_json and out.is_terminal)) as bar:
        reading = await _begin(opened, wanted, screen.brief, bar.show)
        async for letter in reading.newest_first():
            more = len(shown) == limit
            if more:
                break
            shown.append(letter)
            if as_json:
                write_json(screen.brief_json(letter))
    if not shown:
        _say_none(wanted)
    elif not as_json:
        out.print(screen.letters_table(shown, out.width))
    if more:
        last = f"the last {exact(len(shown))}: --limit shows more, --summary counts all"
        err.print(last, style="dim", soft_wrap=True)


async def _count(opened: Open, wanted: Selection, *, as_json: bool) -> None:
    tallies: defaultdict[str, screen.Tally] = defaultdict(screen.Tally)
    with screen.Bar("counting") as bar:
        reading = await _begin(opened, wanted, _counted, bar.show)
        async for why, died_ms, size in reading.as_sent():
            tallies[why].add(died_ms, size)
    if as_json:
        for line in screen.summary_json(tallies):
            write_json(line)
    elif tallies:
        out.print(screen.summary_table(tallies))
    else:
        _say_none(wanted)


def _counted(letter: Letter) -> tuple[str, int, int]:
    return letter.reason, letter.died_ms, len(letter.value)


def _say_none(wanted: Selection) -> None:
    said = "no dead letters" if wanted == Selection() else "no such dead letters"
    err.print(said, soft_wrap=True)


@app.command()
def show(
    address: Annotated[
        str, typer.Argument(metavar="PARTITION:OFFSET", help="Which, as `dead list` names it.")
    ],
    *,
    characters: Annotated[
        int, typer.Option(min=0, help="Show so many characters of the message at most.")
    ] = 2_000,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Write the message's own bytes, exactly, and nothing else."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter: why it died, what to do, its headers and what it says.

    What could move the cursor or is no text is shown escaped.
    """
    chosen = wiring.settings()
    span = parse_address(address)
    if span.end != span.begin + 1:
        raise ConfigError(f"{address!r} names several: give one, as PARTITION:OFFSET")
    wanted = Selection(spans=(span,))

    async def showing(opened: Open) -> None:
        with screen.Bar("reading", shown=False) as bar:
            reading = await _begin(opened, wanted, _itself, bar.show)
            found = [letter async for letter in reading.as_sent()]
        if not found:
            first, end = await opened.reader.bounds(span.partition)
            _say_missing([span], f"partition {span.partition} holds offsets {first} to {end - 1}")
            raise typer.Exit(NOT_ALL)
        (letter,) = found
        if raw:
            sys.stdout.buffer.write(letter.value)
            sys.stdout.buffer.flush()
        elif as_json:
            write_json(screen.letter_json(letter))
        else:
            out.print(screen.letter_box(letter, SystemClock().now_ms(), characters))

    with quiet_pipe():
        _run(chosen, wanted, showing)


def _itself(letter: Letter) -> Letter:
    return letter


def _say_missing(spans: Sequence[Span], why: str) -> None:
    names = ", ".join(f"{span.partition}:{span.begin}" for span in spans)
    err.print(f"contextgauge: no dead letter at {names}: {why}", style="red", soft_wrap=True)


@app.command()
def redrive(  # noqa: PLR0913 -- an option each
    addresses: Addresses = None,
    *,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    session: OfSession = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    assign_session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Session of messages that neither they nor their key name one for.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be sent, and send nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before sending.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send dead letters back to agent.messages, those that can be derived from now.

    Each is tried first, as the derive worker would: what would die again stays, and is told by
    reason. The bytes go unchanged, to the partition of their session; only what is over the limit
    is shortened, as `publish` does. What had been derived already gives nothing a second time.
    Which letters were sent is not remembered. Ends with exit code 1 where any of them stays.
    """
    chosen = wiring.settings()
    wanted = selection(addresses, reason, since, until, session, SystemClock().now_ms())
    _check_selected(wanted, assign_session, every=every)
    if not (dry_run or yes or sys.stdin.isatty()):
        raise ConfigError("nobody can be asked here: give --yes to send, or --dry-run to look")

    async def redriving(opened: Open) -> None:
        config = _redrive_config(chosen, opened, assign_session)
        missing = {span for span in wanted.spans if _is_one(span)}

        def take(letter: Letter) -> Letter:
            missing.discard(Span(letter.partition, letter.offset, letter.offset + 1))
            return letter

        # Once: what dies while it is asked for was not among what was agreed to.
        reading = await _begin(opened, wanted, take, lambda _read, _of: None)
        done = Redriven()
        if not yes or dry_run:
            done = await _pass(reading, config, None, done)
            _report(done, config, wanted, sent=False, as_json=as_json, asks=not dry_run)
        if not dry_run and (yes or (done.messages and _agreed(done, config))):
            done = await _send(opened, reading, config)
            _report(done, config, wanted, sent=True, as_json=as_json)
        if missing:
            _say_missing(sorted(missing), "or none that the options select")
        if missing or done.stay:
            raise typer.Exit(NOT_ALL)

    _run(chosen, wanted, redriving)


async def _send(opened: Open, reading: DeadReading[Letter], config: RedriveConfig) -> Redriven:
    """Send them; where that ends early, say how to go on."""
    done = Redriven()
    producer = opened.log.producer()
    await producer.start()
    try:
        return await guarded(_pass(reading, config, producer, done), producer)
    except BaseException:
        err.print(screen.go_on(reading.selection, opened.partitions, done.settled), soft_wrap=True)
        raise
    finally:
        await producer.stop()


def _check_selected(wanted: Selection, assign_session: str | None, *, every: bool) -> None:
    """Raise ConfigError where it is not said what to send, or said twice."""
    if wanted == Selection() and not every:
        raise ConfigError("say which: addresses, --reason, --since, --until, --session, or --all")
    if wanted != Selection() and every:
        raise ConfigError("--all is for all of them: leave it, or what else selects")
    if assign_session is not None and not 0 < len(assign_session) <= MAX_LONG_NAME:
        raise ConfigError(f"--assign-session takes 1 to {exact(MAX_LONG_NAME)} characters")


def _redrive_config(chosen: Settings, opened: Open, session: str | None) -> RedriveConfig:
    topic = chosen.topic(AGENT_MESSAGES)
    return RedriveConfig(
        topic=topic.name,
        partitions=opened.message_partitions,
        partition_of=partition_of,
        rules=wiring.rules(chosen),
        limit_bytes=chosen.message_limit_bytes,
        retention_ms=topic.retention_ms,
        max_ahead_ms=topic.max_ahead_ms,
        assign_session=session,
    )


async def _pass(
    reading: DeadReading[Letter],
    config: RedriveConfig,
    producer: KafkaProducer | None,
    done: Redriven,
) -> Redriven:
    """Go through the letters once, and send them where there is a producer."""
    with screen.Bar("trying" if producer is None else "sending") as bar:
        letters = replace(reading, progress=bar.show).as_sent()
        return await redrive_letters(letters, config, SystemClock(), producer, done)


def _is_one(span: Span) -> bool:
    return span.end == span.begin + 1


def _report(
    done: Redriven,
    config: RedriveConfig,
    wanted: Selection,
    *,
    sent: bool,
    as_json: bool,
    asks: bool = False,
) -> None:
    """Tell what was done, or would be: as the result, or beside it where it comes to a question."""
    if as_json and not asks:
        write_json(screen.redriven_json(done, sent=sent))
    elif done.letters:
        console = err if asks else out
        for line in screen.redriven_lines(done, config.topic, sent=sent):
            console.print(safe(line), markup=False, soft_wrap=True)
    else:
        _say_none(wanted)


def _agreed(done: Redriven, config: RedriveConfig) -> bool:
    """Ask whether to send; a no is no failure, and Ctrl-C ends the command."""
    kept = signal.getsignal(signal.SIGINT)
    # The event loop's would only note it, while the question is still waited at.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(f"Send {exact(done.messages)} to {config.topic}?", err=True)
    finally:
        signal.signal(signal.SIGINT, kept)


async def _begin(
    opened: Open,
    wanted: Selection,
    take: Callable[[Letter], T],
    progress: Callable[[int, int], None],
) -> DeadReading[T]:
    reading = DeadReading(opened.reader, SystemClock(), wanted, take, progress)
    await reading.begin(opened.partitions)
    return reading


def _run(chosen: Settings, wanted: Selection, work: Callable[[Open], Awaitable[None]]) -> None:
    async def run() -> None:
        async with opened_topic(chosen, wanted) as opened:
            await work(opened)

    asyncio.run(run())
