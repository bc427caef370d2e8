"""`contextgauge simulate`: simulated sessions for trials, demonstrations and load tests."""

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count, tee
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
from streams.ports import Clock

_FILE_SUFFIX = ".jsonl"

_DEFAULTS = SimulationOptions()

_HISTORY_MS = 3_600_000
"""Age of the first sessions of `--live --recent --duration`: their windows are partly full."""

_BLOCK_MESSAGES = 500
"""Messages that are handed on together, where many are due."""

Provider = StrEnum("Provider", {name: name for name in PROVIDERS})  # type: ignore[misc]


Sessions = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Sessions running at the same time.",
        show_default=str(_DEFAULTS.sessions),
    ),
]
Turns = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Median length of a session, in turns.",
        show_default=str(_DEFAULTS.turns),
    ),
]
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
        help="-: standard output. A name that ends in .jsonl: a new file. Any other name: a new "
        "folder, laid out like Claude Code's projects folder.",
    ),
]
Recent = Annotated[
    bool,
    typer.Option(
        "--recent",
        help="End simulated time now, with --live after the --duration; overrides --start.",
    ),
]
Publish = Annotated[bool, typer.Option("--publish", help="Publish the messages to agent.messages.")]
Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="With --publish: the messages count as happening now. Those without a timestamp get "
        "the time at which they are sent, and alerts can be raised. With --recent: those of the "
        "future are sent when it comes, unless there is a --rate.",
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        help="Stop after so many seconds; each session that ends is followed by another. With "
        "--live --recent: of sessions that began an hour ago.",
    ),
]


def simulate(  # noqa: PLR0913 -- each is an option
    *,
    sessions: Sessions = None,
    messages: Messages = None,
    duration: Duration = None,
    rate: Annotated[
        float, typer.Option(metavar="N", min=0, help="Messages per second; 0: as fast as possible.")
    ] = 0,
    turns: Turns = None,
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
    recent: Recent = False,
    out: Out = "-",
    publish: Publish = False,
    live: Live = False,
) -> None:
    """Simulate agent sessions with every kind of compaction.

    Covers all agent runtimes. All text is made up. Sizes and rates follow real transcripts.
    """
    if publish and out != "-":
        raise ConfigError("--publish and --out exclude each other")
    if live and not (publish or recent):
        raise ConfigError("--live requires --publish or --recent")
    if sample and (sessions, messages, turns) != (None, None, None):
        raise ConfigError(
            "--sample has sessions of its own: leave out --sessions, --messages and --turns"
        )
    options = SimulationOptions(
        seed=seed,
        sessions=sessions or _DEFAULTS.sessions,
        providers=tuple(provider or PROVIDERS),
        turns=turns or _DEFAULTS.turns,
        start_ms=_time_ms(start),
    )
    endless = duration is not None and messages is None and not sample
    in_step = live and recent and not rate
    if recent:
        if endless and rate:
            messages = math.ceil(rate * (duration or 0))
        elif endless and not in_step:
            raise ConfigError("--recent with --duration requires --live, --rate or --messages")
        ahead_s = (duration or 0.0) if in_step else 0.0
        options = _recent(options, messages, ahead_s, sample=sample, endless=endless)
    total = sys.maxsize if endless and messages is None else messages
    simulated = _simulated(options, total, sample=sample)
    limit_s = duration if endless or not in_step else None  # others end by themselves, then
    blocks = _blocks(simulated, rate, limit_s, named=not publish, in_step=in_step)
    if publish:
        _publish(blocks, is_live=live)
    elif out == "-" or out.endswith(_FILE_SUFFIX):
        asyncio.run(_write(blocks, None if out == "-" else _new_file(out)))
    elif rate or duration or live:
        raise ConfigError(
            "--rate, --duration and --live require one stream of messages, not a folder"
        )
    else:
        _write_folder(simulated, out)


def _recent(
    options: SimulationOptions,
    messages: int | None,
    ahead_s: float,
    *,
    sample: bool,
    endless: bool,
) -> SimulationOptions:
    """Return the options with a start such that sessions are at work now, or end so far ahead."""
    if endless and messages is None:
        return replace(options, start_ms=SystemClock().now_ms() - _HISTORY_MS)
    ending = ending_now(options, messages, sample=sample)
    return replace(ending, start_ms=ending.start_ms + int(ahead_s * 1_000))


def _write_folder(simulated: Iterator[SimulatedMessage], folder: str) -> None:
    written = write_folder(Path(folder), ((each.file, each.value) for each in simulated))
    say(f"wrote {written:,} messages below {folder}")


def _blocks(
    simulated: Iterator[SimulatedMessage],
    rate: float,
    duration_s: float | None,
    *,
    named: bool,
    in_step: bool,
) -> AsyncIterator[Sequence[Line]]:
    """Yield messages at `rate`, or `in_step` with their times; for so long at most."""
    clock = SystemClock()
    if in_step:
        return as_they_happen(simulated, duration_s, clock, named=named)
    return paced(as_lines(simulated, named=named), rate, duration_s, clock)


async def as_they_happen(
    simulated: Iterator[SimulatedMessage],
    duration_s: float | None,
    clock: Clock,
    *,
    named: bool = False,
) -> AsyncIterator[Sequence[Line]]:
    """Yield messages of the past at once, and the others each at its time; for so long at most."""
    end_ms = sys.maxsize if duration_s is None else clock.now_ms() + int(duration_s * 1_000)
    simulated, copy = tee(simulated)
    block: list[Line] = []
    for message, line in zip(simulated, as_lines(copy, named=named), strict=True):
        wait_ms = min(message.at_ms, end_ms) - clock.now_ms()
        if block and (wait_ms > 0 or len(block) >= _BLOCK_MESSAGES):
            yield block
            block = []
        if wait_ms > 0:
            await clock.sleep(wait_ms / 1_000)
        if message.at_ms >= end_ms:
            return
        block.append(line)
    if block:
        yield block


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


def _new_file(out: str) -> Path:
    """Return where to write. Raises ConfigError where that would replace what a file holds."""
    path = Path(out)
    if path.is_file() and path.stat().st_size:
        raise ConfigError(f"{out} is not empty: name a new file")
    return path


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
