"""Three brokers of a Kafka, each on its own data, which may be killed, paused and cut off.

All topics have three replicas, of which two must have what is acknowledged. Workers connect as a
user and through wires; the test connects directly, and may do everything.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient

from contextgauge.settings.local_stack import Running
from streams.edge.local_stack import processes
from streams.edge.local_stack.stack import CONFIG_FOLDER, LocalStack, jars_folder
from tests.chaos.wire import Wire
from tests.flow.derive_kit import until
from tests.patience import PATIENCE, PATIENCE_S
from tools.kafka_classes import java_options

NODES: Final = (1, 2, 3)
USER: Final = "worker"
PASSWORD: Final = "of the workers"  # noqa: S105 -- of these brokers only
_HEAP: Final = "-Xmx320m"
_CLUSTER: Final = "contextgaugechaos00000"
_START_S: Final = 90.0 * PATIENCE

_SETTINGS: Final = Template("""
node.id=${node}
controller.quorum.voters=${voters}
listeners=DIRECT://127.0.0.1:${direct},WIRED://127.0.0.1:${wired},CONTROLLER://127.0.0.1:${control}
advertised.listeners=DIRECT://127.0.0.1:${direct},WIRED://127.0.0.1:${wire}
listener.security.protocol.map=DIRECT:PLAINTEXT,WIRED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=DIRECT
sasl.enabled.mechanisms=PLAIN
listener.name.wired.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
required user_${user}="${password}";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
log.dirs=${data}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
replica.lag.time.max.ms=5000
replica.socket.timeout.ms=5000
controller.quorum.request.timeout.ms=1500
log.cleaner.backoff.ms=300
log.cleaner.delete.retention.ms=100
log.index.size.max.bytes=131072
num.recovery.threads.per.data.dir=2
log.segment.delete.delay.ms=1000
""")
"""On top of the local stack's settings, of which the later ones count."""


class Broker:
    """One broker, which is also a controller."""

    def __init__(self, node: int, folder: Path, ports: Sequence[int]) -> None:
        self.node, self.folder = node, folder
        self.data = folder / "data"
        self.direct, self.wired, self.wire, self.control = ports
        self.process: Running | None = None
        self.log_file = folder / "kafka.log"
        self._inside: tuple[str, ...] = ()

    def write_settings(self, voters: str) -> None:
        """Write the file that it starts with."""
        self.folder.mkdir(parents=True, exist_ok=True)
        template = Template((CONFIG_FOLDER / "server.properties").read_text())
        base = template.substitute(
            broker_port=self.direct, controller_port=self.control, data_folder=self.data
        )
        own = _SETTINGS.substitute(
            node=self.node,
            voters=voters,
            direct=self.direct,
            wired=self.wired,
            wire=self.wire,
            control=self.control,
            user=USER,
            password=PASSWORD,
            data=self.data,
        )
        (self.folder / "server.properties").write_text(base + own)

    def format(self) -> None:
        """Make the data folder a new one of this cluster."""
        if not self._inside:  # a folder that something is mounted on has to stay
            shutil.rmtree(self.data, ignore_errors=True)
        config = str(self.folder / "server.properties")
        arguments = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", config)
        run_java(*arguments, before=self._inside)

    def start(self) -> None:
        """Start it; it is of use a few seconds later."""
        config = str(self.folder / "server.properties")
        command = [*self._inside, *_java("kafka.Kafka", config)]
        self.process = processes.start(
            command, self.log_file, folder=self.folder, environment=_environment()
        )

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self.process is not None and self.process.alive():
            os.kill(self.process.pid, number)

    def is_alive(self) -> bool:
        """Return whether its process runs."""
        return self.process is not None and self.process.alive()

    def kill(self) -> None:
        """Crash it."""
        if self.process is not None:
            processes.stop(self.process, 0.0)

    def stop(self) -> None:
        """End it in good order, as a rolling restart does."""
        if self.process is not None:
            processes.stop(self.process, 30.0)

    def live_in(self, holder: int) -> None:
        """From its next start on, see the file systems that this process has mounted."""
        self._inside = ("nsenter", f"--target={holder}", "--user", "--mount") if holder else ()


