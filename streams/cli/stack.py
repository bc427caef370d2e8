"""`contextgauge stack`: Kafka and Redis on this machine, in the background."""

import shutil
from typing import Annotated

import typer

from contextgauge.settings.local_stack import Service, stack_folder
from streams.cli.ending import Ending
from streams.cli.exits import Exit
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import err, out, write_json
from streams.cli.screen.tables import plain_table
from streams.edge.local_stack.stack import DEFAULT_HEAP_MIB, LocalStack, Name

app = typer.Typer(
    no_args_is_help=True,
    help="Run Kafka and Redis on this machine, for development.",
)

SERVICES: tuple[Name, ...] = ("kafka", "redis")


@app.command()
def up(
    heap_mib: Annotated[
        int, typer.Option(metavar="N", min=256, help="Heap size of the broker in MiB.")
    ] = DEFAULT_HEAP_MIB,
) -> None:
    """Start Kafka and Redis on free ports, and wait until both answer.

    Data and logs are in `~/.local/state/contextgauge/stack`, in a checkout in `.stack`. All other
    commands use the two while CONTEXTGAUGE_BOOTSTRAP_SERVERS and CONTEXTGAUGE_REDIS_URL are not
    set. Needs Java 17 or later, redis-server and, the first time, Maven, which downloads Kafka.
    """
    stack = LocalStack(stack_folder(), heap_mib=heap_mib)
    with Ending().by_signals(), err.status("checking running services") as status:
        running = stack.start(SERVICES, lambda what: status.update(f"{what} …"))
    _show(running)
    err.print("Next: [bold]contextgauge topics create[/bold]", style="dim")


@app.command()
def down(
    *,
    delete: Annotated[bool, typer.Option("--delete", help="Delete data and logs too.")] = False,
) -> None:
    """Stop what `stack up` started, and nothing else. Keeps data and logs by default."""
    stopped = LocalStack(stack_folder()).stop()
    if delete:
        shutil.rmtree(stack_folder(), ignore_errors=True)
    err.print(f"stopped {' and '.join(stopped)}" if stopped else "nothing was running")


@app.command()
def status(
    *,
    as_json: AsJson = False,
) -> None:
    """Show what runs, and where. Exits with 1 unless both services run."""
    running = LocalStack(stack_folder()).services()
    if as_json:
        write_json(
            {
                name: {"address": service.address, "pid": service.process.pid}
                for name, service in running.items()
            }
        )
    else:
        _show(running)
    if len(running) < len(SERVICES):
        raise typer.Exit(Exit.STOPPED)


def _show(running: dict[Name, Service]) -> None:
    table = plain_table("Service", "Address", "Process", "Log", wrap=("Log",))
    for service_name in SERVICES:
        service = running.get(service_name)
        if service is None:
            table.add_row(service_name, "[dim]not running[/dim]")
        else:
            table.add_row(service_name, service.address, str(service.process.pid), service.log_file)
    out.print(table, soft_wrap=True)
