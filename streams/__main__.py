"""`python -m streams` is the command `contextgauge`."""

from streams.cli.app import main

if __name__ == "__main__":
    main()
