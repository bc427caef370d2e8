"""A bar for commands that read a topic to its end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from streams.cli.screen.output import err


@contextmanager
def reading_bar(action: str, *, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show how much of the topic has been read, if standard error is a terminal."""
    percent = TextColumn("{task.percentage:>3.0f}%")
    columns = (TextColumn(action), BarColumn(), percent, TimeRemainingColumn())
    hidden = not (shown and err.is_terminal)
    with Progress(*columns, console=err, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        yield lambda read, of: bar.update(task, completed=read, total=of)
