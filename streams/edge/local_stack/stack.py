"""Kafka and Redis on this machine, for development, tests and the demo.

Kafka runs from Apache's own jars, which Maven resolves once into the user's cache, in KRaft mode;
Redis is the system's `redis-server` with its append-only file on. Both listen on free ports of
the loopback, keep their data under one folder, and are ended by pid: exactly what was started
here, nothing found by name.
"""

import itertools
import shutil
import signal
import socket
import subprocess
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias, cast

from contextgauge.errors import StopError
from contextgauge.settings.local_stack import STATE_FILE, Running, Service, read_state
from contextgauge.user_folders import cache_folder
from streams import codec
from streams.edge.local_stack import processes
from streams.edge.signals import ending_signals_wait, on_ending_signals

CONFIG_FOLDER = Path(__file__).with_name("config")
"""`pom.xml`, which pins Kafka, and the templates of the services' settings."""

DEFAULT_HEAP_MIB = 512
"""The broker's heap: holds several 10 MiB messages and still fits a small machine."""

QUICK_START = "-XX:TieredStopAtLevel=1"
"""Java's option for a broker that has little to do, where thorough compiling does not pay."""

READY_TIMEOUT_S = 90.0
"""Kafka takes 3 s on an idle machine; a busy one of 2 cores has been seen to take 20."""
STOP_TIMEOUT_S = 20.0
"""Kafka's orderly stop takes up to some seconds; after this it is killed."""

_PORTS = range(20_000, 32_768)
"""Below those that systems give to outgoing connections: while a service is down for a moment,
its port would be taken by one of its own clients that tries to connect."""

_START_ATTEMPTS = 3
"""A free port may be taken by another process before the service binds it."""

_OWNER_ONLY = 0o700

Name: TypeAlias = Literal["kafka", "redis"]


def jars_folder() -> Path:
    """Return where Kafka's jars are once they are fetched: a folder for each version of the pom."""
    version = zlib.crc32((CONFIG_FOLDER / "pom.xml").read_bytes())
    return Path(cache_folder()) / f"kafka-{version:08x}"


class MissingPartError(StopError):
    """The machine lacks a part of the stack; the message is one line and names the remedy."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to start a service, the address at which it will be, and whether it answers there."""

    address: str
    command: Sequence[str]
    is_ready: Callable[[], bool]


