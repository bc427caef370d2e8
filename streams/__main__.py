"""`python -m streams` is the command `contextgauge`."""

import gc
import sys


def main() -> None:
    """Run the command line; a status line before all that only the other commands need."""
    if sys.argv[1:] in (["statusline"], ["statusline", "--verbose"], ["statusline", "-v"]):
        gc.disable()  # it is over before there is anything to collect
        from streams.cli.statusline import command as statusline  # noqa: PLC0415 -- ADR 0032

        statusline.main(sys.argv[2:])
    else:
        from streams.cli import app  # noqa: PLC0415

        app.main()


if __name__ == "__main__":
    main()
