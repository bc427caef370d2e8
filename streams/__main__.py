"""`python -m streams` is the command `contextgauge`."""

import gc
import os
import sys

from contextgauge.user_folders import cache_folder

EXTRA_PACKAGES = frozenset(
    {
        "aiohttp",
        "aiokafka",
        "cramjam",
        "faust",
        "google",
        "httptools",
        "mode",
        "opentelemetry",
        "prometheus_client",
        "redis",
        "rich",
        "sse_starlette",
        "starlette",
        "structlog",
        "tomlkit",
        "typer",
        "uvicorn",
        "uvloop",
        "zstandard",
    }
)
"""What the extra `pipeline` installs, by import names."""

_USAGE_ERROR = 2
"""`streams.cli.exits.Exit.WRONG`, which cannot be imported without the library's packages."""

_NOT_HERE = (
    "contextgauge: the command runs on Linux and macOS. On Windows, install and run it in WSL 2; "
    "the library can be imported here too\n"
)

_INTERRUPTED = 130
"""128 and the number of SIGINT, as a shell tells it."""


def main() -> None:
    """Run the command line; the status line skips what only the other commands need."""
    if sys.platform == "win32":
        sys.stderr.write(_NOT_HERE)
        sys.exit(_USAGE_ERROR)
    _keep_bytecode()
    gc.disable()  # imports leave no garbage; `LazyCommand` enables it when a command begins
    try:
        if sys.argv[1:] in (["statusline"], ["statusline", "--verbose"], ["statusline", "-v"]):
            from streams.cli.statusline import statusline_command as statusline  # noqa: PLC0415 -- ADR 0069

            statusline.main(sys.argv[2:])
        else:
            from streams.cli import app  # noqa: PLC0415

            app.main()
    except KeyboardInterrupt:  # before a command heeds signals itself
        sys.exit(_INTERRUPTED)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA_PACKAGES:
            raise
        sys.stderr.write(
            "contextgauge: this is the library alone; the command is in its extra `pipeline`. "
            "Install 'contextgauge[pipeline]' in place of 'contextgauge', the same way\n"
        )
        sys.exit(_USAGE_ERROR)


def _keep_bytecode() -> None:
    """Keep compiled modules in a folder of our own, where the environment says to leave none.

    Compiling all that is imported, at each start, takes three times as long as running it. The
    variable keeps Python from writing next to sources; nothing is. An installation that has been
    compiled is used as it is, and so are `python -B` and a folder that the user has named.
    """
    is_asked = os.environ.get("PYTHONDONTWRITEBYTECODE") and sys.dont_write_bytecode
    cached = None if __spec__ is None else __spec__.cached
    if is_asked and sys.pycache_prefix is None and not (cached and os.path.exists(cached)):  # noqa: PTH110 -- pathlib takes milliseconds to import
        sys.pycache_prefix = os.path.join(cache_folder(), "bytecode")  # noqa: PTH118 -- as above
        sys.dont_write_bytecode = False


if __name__ == "__main__":
    main()
