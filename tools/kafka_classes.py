"""Archive the classes that a starting Kafka loads: with it a broker starts in half the CPU time.

The tests start some thirty brokers. `make test` makes the archive once, next to Kafka's jars; the
JVM reads it where tests/conftest.py names it, and does without where it does not fit.
"""

import os
import sys
import tempfile
from pathlib import Path

from streams.edge.local_stack.stack import QUICK_START, LocalStack, MissingPartError, jars_folder

ARCHIVE = jars_folder() / "classes.jsa"
OPTIONS = f"{QUICK_START} -XX:+UseSerialGC"
"""Of every Java that the tests start: the archive fits only those with the same options."""


def main() -> None:
    """Run a broker once; at its end its JVM writes the archive."""
    with tempfile.TemporaryDirectory() as folder:
        stack, made = LocalStack(Path(folder)), Path(folder) / ARCHIVE.name
        try:
            stack.prepare(["kafka"])
            os.environ["JDK_JAVA_OPTIONS"] = f"{OPTIONS} -XX:ArchiveClassesAtExit={made}"
            stack.start(["kafka"])
        except MissingPartError as error:
            sys.exit(f"kafka_classes: {error}")
        finally:
            stack.stop()
        if made.exists():
            made.replace(ARCHIVE)


if __name__ == "__main__":
    main()
