"""Archive the classes that a starting Kafka loads: with it a broker starts in half the CPU time.

The tests start some thirty brokers. `make test` makes the archive once, next to Kafka's jars; the
JVM reads it where `java_options` names it, and does without where it does not fit.
"""

import os
import sys
import tempfile
from pathlib import Path

from streams.edge.local_stack.stack import QUICK_START, LocalStack, MissingPartError, jars_folder

_ARCHIVE = jars_folder() / "classes.jsa"
_OPTIONS = f"{QUICK_START} -XX:+UseSerialGC"
"""Of every Java that the tests start: the archive fits only those with the same options."""


def java_options() -> str:
    """Return what lets a JVM start quickly (JDK_JAVA_OPTIONS), with the archive if it is there."""
    if not _ARCHIVE.exists():
        return _OPTIONS
    return f"{_OPTIONS} -XX:SharedArchiveFile={_ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"


def main() -> None:
    """Run a broker once; at its end its JVM writes the archive."""
    with tempfile.TemporaryDirectory() as folder:
        stack, made = LocalStack(Path(folder)), Path(folder) / _ARCHIVE.name
        try:
            stack.prepare(["kafka"])
            os.environ["JDK_JAVA_OPTIONS"] = f"{_OPTIONS} -XX:ArchiveClassesAtExit={made}"
            stack.start(["kafka"])
        except MissingPartError as error:
            sys.exit(f"kafka_classes: {error}")
        finally:
            stack.stop()
        if made.exists():
            made.replace(_ARCHIVE)


if __name__ == "__main__":
    main()
