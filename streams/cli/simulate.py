"""`contextgauge simulate`: generated sessions, for trials, demonstrations and load."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from streams import wiring
from streams.cli.screen.lines import quiet_pipe, write_lines
from streams.cli.screen.output import err
from streams.edge.files.folders import write_folder
from streams.flow.publish.publish import paced
from streams.flow.simulator import PROVIDERS, Casting, Simulated, sample_sessions
from streams.flow.simulator import simulate as simulate_sessions

_FILE_SUFFIX = ".jsonl"

Provider = StrEnum("Provider", {name: name for name in PROVIDERS})  # type: ignore[misc]


Messages = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Messages in all: a session that is over is followed by another. Not given, each "
        "session goes to its end, and that is all.",
    ),
]
Out = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="-: standard output. A name that ends in .jsonl: one file. Another: a new folder, "
        "laid out like a projects folder.",
    ),
]
Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="With --publish: the messages happen now, so that those that have no time of their "
        "own get the time at which they are sent, and alerts may be raised on them.",
    ),
]


def simulate(  # noqa: PLR0913 -- each is an option
    *,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions at work at a time.")] = 10,
    messages: Messages = None,
    duration: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds after which to stop; sessions follow each other."),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Messages per second; 0: as fast as they are taken.")
    ] = 0,
    turns: Annotated[int, typer.Option(min=1, help="Median length of a session in turns.")] = 40,
    provider: Annotated[
        list[Provider] | None, typer.Option(help="Only this provider; may be given several times.")
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample", help="A dozen short sessions that show every kind of thing there is."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same messages.")] = 1,
    start: Annotated[
        str, typer.Option(metavar="TIME", help="When simulated time begins: ISO 8601, UTC.")
    ] = "2026-01-01",
    recent: Annotated[
        bool,
        typer.Option("--recent", help="Let simulated time end now, whatever --start says."),
    ] = False,
    out: Out = "-",
    publish: Annotated[
        bool, typer.Option("--publish", help="Send the messages to agent.messages instead.")
    ] = False,
    live: Live = False,
) -> None:
    """Simulate agent sessions with every kind of compaction.

    Covers all agent runtimes. All text is generated. Sizes and rates are those of real transcripts.
    """
    if publish and out != "-":
        raise ConfigError("--publish and --out: choose one of the two")
    if live and not publish:
        raise ConfigError("--live marks what is published: give --publish too")
    casting = Casting(
        seed=seed,
        sessions=sessions,
        providers=tuple(provider or PROVIDERS),
        turns=turns,
        start_ms=_time_ms(start),
    )
    if recent:
        if duration is not None and messages is None:
            raise ConfigError("--recent needs an end: give --messages, or no --duration")
        casting = ending_now(casting, messages, sample=sample)
    endless = duration is not None and messages is None and not sample
    simulated = _simulated(casting, sys.maxsize if endless else messages, sample=sample)
    blocks = paced(as_lines(simulated, named=not publish), rate, duration, SystemClock())
    if publish:
        from streams.cli.publish.run import publish_blocks  # noqa: PLC0415 -- imports structlog

        asyncio.run(publish_blocks(wiring.settings(), blocks, is_live=live))
    elif out == "-" or out.endswith(_FILE_SUFFIX):
        asyncio.run(_write(blocks, None if out == "-" else Path(out)))
    elif rate or duration:
        raise ConfigError("--rate and --duration are for one stream of messages, not for a folder")
    else:
        written = write_folder(Path(out), ((each.file, each.value) for each in simulated))
        err.print(f"wrote {written:,} messages below {out}", markup=False, soft_wrap=True)


def _time_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"--start {text}: not a time such as 2026-01-01T12:00:00") from error
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1_000)


def _simulated(casting: Casting, messages: int | None, *, sample: bool) -> Iterator[Simulated]:
    return sample_sessions(casting) if sample else simulate_sessions(casting, messages)


def ending_now(casting: Casting, messages: int | None, *, sample: bool) -> Casting:
    """Return the casting with a start such that the last message is sent now.

    The same is simulated twice, the first time to learn how long it is.
    """
    last_ms = casting.start_ms
    for message in _simulated(casting, messages, sample=sample):
        last_ms = max(last_ms, message.at_ms)
    return replace(casting, start_ms=SystemClock().now_ms() - (last_ms - casting.start_ms))


def as_lines(simulated: Iterator[Simulated], *, named: bool = False) -> Iterator[Line]:
    """Yield messages as lines; in one stream each must name its session."""
    for number, each in zip(count(1), simulated, strict=False):
        value = each.named() if named else each.value
        yield Line("simulated", number, value, len(value), each.session_id)


async def _write(blocks: AsyncIterator[Sequence[Line]], path: Path | None) -> None:
    if path is None:
        with quiet_pipe():
            async for block in blocks:
                write_lines([line.value for line in block])
        return
    try:
        with path.open("wb") as target:
            async for block in blocks:
                target.writelines(line.value + b"\n" for line in block)
    except OSError as error:
        raise ConfigError(f"--out {path}: {error.strerror}") from error
