"""Run the agent of `examples/compacted_by_service.py` with everything that it needs.

    make demo-compaction [SERVE=1]

Starts Kafka, Redis, the workers, the compaction service and the server; runs the agent; shows what
the service decided and did, and the session's compactions. With `--serve` the page stays until
Ctrl-C.
"""

import asyncio
import os
import re
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import cast

from contextgauge.errors import ConfigError, StopError
from contextgauge.settings.forms import PREFIX
from streams import wiring
from streams.cli.demo.page import page_server, until_interrupted
from streams.cli.demo.pipeline import Pipeline, environment_of, real_pipeline, real_services
from streams.cli.demo.report import step
from streams.cli.ending import Ending
from streams.cli.screen.output import out, rule

COMMANDS = ("derive", "project", "conversations", "control")

SERVICE = """
[conversations]
agents = ["demo-*"]

[[sessions]]
agents = ["demo-*"]
automatic = true
compact_at = "80%"
compact_to = "50%"
"""

EXAMPLE = Path(__file__).parents[1] / "examples" / "compacted_by_service.py"


async def show(folder: Path, pipeline: Pipeline, *, stays: bool) -> None:
    """Run the agent, then the commands that show what was done."""
    step(f"{', '.join(COMMANDS)} are running", done=True)
    async with page_server(folder, pipeline) as (address, server):
        step(f"the page is at {address}", done=True)
        rule("the agent")
        environment = environment_of(pipeline.settings)
        printed = await _run([str(EXAMPLE), address.rstrip("/")], environment)
        session = re.search(r"^session (\S+):", printed, re.MULTILINE)
        if session is None:
            raise StopError("the agent did not say which session it is")
        for command in ("context", "why", "events"):
            rule(f"contextgauge {command} {session[1][:8]}")
            await _run(["-m", "streams", command, session[1]], environment)
        if stays:
            step(f"the page is at {address}#/session/{session[1]}: Ctrl-C to stop", done=True)
            await until_interrupted(pipeline, server)


async def _run(arguments: list[str], environment: dict[str, str]) -> str:
    """Run Python, showing what it prints at once, and return that. Raises StopError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", *arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    lines: list[str] = []
    async for line in cast("asyncio.StreamReader", process.stdout):
        lines.append(line.decode(errors="replace"))
        out.print(lines[-1], end="", markup=False, highlight=False, soft_wrap=True)
    if await process.wait() != 0:
        raise StopError(f"`{' '.join(arguments)}` ended with {process.returncode}")
    return "".join(lines)


def main() -> None:
    """Run the demonstration."""
    rule("make demo-compaction")
    ending = Ending()
    starting = real_services(lambda what: step(f"{what} …"))
    with ending.by_signals(), starting as (folder, services):
        file = folder / "compaction.toml"
        file.write_text(SERVICE, encoding="utf-8")
        os.environ[PREFIX + "COMPACTION_FILE"] = str(file)
        real = wiring.settings().at(services["kafka"].address, services["redis"].address)
        ending.run(lambda: _all(folder, real_pipeline(folder, real, COMMANDS)))
        step("stopping Kafka and Redis …")
    step("everything is stopped", done=True)


async def _all(folder: Path, opening: AbstractAsyncContextManager[Pipeline]) -> None:
    async with opening as pipeline:
        await show(folder, pipeline, stays="--serve" in sys.argv[1:])


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, StopError) as error:
        raise SystemExit(f"error: {error}") from None
