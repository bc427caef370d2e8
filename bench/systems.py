"""The systems that do the job, and how each is started."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from contextgauge.window_catalog import bundled
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.config import GROUP

BENCH: Final = Path(__file__).parent
ROOT: Final = BENCH.parent
PEERS_PYTHON: Final = BENCH / ".venv" / "bin" / "python"
"""The peers' own environment: nothing of theirs is in the product's."""

JAVA_PROJECT: Final = BENCH / "peers" / "kafka_streams"

COMPILED: Final = ROOT / "build" / "compiled"
"""The product with its hot modules compiled, as `make compile` builds it."""

PURE: Final = "BENCH_PURE"
"""In the environment, and not empty: the product is measured in pure Python."""

PREFIX: Final = "bench."
SOURCE: Final = f"{PREFIX}agent.messages"
OURS: Final = f"{PREFIX}context.events"

OUR_NAME: Final = "contextgauge"
RULES_TAG: Final = Rules(bundled()).tag


class Job(NamedTuple):
    """One run of one system. `folder` is empty, for its state; the figures are for the limits."""

    bootstrap: str
    run: str
    folder: Path
    records_per_message: float = 0.0
    record_bytes: int = 0


class Command(NamedTuple):
    """What to start, where it writes, and the group that it commits its position as."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    target: str
    group: str


class System(NamedTuple):
    """A system of the comparison. `title` is for people, `options` for our command or for Java."""

    name: str
    title: str
    is_equal: bool
    """It writes the same records; else it is a limit that only moves bytes."""
    options: Sequence[str] = ()

    def missing(self) -> str | None:
        """Return what of it is missing on this machine, and what to do; None where it can run."""
        if self.name in ("quix_eos", "raw_confluent") and not PEERS_PYTHON.exists():
            return "bench/.venv is missing: run `make bench-setup`"
        if self.name == "kafka_streams_eos_v2" and (missing_java := _missing_java()):
            return missing_java
        return None

    def command(self, job: Job) -> Command:
        """Return how this system is started for a job."""
        if self.name == OUR_NAME:
            return _ours(job, self.options)
        target, group = f"{PREFIX}{job.run}", f"{PREFIX}{job.run}"
        given = [job.bootstrap, SOURCE, target, group]
        if self.name == "quix_eos":
            tail = [RULES_TAG, str(job.folder)]
            arguments = [str(PEERS_PYTHON), "-m", "bench.peers.quix", *given, *tail]
        elif self.name == "kafka_streams_eos_v2":
            arguments = [*_java(self.options), *given, RULES_TAG, str(job.folder)]
        else:
            python = sys.executable if self.name == "raw_aiokafka" else str(PEERS_PYTHON)
            tail = [str(job.records_per_message), str(job.record_bytes)]
            arguments = [python, "-m", f"bench.peers.{self.name}", *given, *tail]
        return Command(arguments, _environment(), target, group)


SYSTEMS: Final = (
    System(OUR_NAME, "contextgauge, exactly-once", is_equal=True),
    System("quix_eos", "Quix Streams, exactly-once", is_equal=True),
    System("kafka_streams_eos_v2", "Kafka Streams, exactly-once v2", is_equal=True),
    System("raw_aiokafka", "raw loop, aiokafka, no guarantee", is_equal=False),
    System("raw_confluent", "raw loop, confluent-kafka, no guarantee", is_equal=False),
)


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if "CONTEXTGAUGE" not in name}
    return {**inherited, "PYTHONPATH": str(ROOT)}


def is_compiled() -> bool:
    """Return whether the compiled product is measured: it is there, and not unwanted."""
    return (COMPILED / ".done").exists() and not os.environ.get(PURE)


def measured_build() -> str:
    """Return which build of ours is measured, for people."""
    if is_compiled():
        return "contextgauge is measured compiled (BENCH_PURE=1 measures pure Python)"
    return "contextgauge is measured in pure Python"


def our_environment() -> dict[str, str]:
    """Return the environment in which `python -m streams` is the build that is measured."""
    if not is_compiled():
        return _environment()
    # -P's variable: else the current folder, and with it the sources, would come first.
    return {**_environment(), "PYTHONPATH": f"{COMPILED}:{ROOT}", "PYTHONSAFEPATH": "1"}


def _ours(job: Job, options: Sequence[str]) -> Command:
    environment = {
        **our_environment(),
        "CONTEXTGAUGE_BOOTSTRAP_SERVERS": job.bootstrap,
        "CONTEXTGAUGE_TOPIC_PREFIX": PREFIX,
        "CONTEXTGAUGE_GROUP_PREFIX": f"{job.run}.",
        "CONTEXTGAUGE_LOG_LEVEL": "warning",
    }
    arguments = [sys.executable, "-m", "streams", "derive", *options]
    return Command(arguments, environment, OURS, f"{job.run}.{GROUP}")


def _jar() -> Path:
    return JAVA_PROJECT / "target" / "kafka-streams-peer-1.jar"


def _java(options: Sequence[str]) -> list[str]:
    classes = f"{_jar()}:{JAVA_PROJECT / 'target' / 'libs'}/*"
    log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", "-Xmx1g", log, *options, "-cp", classes, "bench.Main"]


def _missing_java() -> str | None:
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            return f"no `{program}` on this machine: Kafka Streams needs Java 17 and Maven"
    return None


def _is_built() -> bool:
    sources = [JAVA_PROJECT / "pom.xml", *JAVA_PROJECT.glob("src/**/*.java")]
    newest = max(source.stat().st_mtime for source in sources)
    return _jar().exists() and _jar().stat().st_mtime >= newest


def not_built(system: System) -> str | None:
    """Return why a system cannot run before `make bench-setup`; None where it can."""
    if system.name != "kafka_streams_eos_v2" or _is_built():
        return None
    return "the Kafka Streams program is not built: run `make bench-setup`"


def build_java() -> None:
    """Build the Kafka Streams program where its source is newer than it."""
    if _is_built():
        return
    maven = shutil.which("mvn") or "mvn"
    subprocess.run([maven, "-q", "-B", "package"], cwd=JAVA_PROJECT, check=True)