class LocalStack:
    """The services of one folder: started by `start`, known again later by the state file.

    `start` and `stop` may be called from different processes; what runs is in
    `<folder>/stack.json`. Kafka's heap is small at first and grows to `heap_mib`;
    `is_heap_reserved` gives it all of it at once, as Kafka's own start script does. `is_brief`
    is for services with work for seconds: they start sooner.
    """

    def __init__(
        self,
        folder: Path,
        *,
        heap_mib: int = DEFAULT_HEAP_MIB,
        is_heap_reserved: bool = False,
        is_brief: bool = False,
    ) -> None:
        self.folder = folder.resolve()
        self._java_options = [f"-Xmx{heap_mib}m"]
        if is_heap_reserved:
            self._java_options.append(f"-Xms{heap_mib}m")
        if is_brief:
            self._java_options.append(QUICK_START)

    def start(
        self,
        wanted: Sequence[Name] = ("kafka", "redis"),
        progress: Callable[[str], None] = lambda _: None,
    ) -> dict[Name, Service]:
        """Start what does not run yet, wait until it answers, and return what runs.

        Raises MissingPartError if a part is missing on this machine, StopError if a service
        does not come up; then whatever this call started is stopped again.
        """
        self._make_folder()
        running = self.services()
        missing = [name for name in wanted if name not in running]
        programs = self.prepare(missing, progress)
        started: dict[Name, Service] = {}
        try:
            for name in missing:
                progress(f"starting {name.capitalize()}")
                self._start(name, programs[name], started)
                self._remember(running | started)
        except BaseException:
            with on_ending_signals(signal.SIG_IGN):  # a second one would leave processes
                for service in started.values():
                    processes.stop(service.process, STOP_TIMEOUT_S)
                self._remember(running)
            raise
        return running | started

    def prepare(
        self, wanted: Sequence[Name], progress: Callable[[str], None] = lambda _: None
    ) -> dict[Name, str]:
        """Make sure that all parts of these services are here; return their programs.

        Kafka's jars are fetched if need be. Raises MissingPartError.
        """
        self._make_folder()
        return {name: self._prepare(name, progress) for name in wanted}

    def services(self) -> dict[Name, Service]:
        """Return the services that this folder's state file names and that still run."""
        state = cast("dict[Name, Service]", read_state(self.folder))
        return {name: service for name, service in state.items() if service.process.alive()}

    def stop(self) -> list[Name]:
        """Stop what runs, and return the names. Data stays."""
        running = self.services()
        with ExitStack() as stopping:  # whatever becomes of one, the others are stopped
            for service in running.values():
                stopping.callback(processes.stop, service.process, STOP_TIMEOUT_S)
        (self.folder / STATE_FILE).unlink(missing_ok=True)
        return list(running)

    def kill(self, name: Name) -> None:
        """End a service at once, as a crash would (for tests of recovery)."""
        service = self.services()[name]
        processes.stop(service.process, 0.0)

    def _make_folder(self) -> None:
        """Make the folder, for its owner alone: the topics hold whole transcripts."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=_OWNER_ONLY)
        self.folder.chmod(_OWNER_ONLY)  # also one of an earlier version

    def _prepare(self, name: Name, progress: Callable[[str], None]) -> str:
        """Make sure that all parts of a service are here; return its program."""
        if name == "redis":
            return _program("redis-server", "Redis", "apt-get install redis-server")
        java = _program("java", "Java 17 or later", "apt-get install default-jre-headless")
        self._resolve_jars(progress)
        return java

    def _resolve_jars(self, progress: Callable[[str], None]) -> None:
        """Have Maven copy Kafka's jars, once per version of the pom."""
        jars = jars_folder()
        if jars.exists():
            return
        mvn = _program("mvn", "Maven, which downloads Kafka once", "apt-get install maven")
        progress("fetching Kafka's jars with Maven (54 MB, once)")
        jars.parent.mkdir(parents=True, exist_ok=True)
        # Complete or not there: others may be fetching them at the same time.
        with TemporaryDirectory(prefix=f"{jars.name}-", dir=jars.parent) as partial:
            shutil.copy(CONFIG_FOLDER / "pom.xml", partial)
            done = subprocess.run(  # noqa: S603 -- a list of arguments, no shell
                [mvn, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"],
                cwd=partial,
                capture_output=True,
                text=True,
                check=False,
            )
            fetched = Path(partial) / "jars"
            if done.returncode != 0 or not any(fetched.glob("kafka_*.jar")):
                log = self.folder / "maven.log"
                log.write_text(done.stdout + done.stderr)
                raise MissingPartError(
                    f"Maven could not fetch Kafka's jars ({_first_error(done.stdout)}): connect to "
                    f"the network, or copy {jars} from another machine; see {log}",
                )
            try:
                fetched.rename(jars)
            except OSError:
                if not jars.exists():  # another process was first
                    raise

    def _start(self, name: Name, program: str, started: dict[Name, Service]) -> None:
        """Start a service and wait until it answers. It is in `started` while it runs."""
        plan_of = self._plan_kafka if name == "kafka" else self._plan_redis
        for attempt in range(_START_ATTEMPTS):
            log_file = self.folder / f"{name}.log"
            log_start = log_file.stat().st_size if log_file.exists() else 0
            plan = plan_of(program, log_file)
            with ending_signals_wait():
                process = processes.start(plan.command, log_file, folder=self.folder)
                started[name] = Service(plan.address, process, str(log_file))
            if _wait(process, plan.is_ready):
                return
            processes.stop(process, 0.0)
            del started[name]
            log = log_file.read_bytes()[log_start:].decode("utf-8", "replace")
            if "Address already in use" not in log or attempt + 1 == _START_ATTEMPTS:
                break
        last = next((line for line in reversed(log.splitlines()) if line.strip()), "no output")
        raise StopError(f"{name} did not start: {last.strip()[:300]}; see {log_file}")

    def _plan_kafka(self, java: str, log_file: Path) -> _Plan:
        broker_port, controller_port = self._ports("kafka", 2)
        data, config = self.folder / "kafka", self.folder / "kafka.properties"
        template = Template((CONFIG_FOLDER / "server.properties").read_text())
        config.write_text(
            template.substitute(
                broker_port=broker_port,
                controller_port=controller_port,
                # A backslash begins an escape in Java's properties.
                data_folder=str(data).replace("\\", "/"),
            )
        )
        classes = ["-cp", f"{jars_folder()}/*"]
        if not (data / "meta.properties").exists():
            cluster_id = str(uuid.uuid5(uuid.NAMESPACE_URL, str(data)))
            tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config)]
            # Else it might be left, writing to the folder for a second.
            with ending_signals_wait():
                formatted = subprocess.run(  # noqa: S603 -- a list of arguments, no shell
                    [java, *self._java_options, *classes, *tool],
                    capture_output=True,
                    text=True,
                    check=False,
                )
            if "UnsupportedClassVersionError" in formatted.stderr:
                raise MissingPartError(
                    f"{java} is too old for Kafka: install Java 17 or later "
                    "(Debian and Ubuntu: apt-get install default-jre-headless)",
                )
            if formatted.returncode != 0:
                reason = (formatted.stderr or formatted.stdout).strip().splitlines()[-1:]
                raise StopError(f"could not format {data}: {' '.join(reason)}")
        log4j = f"-Dlog4j2.configurationFile={CONFIG_FOLDER / 'log4j2.properties'}"
        command = [java, *self._java_options, log4j, *classes, "kafka.Kafka", str(config)]
        log_start = log_file.stat().st_size if log_file.exists() else 0

        def is_ready() -> bool:
            with log_file.open("rb") as log:
                log.seek(log_start)
                return b"Kafka Server started" in log.read()

        return _Plan(f"127.0.0.1:{broker_port}", command, is_ready)

    def _plan_redis(self, program: str, _log_file: Path) -> _Plan:
        (port,) = self._ports("redis", 1)
        data = self.folder / "redis"
        data.mkdir(exist_ok=True)
        config = str(CONFIG_FOLDER / "redis.conf")
        command = [program, config, "--port", str(port), "--dir", str(data)]
        return _Plan(f"redis://127.0.0.1:{port}/0", command, lambda: _redis_answers(port))

    def _remember(self, services: dict[Name, Service]) -> None:
        path = self.folder / STATE_FILE
        partial = path.with_suffix(".part")
        partial.write_bytes(codec.dumps({name: asdict(item) for name, item in services.items()}))
        partial.replace(path)

    def _ports(self, name: Name, count: int) -> list[int]:
        """Return the ports that the service had in this folder if they are free, else new ones.

        Clients of a service that was restarted find it again.
        """
        path = self.folder / f"{name}.ports"
        if path.exists():
            before = [int(port) for port in path.read_text().split()]
            if len(before) == count and all(_is_free(port) for port in before):
                return before
        ports = _free_ports(count, self.folder)
        path.write_text(" ".join(str(port) for port in ports))
        return ports


