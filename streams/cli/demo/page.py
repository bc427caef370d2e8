"""The web page at the end of `contextgauge demo --serve`: a `contextgauge serve` of its own."""

import asyncio
import shlex
from contextlib import suppress
from pathlib import Path
from typing import cast

from rich.text import Text

from contextgauge.errors import StopError
from contextgauge.settings.forms import PREFIX
from streams import codec
from streams.cli.demo.pipeline import (
    LOOK_S,
    STALL_S,
    Pipeline,
    Worker,
    connection_variables,
    environment_of,
)
from streams.cli.demo.report import say
from streams.cli.screen.output import out
from streams.edge.telemetry.server import listening
from streams.settings.serving import ServingSettings

_CHECK_S = 1.0
"""Interval of the checks whether everything still runs."""


async def serve_page(folder: Path, pipeline: Pipeline) -> None:
    """Serve the page on this machine until Ctrl-C: on the settings' port, or a free one."""
    environment = environment_of(pipeline.settings)
    for name in ServingSettings.model_fields:  # settings of a server for others
        environment.pop(PREFIX + name.upper(), None)
    port = pipeline.settings.serve_port
    try:
        listening("127.0.0.1", port).close()
    except OSError:
        say(f"port {port} is taken: serving the page on a free one", done=True)
        port = 0
    environment |= {PREFIX + "SERVE_PORT": str(port), PREFIX + "LOG_LEVEL": "info"}
    with Worker("serve", folder / "serve.log", environment) as server:
        say(f"the page is at {await _address(server)}, live: press Ctrl-C to stop", done=True)
        say("for `contextgauge top` and all other commands, in another terminal:", done=True)
        for name, value in connection_variables(pipeline.settings).items():
            out.print(Text(f"    export {name}={shlex.quote(value)}", style="bold"), soft_wrap=True)
        with suppress(asyncio.CancelledError):  # here Ctrl-C is the regular end
            while True:
                pipeline.check()
                server.check()
                await asyncio.sleep(_CHECK_S)
        cast("asyncio.Task[None]", asyncio.current_task()).uncancel()
    out.print()


async def _address(server: Worker) -> str:
    """Return the server's address from its log. Raises StopError."""
    for _ in range(int(STALL_S / LOOK_S)):
        server.check()
        for line in server.log_file.read_text(errors="replace").splitlines():
            with suppress(ValueError):  # half a line
                entry = codec.loads(line)
                if isinstance(entry, dict) and entry.get("event") == "serving":
                    return f"{entry['address']}/"
        await asyncio.sleep(LOOK_S)
    raise StopError("the page's server does not respond")
