"""`contextgauge simulate`: simulated sessions for trials, demonstrations and load tests."""

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
from streams.cli.screen.output import say
from streams.edge.files.folders import write_folder
from streams.flow.publish.publish import paced
from streams.flow.simulator import PROVIDERS, SimulatedMessage, SimulationOptions, sample_sessions
from streams.flow.simulator import simulate as simulate_sessions

_FILE_SUFFIX = ".jsonl"

Provider = StrEnum("Provider", {name: name for name in PROVIDERS})  # type: ignore[misc]


Messages = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Total number of messages: each session that ends is followed by another. By "
        "default each session runs to its end, without a successor.",
    ),
]
Out = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="-: standard output. A name that ends in .jsonl: one file. Any other name: a new "
        "folder, laid out like Claude Code's projects folder.",
    ),
]
Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="With --publish: the messages count as happening now. Those without a timestamp get "
        "the time at which they are sent, and alerts can be raised.",
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        help="Stop after so many seconds; each session that ends is followed by another.",
    ),
]


def simulate(  # noqa: PLR0913 -- each is an option
    *,
    sessions: Annotated[
        int, typer.Option(metavar="N", min=1, help="Sessions running at the same time.")
    ] = 10,
    messages: Messages = None,
    duration: Duration = None,
    rate: Annotated[
        float, typer.Option(metavar="N", min=0, help="Messages per second; 0: as fast as possible.")
    ] = 0,
    turns: Annotated[
        int, typer.Option(metavar="N", min=1, help="Median length of a session, in turns.")
    ] = 40,
    provider: Annotated[
        list[Provider] | None, typer.Option(help="Only this provider; can be repeated.")
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="About a dozen short sessions that show every kind of message and outcome.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same messages.")] = 1,
    start: Annotated[
        str, typer.Option(metavar="TIME", help="When simulated time begins: ISO 8601, UTC.")
    ] = "2026-01-01",
    recent: Annotated[
        bool,
        typer.Option("--recent", help="End simulated time now; overrides --start."),
    ] = False,
    out: Out = "-",
    publish: Annotated[
        bool, typer.Option("--publish", help="Publish the messages to agent.messages.")
    ] = False,
    live: Live = False,
) -> None:
    """Simulate agent sessions with every kind of compaction.

    Covers all agent runtimes. All text is made up. Sizes and rates follow real transcripts.
    """
    if publish and out != "-":
        raise ConfigError("--publish and --out exclude each other")
    if live and not publish:
        raise ConfigError("--live requires --publish")
    options = SimulationOptions(
        seed=seed,
        sessions=sessions,
        providers=tuple(provider or PROVIDERS),
        turns=turns,
        start_ms=_time_ms(start),
    )
    if recent:
        if duration is not None and messages is None:
            raise ConfigError("--recent with --duration requires --messages")
        options = ending_now(options, messages, sample=sample)
    endless = duration is not None and messages is None and not sample
    simulated = _simulated(options, sys.maxsize if endless else messages, sample=sample)
    blocks = paced(as_lines(simulated, named=not publish), rate, duration, SystemClock())
    if publish:
        _publish(blocks, is_live=live)
    elif out == "-" or out.endswith(_FILE_SUFFIX):
        asyncio.run(_write(blocks, None if out == "-" else Path(out)))
    elif rate or duration:
        raise ConfigError("--rate and --duration require one stream of messages, not a folder")
    else:
        written = write_folder(Path(out), ((each.file, each.value) for each in simulated))
        say(f"wrote {written:,} messages below {out}")


def _publish(blocks: AsyncIterator[Sequence[Line]], *, is_live: bool) -> None:
    from streams.cli.publish.run import publish_blocks  # noqa: PLC0415 -- imports structlog

    asyncio.run(publish_blocks(wiring.settings(), blocks, is_live=is_live))


def _time_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"--start {text}: not a time such as 2026-01-01T12:00:00") from error
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1_000)


def _simulated(
    options: SimulationOptions, messages: int | None, *, sample: bool
) -> Iterator[SimulatedMessage]:
    return sample_sessions(options) if sample else simulate_sessions(options, messages)


def ending_now(
    options: SimulationOptions, messages: int | None, *, sample: bool
) -> SimulationOptions:
    """Return the options with a start such that the last message is sent now.

    This simulates everything once, to learn how long it takes.
    """
    last_ms = options.start_ms
    for message in _simulated(options, messages, sample=sample):
        last_ms = max(last_ms, message.at_ms)
    return replace(options, start_ms=SystemClock().now_ms() - (last_ms - options.start_ms))


def as_lines(simulated: Iterator[SimulatedMessage], *, named: bool = False) -> Iterator[Line]:
    """Yield messages as lines; `named`: each contains its session."""
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