def _program(name: str, title: str, debian: str) -> str:
    program = shutil.which(name)
    if program is None:
        raise MissingPartError(
            f"no `{name}` on this machine: install {title} (Debian and Ubuntu: {debian})",
        )
    return program


def _first_error(output: str) -> str:
    line = next((line for line in output.splitlines() if line.startswith("[ERROR]")), "no network?")
    return line.removeprefix("[ERROR]").strip()[:160]


def _free_ports(count: int, folder: Path) -> list[int]:
    """Return free ports, looked for from a place of the folder's own: stacks seldom meet."""
    begin = zlib.crc32(str(folder).encode())
    tried = (_PORTS[(begin + step) % len(_PORTS)] for step in range(len(_PORTS)))
    ports = list(itertools.islice(filter(_is_free, tried), count))
    if len(ports) < count:
        raise StopError(f"no free port from {_PORTS.start} to {_PORTS.stop - 1}")
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the services do: a former connection in TIME_WAIT does not make the port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _wait(process: Running, is_ready: Callable[[], bool]) -> bool:
    """Return whether the service came up: false if it ended or took too long."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if is_ready():
            return True
        if not process.alive():
            return False
        time.sleep(0.05)
    return False


def _redis_answers(port: int) -> bool:
    """Ask Redis for a sign of life; one that is loading its file does not count yet."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
