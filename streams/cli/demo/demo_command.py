"""`contextgauge demo`: sessions through the whole pipeline, and the result."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.user_folders import expanded
from schemas.messages import DeadLetter
from streams import wiring
from streams.cli.demo import pipeline as demo_pipeline
from streams.cli.demo.page import serve_embedded, serve_page
from streams.cli.demo.pipeline import Pipeline, Progressed
from streams.cli.demo.report import (
    most_known,
    print_next,
    print_sessions,
    print_timeline,
    print_totals,
    step,
)
from streams.cli.ending import Ending
from streams.cli.publish.connection import publish_config
from streams.cli.screen.figures import exact
from streams.cli.screen.output import out, rule
from streams.cli.simulate import as_lines, ending_now
from streams.cli.transcripts import no_session
from streams.edge.files import reading as files
from streams.edge.local_stack.stack import MissingPartError
from streams.flow.publish.follow import in_thread
from streams.flow.publish.publish import PublishCounts, paced, publish
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.serve.views.sessions import active_sessions

_SHOWN_SESSIONS = 20
"""Sessions in the table: those that were active last."""

_Blocks = AsyncIterator[Sequence[Line]]
_Page = Callable[[Pipeline], Coroutine[None, None, None]]


def demo(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            help="Your own transcripts: a file, a session's folder or a projects folder such as "
            "~/.claude/projects. By default, a dozen simulated sessions.",
        ),
    ] = None,
    *,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Then serve the web page of the sessions until Ctrl-C."),
    ] = False,
) -> None:
    """Run sessions through a whole pipeline and show the result.

    Starts Kafka, Redis, two derive workers and a project worker, publishes, waits until everything
    is in Redis, prints the sessions and one timeline, and stops everything. Without Java, Maven or
    redis-server it runs the same flows in one process, in memory.
    """
    blocks = _blocks(path)
    settings = wiring.settings()
    ending = Ending()
    with ending.by_signals():
        rule("contextgauge demo")
        try:
            with demo_pipeline.real_services(lambda what: step(f"{what} …")) as (folder, services):
                for name, service in services.items():
                    step(f"{name.capitalize()} is ready at {service.address}", done=True)
                real = settings.at(services["kafka"].address, services["redis"].address)
                page = partial(serve_page, folder) if serve else None
                opening = demo_pipeline.real_pipeline(folder, real)
                ending.run(lambda: _show(opening, blocks, path, page))
                step("stopping Kafka and Redis …")
        except MissingPartError as error:
            out.print(Text(f"! {error}", style="yellow"), soft_wrap=True)
            step("running embedded: the same flows in one process, in memory", done=True)
            own_page = serve_embedded if serve else None
            embedded = demo_pipeline.embedded_pipeline(settings)
            ending.run(lambda: _show(embedded, blocks, path, own_page))
    step("everything is stopped", done=True)
    print_next(path, served=serve)


def _blocks(path: str | None) -> _Blocks:
    """Return what to publish. Raises ConfigError for a path without transcripts."""
    if path is not None:
        return in_thread(files.read(files.expand([expanded(path)]), None))
    options = ending_now(SimulationOptions(), None, sample=True)
    return paced(as_lines(sample_sessions(options)), 0, None, SystemClock())


async def _show(
    opening: AbstractAsyncContextManager[Pipeline],
    blocks: _Blocks,
    path: str | None,
    page: _Page | None = None,
) -> None:
    async with opening as pipeline:
        step(f"topics created, {pipeline.settings.partitions} partitions each", done=True)
        step("two derive workers and a project worker are running", done=True)
        try:
            await _run(pipeline, blocks, path)
            if page is not None:
                await page(pipeline)
        except asyncio.CancelledError:
            with suppress(OSError):  # the terminal may be gone
                out.print("\nstopping everything …", style="yellow")
            raise


async def _run(pipeline: Pipeline, blocks: _Blocks, path: str | None) -> None:
    """Publish, wait and print. Raises StopError where a path has no session."""
    begin_s = time.monotonic()
    refused: Counter[str] = Counter()
    published, progressed = await _publish_and_watch(pipeline, blocks, refused)
    seconds = time.monotonic() - begin_s
    dead = await demo_pipeline.dead_letters(pipeline)
    reader = await active_sessions(pipeline.store, SystemClock())
    views = await reader.ranked("recent", _SHOWN_SESSIONS)
    if not views:
        raise no_session(str(path), published.messages + published.ignored + published.refused)
    points = await reader.points(views, wiring.compaction_points(pipeline.settings))
    print_totals(published, progressed.records, refused, dead, seconds)
    print_sessions(views, len(published.sessions), points)
    if (example := most_known(views)) is not None:
        view, compaction = example
        print_timeline(view, compaction, await reader.records(view.session_id))


async def _publish_and_watch(
    pipeline: Pipeline, blocks: _Blocks, refused: Counter[str]
) -> tuple[PublishCounts, Progressed]:
    """Publish everything and wait until it is in the views, with three progress bars.

    Counts the lines that cannot be sent in `refused`, by reason.
    """
    with Progress(
        TextColumn("  {task.description:<10}"),
        BarColumn(bar_width=32),
        TextColumn("{task.fields[figures]}"),
        console=out,
    ) as bars:
        sent, derived, projected = [
            bars.add_task(name, total=None, figures="")
            for name in ("published", "derived", "projected")
        ]
        done = asyncio.Event()

        def show(now: Progressed) -> None:
            figures = f"{exact(now.derived)} of {exact(now.messages)} messages"
            bars.update(derived, completed=now.derived, total=now.messages, figures=figures)
            figures = f"{exact(now.records)} records"
            bars.update(projected, completed=now.position, total=now.end, figures=figures)

        def show_sent(messages: int) -> None:
            bars.update(sent, completed=messages, figures=f"{exact(messages)} messages")

        watching = asyncio.create_task(demo_pipeline.watch(pipeline, done, show))
        publishing = asyncio.create_task(_publish(pipeline, blocks, refused, show_sent))
        try:
            # The watch fails if a worker ends, perhaps long before everything is published.
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


async def _publish(
    pipeline: Pipeline, blocks: _Blocks, refused: Counter[str], show: Callable[[int], None]
) -> PublishCounts:
    config = publish_config(pipeline.settings, pipeline.settings.partitions)

    def refuse(_line: Line, letter: DeadLetter) -> None:
        refused[letter.reason] += 1

    async with wiring.started(pipeline.log.producer()) as producer:
        return await publish(producer, config, blocks, refuse, lambda done: show(done.messages))
