"""Commands that are imported when they run.

`contextgauge --help` and shell completion need only names and summaries, and a transcript's replay
needs no web framework. `LazyGroup` lists `LazyCommand`s; each imports its module, and builds the
real Typer command, when it is invoked or asked for its own help.
"""

import gc
import logging
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LazyCommand(TyperCommand):
    """Stands in for a module's `app`, a Typer group, or else its function of the command's name.

    In the function's name `_` stands for `-`.
    """

    def __init__(self, name: str, module: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)
        self._module = module

    def load(self) -> TyperCommand | TyperGroup:
        """Import the module and return its command.

        What is there by then stays, so nothing looks for garbage in it: neither now, which would
        take a tenth of a command's start, nor in processes that share it, nor at the end. Garbage
        among it stays too, less than a hundredth.
        """
        gc.disable()
        try:
            module = import_module(f"streams.cli.{self._module}")
            gc.freeze()
        finally:
            gc.enable()
        target = getattr(module, "app", None) or getattr(module, str(self.name).replace("-", "_"))
        silence_logs()
        parent = typer.Typer(add_completion=False, rich_markup_mode=None)
        parent.callback()(lambda: None)  # with a callback it is a group, even of one command
        if isinstance(target, typer.Typer):
            parent.add_typer(target, name=self.name)
        else:
            parent.command(self.name)(target)
        command: TyperCommand | TyperGroup = typer.main.get_group(parent).commands[str(self.name)]  # type: ignore[assignment]  # which Typer has made
        return command

    def make_context(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 -- as they come
        """Continue with the real command."""
        return self.load().make_context(*arguments, **options)


class LazyGroup(TyperGroup):
    """A group of lazy commands, in titled sections: a subclass names them in `sections`."""

    sections: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]]
    """Title → command → module below `streams.cli`, and summary."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 -- as Typer gives them
        super().__init__(**options)
        for commands in self.sections.values():
            for name, (module, summary) in commands.items():
                self.add_command(LazyCommand(name, module, summary))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- as they come
        """Run the command; a wrong value is reported without pydantic's words before it."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def format_commands(self, ctx: object, formatter: Any) -> None:  # noqa: ANN401 -- Typer's own
        """Write the sections for the group's help."""
        del ctx
        width = max(len(name) for name in self.commands)
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), summary) for name, (_, summary) in commands.items()]
                )


def silence_logs() -> None:
    """Drop what libraries and flows log while a command runs; workers configure logs again.

    structlog prints to standard output unless it is configured. A command that has not imported it
    does not log with it, and is spared the quarter of a second that importing it takes.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    if structlog := sys.modules.get("structlog"):
        structlog.configure(processors=[_drop])


def _drop(*_: object) -> None:
    from structlog import DropEvent  # noqa: PLC0415 -- imported already

    raise DropEvent
