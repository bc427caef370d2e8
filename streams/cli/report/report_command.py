"""`contextgauge report`: all figures of analysis as one HTML file, offline."""

from pathlib import Path
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from streams.cli.asked import opened
from streams.cli.exits import Exit
from streams.cli.extras import ANALYSIS, needs
from streams.cli.pages.document import write_whole
from streams.cli.report.answers import Answers
from streams.cli.report.page import ReportOrigin, page
from streams.cli.screen.figures import size
from streams.cli.screen.options import FromTopic, TablePaths
from streams.cli.screen.output import say


def report(
    paths: TablePaths = None,
    *,
    topic: FromTopic = False,
    target: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to write it.")
    ] = Path("report.html"),
) -> None:
    """Write a report about sessions and compactions as one HTML file.

    How often contexts are compacted, at which size, for how long, what that saves and costs, how
    full contexts get and what goes wrong: each figure with its query and the rows it stands on. The
    file needs no network and has no text of conversations. Times are UTC.
    """
    with (
        needs("report", "analysis", ANALYSIS),
        opened(paths or (), topic=topic, needs_session=True) as asked,
    ):
        content = page(Answers(asked.engine), ReportOrigin(asked.source, SystemClock().now_ms()))
        write_whole(target, content)
    say(f"wrote {target} ({size(len(content))})")
    if not asked.is_whole:
        raise typer.Exit(Exit.STOPPED)