class Brokers:
    """The cluster, with a wire before each broker."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        quads = [ports[index : index + 4] for index in range(0, 12, 4)]
        self.nodes = {
            node: Broker(node, folder / str(node), quad)
            for node, quad in zip(NODES, quads, strict=True)
        }
        self.wires = {
            node: Wire(broker.wire, broker.wired, is_kafka=True)
            for node, broker in self.nodes.items()
        }
        LocalStack(folder).prepare(["kafka"])
        voters = ",".join(f"{node}@127.0.0.1:{b.control}" for node, b in self.nodes.items())
        for broker in self.nodes.values():
            broker.write_settings(voters)

    @property
    def direct(self) -> str:
        """Where the test connects."""
        return ",".join(f"127.0.0.1:{broker.direct}" for broker in self.nodes.values())

    @property
    def wired(self) -> str:
        """Where workers connect."""
        return ",".join(f"127.0.0.1:{broker.wire}" for broker in self.nodes.values())

    async def start(self) -> None:
        """Format all brokers and start them."""
        formats = (asyncio.to_thread(broker.format) for broker in self.nodes.values())
        await asyncio.gather(*formats)
        await self.heal()

    async def heal(self) -> None:
        """Bring back whatever is away, and wait until every replica is in sync."""
        for node, broker in self.nodes.items():
            broker.signal(signal.SIGCONT)
            if not broker.is_alive():
                broker.start()
            self.wires[node].clear()
        async with asyncio.timeout(_START_S):
            # The brokers have no event that could be waited for.
            while not await self._is_whole():  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    async def _is_whole(self) -> bool:
        try:
            async with self.admin() as admin:
                cluster = await admin.describe_cluster()
                topics = await admin.describe_topics(None)
        except Exception:  # noqa: BLE001 -- brokers that are just starting give every kind of error
            return False
        partitions = [part for topic in topics for part in topic["partitions"]]
        in_sync = all(len(part["isr"]) == len(part["replicas"]) for part in partitions)
        return len(cluster["brokers"]) == len(NODES) and in_sync

    def admin(self) -> "Admin":
        """Return a client of administration: `async with brokers.admin() as admin`."""
        return Admin(self.direct)

    async def leader(self, topic: str, partition: int) -> int:
        """Return the node that leads a partition."""
        async with self.admin() as admin:
            (description,) = await admin.describe_topics([topic])
        return next(
            int(p["leader"]) for p in description["partitions"] if p["partition"] == partition
        )

    async def coordinator(self, group: str) -> int:
        """Return the node that coordinates a group."""
        async with self.admin() as admin:
            return int(await admin.find_coordinator(group))

    def stop(self) -> None:
        """End everything."""
        for broker in self.nodes.values():
            broker.signal(signal.SIGCONT)
            broker.kill()
        for wire in self.wires.values():
            wire.stop()


class Admin:
    """A client of administration that is closed at the end of a block."""

    def __init__(self, bootstrap: str) -> None:
        self._client = AIOKafkaAdminClient(
            bootstrap_servers=bootstrap, request_timeout_ms=round(10_000 * PATIENCE)
        )

    async def __aenter__(self) -> Any:
        await self._client.start()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


async def until_answers(brokers: Brokers, node: int) -> None:
    """Wait until a broker that was started is back in the cluster."""

    async def is_back() -> bool:
        try:
            async with Admin(f"127.0.0.1:{brokers.nodes[node].direct}") as admin:
                cluster = await admin.describe_cluster()
        except Exception:  # noqa: BLE001 -- as above
            return False
        return any(broker["node_id"] == node for broker in cluster["brokers"])

    await until(is_back)


def run_java(*arguments: str, before: Sequence[str] = ()) -> None:
    """Run one of Kafka's own tools."""
    command = [*before, *_java(*arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=_environment(), timeout=PATIENCE_S
    )
    if done.returncode:
        raise RuntimeError(f"{arguments}: {done.stderr or done.stdout}")


def _java(*arguments: str) -> list[str]:
    log4j = f"-Dlog4j2.configurationFile={CONFIG_FOLDER / 'log4j2.properties'}"
    return ["java", _HEAP, log4j, "-cp", f"{jars_folder()}/*", *arguments]


def _environment() -> dict[str, str]:
    return {**os.environ, "JDK_JAVA_OPTIONS": java_options()}
