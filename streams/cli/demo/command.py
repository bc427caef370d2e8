"""`contextgauge demo`: sessions through the whole pipeline, and what is known of them after."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn
from rich.rule import Rule
from rich.text import Text

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.partitioner import partition_of
from schemas.messages import DeadLetter
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli.demo import pipeline as demo_pipeline
from streams.cli.demo.pipeline import ENDING_SIGNALS, Passed, Pipeline
from streams.cli.demo.report import (
    most_telling,
    print_next,
    print_sessions,
    print_sums,
    print_timeline,
    say,
)
from streams.cli.exits import by_signal
from streams.cli.screen.output import exact, out
from streams.cli.simulate import as_lines, ending_now
from streams.edge.files import reading as files
from streams.edge.local_stack.stack import MissingPartError
from streams.flow.common.in_thread import in_thread
from streams.flow.publish.publish import PublishConfig, Published, paced, publish
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.serve.api.sessions import Sessions

_CHECK_S = 1.0
"""How often it is looked whether all still runs while the page is served."""

_SHOWN_SESSIONS = 20
"""Sessions in the table: those that were active last."""


@dataclass(frozen=True, slots=True)
class _Input:
    """What to publish: blocks of lines, and what to call them."""

    blocks: AsyncIterator[Sequence[Line]]
    name: str


def demo(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="Your own transcripts: a file, a session's folder or a projects folder such as "
            "~/.claude/projects. Not given: a dozen simulated sessions.",
        ),
    ] = None,
    *,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="In the end, serve the web page over it until Ctrl-C."),
    ] = False,
) -> None:
    """Send sessions through a Kafka and a Redis of their own, and show what is known of them.

    Starts both, two derive workers and a project worker, publishes, waits until everything is in
    Redis, prints the sessions and one timeline, and leaves nothing running. Where Java, Maven or
    redis-server is missing it says so, and runs the same flows in memory, without the page.
    """
    given = _input(path)
    chosen = wiring.settings()
    ending = _Ending()
    with ending.in_order():
        out.print(Rule("contextgauge demo", style="dim"))
        try:
            with demo_pipeline.real_services(lambda what: say(f"{what} …")) as (folder, services):
                for name, service in services.items():
                    say(f"{name.capitalize()} is ready at {service.address}", done=True)
                real = chosen.at(services["kafka"].address, services["redis"].address)
                page = partial(_serve, folder, ending) if serve else None
                ending.run(_show(demo_pipeline.real_pipeline(folder, real), given, page))
                say("stopping the workers, Kafka and Redis …")
        except MissingPartError as error:
            out.print(Text(f"! {error}", style="yellow"), soft_wrap=True)
            say("running embedded: the same flows in one process, over memory", done=True)
            if serve:
                say("the page needs a Redis: there is none to serve it over", done=True)
            ending.run(_show(demo_pipeline.embedded_pipeline(chosen), given))
    say("nothing is left running", done=True)
    print_next(path, served=serve)


def _input(path: str | None) -> _Input:
    """Return what to publish. Raises ConfigError where the path holds no transcripts."""
    if path is not None:
        sources = files.expand([str(Path(path).expanduser())])
        return _Input(in_thread(files.read(sources, None)), f"{len(sources):,} transcripts")
    options = ending_now(SimulationOptions(), None, sample=True)
    lines = as_lines(sample_sessions(options))
    return _Input(paced(lines, 0, None, SystemClock()), "simulated sessions")


class _Ending:
    """Lets Ctrl-C, SIGTERM and a closed terminal end the demo through its `finally` blocks.

    While coroutines run a signal cancels them: an exception out of the middle of a task would be
    lost in a library, or end the loop under the others. While services start, which blocks, it
    is an exception. Once it is ending, further signals wait until everything is stopped.
    """

    def __init__(self) -> None:
        self._cancel: Callable[[], object] | None = None
        self._asked: Callable[[], object] | None = None
        self._received: int | None = None

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Take the signals."""
        former = [signal.signal(each, self._end) for each in ENDING_SIGNALS]
        try:
            yield
        finally:
            for each, handler in zip(ENDING_SIGNALS, former, strict=True):
                signal.signal(each, handler)

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Run coroutines to their end, or to that of their cleaning up after a signal."""
        try:
            asyncio.run(self._cancellable(work))
        except asyncio.CancelledError:
            if self._received is None:
                raise
        if self._received is not None:
            raise SystemExit(by_signal(self._received))

    async def _cancellable(self, work: Coroutine[None, None, None]) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def cancel() -> None:
            _say_ending()
            task.cancel()

        self._cancel = partial(loop.call_soon_threadsafe, cancel)
        try:
            await task
        finally:
            self._cancel = None

    async def asked(self, check: Callable[[], None]) -> None:
        """Wait for a signal, which here is no error. `check` raises what ends it before."""
        asked = asyncio.Event()
        self._asked = partial(asyncio.get_running_loop().call_soon_threadsafe, asked.set)
        try:
            while not asked.is_set():
                check()
                with suppress(TimeoutError):
                    await asyncio.wait_for(asked.wait(), _CHECK_S)
        finally:
            self._asked = None

    def _end(self, number: int, _frame: FrameType | None) -> None:
        for each in ENDING_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        if self._asked is not None:
            self._asked()
            return
        self._received = number
        if self._cancel is not None:
            self._cancel()
            return
        _say_ending()
        raise SystemExit(by_signal(number))


def _say_ending() -> None:
    with suppress(OSError):  # the terminal itself may be what has gone
        out.print("\nending: stopping what was started …", style="yellow")


_Page = Callable[[Pipeline], Coroutine[None, None, None]]


async def _serve(folder: Path, ending: _Ending, pipeline: Pipeline) -> None:
    with demo_pipeline.page_process(folder, pipeline.settings) as page:
        address = await page.address()
        if page.taken_port is not None:
            say(f"port {page.taken_port} is taken: the page has another one", done=True)
        say(f"the page is at {address}, live: press Ctrl-C to end", done=True)
        say("for `contextgauge top` and all other commands, in another terminal:", done=True)
        for line in demo_pipeline.exports(pipeline.settings):
            out.print(Text(f"    {line}", style="bold"), soft_wrap=True)

        def check() -> None:
            pipeline.check()
            page.check()

        await ending.asked(check)
    out.print()


async def _show(
    opening: AbstractAsyncContextManager[Pipeline], given: _Input, page: _Page | None = None
) -> None:
    async with opening as pipeline:
        chosen = pipeline.settings
        say(f"topics are there, {chosen.partitions} partitions each", done=True)
        say("two derive workers and a project worker are at work", done=True)
        begin_s = time.monotonic()
        published, passed = await _publish_and_watch(pipeline, given)
        passed_s = time.monotonic() - begin_s
        dead = await demo_pipeline.dead_letters(pipeline)
        reader = Sessions(pipeline.store, partition_of)
        views = await reader.ranked("recent", _SHOWN_SESSIONS)
        print_sums(published, passed.records, dead, passed_s)
        print_sessions(views, len(published.sessions))
        telling = most_telling(views)
        if telling is not None:
            view, brief = telling
            print_timeline(view, brief, await reader.records(view.session_id))
        if page is not None:
            await page(pipeline)


async def _publish_and_watch(pipeline: Pipeline, given: _Input) -> tuple[Published, Passed]:
    """Publish all and wait until it is in the views, with three bars of progress."""
    with Progress(
        TextColumn("  {task.description:<10}"),
        BarColumn(bar_width=32),
        TextColumn("{task.fields[told]}"),
        console=out,
    ) as bars:
        sent = bars.add_task("published", total=None, told="")
        derived = bars.add_task("derived", total=None, told="")
        projected = bars.add_task("projected", total=None, told="")
        done = asyncio.Event()

        def show(now: Passed) -> None:
            told = f"{exact(now.derived)} of {exact(now.messages)} messages"
            bars.update(derived, completed=now.derived, total=now.messages, told=told)
            told = f"{exact(now.records)} records"
            bars.update(projected, completed=now.position, total=now.end, told=told)

        def show_sent(count: int) -> None:
            bars.update(sent, completed=count, told=f"{exact(count)} messages")

        watching = asyncio.create_task(demo_pipeline.watch(pipeline, done, show))
        publishing = asyncio.create_task(_publish(pipeline, given, show_sent))
        try:
            # A worker that ends makes the watch fail while there is still much to publish.
            await asyncio.wait([watching, publishing], return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
            published = await publishing
            bars.update(sent, total=published.messages)
            done.set()
            return published, await watching
        finally:
            watching.cancel()
            publishing.cancel()
            await asyncio.gather(watching, publishing, return_exceptions=True)


async def _publish(pipeline: Pipeline, given: _Input, show: Callable[[int], None]) -> Published:
    chosen = pipeline.settings
    config = PublishConfig(
        topic=chosen.topic(AGENT_MESSAGES).name,
        partitions=chosen.partitions,
        partition_of=partition_of,
        limit_bytes=chosen.message_limit_bytes,
    )

    def refuse(line: Line, letter: DeadLetter) -> None:
        del line, letter  # they are counted, and told in one line at the end

    producer = pipeline.log.producer()
    await producer.start()
    try:
        return await publish(
            producer, config, given.blocks, refuse, lambda done: show(done.messages)
        )
    finally:
        await producer.stop()
