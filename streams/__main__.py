"""`python -m streams` is the command `contextgauge`."""

import gc
import sys

EXTRA_PACKAGES = frozenset(
    {
        "aiohttp",
        "faust",
        "httptools",
        "mode",
        "prometheus_client",
        "redis",
        "rich",
        "sse_starlette",
        "starlette",
        "structlog",
        "typer",
        "uvicorn",
        "uvloop",
    }
)
"""What the extra `pipeline` installs, by import names."""

_USAGE_ERROR = 2
"""`streams.cli.exits.Exit.WRONG`, which cannot be imported without the library's packages."""


def main() -> None:
    """Run the command line; the status line skips what only the other commands need."""
    try:
        if sys.argv[1:] in (["statusline"], ["statusline", "--verbose"], ["statusline", "-v"]):
            gc.disable()  # it ends before there is anything to collect
            from streams.cli.statusline import command as statusline  # noqa: PLC0415 -- ADR 0032

            statusline.main(sys.argv[2:])
        else:
            from streams.cli import app  # noqa: PLC0415

            app.main()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA_PACKAGES:
            raise
        sys.stderr.write(
            "contextgauge: this is the library alone; the command is in its extra `pipeline`. "
            "Install 'contextgauge[pipeline]' in place of 'contextgauge', the same way\n"
        )
        sys.exit(_USAGE_ERROR)


if __name__ == "__main__":
    main()
