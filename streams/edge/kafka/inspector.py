"""Looks into Kafka for `contextgauge doctor`: read only, each broker by a connection of its own.

The client library's own client hides which of several brokers failed and why, so connections
are made one by one, and each failure is kept.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import errors
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.protocol.admin import DescribeConfigsRequest, DescribeGroupsRequest
from aiokafka.protocol.api import Request
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.metadata import MetadataRequest

from contextgauge.kafka.options import KafkaOptions
from contextgauge.tls import refusal
from streams.edge.kafka.log import NO_COORDINATOR_YET
from streams.edge.kafka.membership import configuration_of
from streams.edge.kafka.open_transactions import Address, open_transactions
from streams.edge.kafka.versions import SOFTWARE, VersionsRequest, versions
from streams.ports.inspection import (
    GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
    Bootstrap,
    Broker,
    ClusterFacts,
    Configs,
    Failure,
    Group,
    OpenTransactions,
    TopicFacts,
    TopicPartition,
)

_T = TypeVar("_T")

PATIENCE_S = 4.0
"""With one broker's answer. A healthy one takes milliseconds, one across an ocean a second."""

_TOPIC, _BROKER = 2, 4
"""Kafka's numbers for the kinds of what is configured."""

_BROKER_CONFIGS = (
    "auto.create.topics.enable",
    "group.max.session.timeout.ms",
    "group.min.session.timeout.ms",
    "message.max.bytes",
    "offsets.retention.minutes",
    "replica.fetch.max.bytes",
    "transaction.max.timeout.ms",
    "transaction.state.log.min.isr",
)

_REFUSALS = (
    errors.AuthenticationFailedError,
    errors.AuthenticationMethodNotSupported,
    errors.ClusterAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
    errors.IllegalSaslStateError,
    errors.SaslAuthenticationFailed,
    errors.TopicAuthorizationFailedError,
    errors.UnsupportedSaslMechanismError,
)
_UNSUPPORTED = (
    NotImplementedError,
    errors.IncompatibleBrokerVersion,
    errors.UnsupportedVersionError,
)
_LOOK_S = 0.1

_VARIABLES = "CONTEXTGAUGE_KAFKA_"
"""How the settings begin that TLS is mended with."""


_NO_ADDRESS: Address = ("", 0)


class KafkaInspector:
    """The cluster that the options name."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._connections: dict[Address, AIOKafkaConnection] = {}
        self._first: Address | None = None
        self._has_groups = False
        self._brokers: list[Address] = []
        self._leaders: dict[tuple[str, int], Address] = {}

    async def bootstrap(self) -> Sequence[Bootstrap]:
        addresses = [_split(text) for text in self._options.bootstrap_servers.split(",")]
        failures = await asyncio.gather(*[self._connect(address) for address in addresses])
        answering = [
            address for address, failure in zip(addresses, failures, strict=True) if failure is None
        ]
        self._first = answering[0] if answering else None
        return [
            Bootstrap(_joined(address), failure)
            for address, failure in zip(addresses, failures, strict=True)
        ]

    async def cluster(self, topics: Sequence[str]) -> ClusterFacts | Failure:
        if self._first is None:
            return Failure("away", "no broker answers")
        # Never to be made by asking for it: some brokers create what they are asked for.
        names = [*topics, GROUPS_TOPIC, TRANSACTIONS_TOPIC]
        request = MetadataRequest(names, allow_auto_topic_creation=False)
        response = await self._ask(self._first, request)
        if isinstance(response, Failure):
            return response
        metadata = response.to_object()
        addresses = {item["node_id"]: (item["host"], item["port"]) for item in metadata["brokers"]}
        brokers = await asyncio.gather(
            *[self._broker(node, address) for node, address in sorted(addresses.items())]
        )
        self._brokers = [addresses[broker.node] for broker in brokers if broker.failure is None]
        self._leaders = {
            (item["topic"], part["partition"]): addresses[part["leader"]]
            for item in metadata["topics"]
            for part in item["partitions"]
            if part["leader"] in addresses
        }
        there = [item["topic"] for item in metadata["topics"] if item["error_code"] == 0]
        configs = await self._configs(self._first, [(_TOPIC, name, None) for name in there])
        described = {item["topic"]: _topic(item, configs) for item in metadata["topics"]}
        self._has_groups = described.get(GROUPS_TOPIC) is not None
        return ClusterFacts(metadata.get("cluster_id"), brokers, described)

    async def group(self, name: str) -> Group | Failure:
        if not self._has_groups:
            # To ask for a coordinator would make the topic that keeps groups.
            return Group("Dead", (), {})
        try:
            async with asyncio.timeout(PATIENCE_S):
                # The broker has no event that could be waited for.
                while (group := await self._group(name)) is None:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            return Failure("away", f"no broker coordinates the group {name} yet")
        return group

    async def transactions(
        self, partitions: Mapping[str, Sequence[int]]
    ) -> OpenTransactions | Failure:
        leaders: dict[Address, dict[str, list[int]]] = {}
        for topic, numbers in partitions.items():
            for number in numbers:
                leader = self._leaders.get((topic, number), _NO_ADDRESS)
                if leader not in self._connections:
                    return Failure("away", f"the leader of {topic}-{number} does not answer")
                leaders.setdefault(leader, {}).setdefault(topic, []).append(number)
        return await _answer(open_transactions(self._sent, leaders, self._brokers))

    async def stop(self) -> None:
        connections = list(self._connections.values())
        self._connections.clear()
        closing = [closed for item in connections if (closed := item.close()) is not None]
        if closing:
            await asyncio.wait(closing, timeout=PATIENCE_S)

    async def _connect(self, address: Address) -> Failure | None:
        if address in self._connections:
            return None
        host, port = address
        connection = await _answer(
            create_conn(
                host,
                port,
                client_id=self._options.client_id,
                request_timeout_ms=int(PATIENCE_S * 1_000),
                **self._options.security.arguments(),
            )
        )
        if isinstance(connection, Failure):
            return connection
        self._connections[address] = connection
        return None

    async def _ask(self, address: Address, request: Request[Any]) -> Any | Failure:  # noqa: ANN401 -- aiokafka's
        failure = await self._connect(address)
        return failure or await _answer(self._sent(address, request))

    async def _sent(self, address: Address, request: Request[Any]) -> Any:  # noqa: ANN401 -- aiokafka's
        """Send a request to a broker that is connected; return its answer."""
        return await self._connections[address].send(request)

    async def _broker(self, node: int, address: Address) -> Broker:
        failure = await self._connect(address)
        if failure is not None:
            return Broker(node, _joined(address), failure)
        response = await self._ask(address, VersionsRequest(*SOFTWARE))
        known = not isinstance(response, Failure) and not response.error_code
        resource = (_BROKER, str(node), list(_BROKER_CONFIGS))
        configs = await self._configs(address, [resource])
        supported = versions(response) if known else {}
        return Broker(node, _joined(address), None, **supported, configs=configs[str(node)])

    async def _configs(
        self, address: Address, resources: Sequence[tuple[int, str, Sequence[str] | None]]
    ) -> Mapping[str, Configs | Failure]:
        """Return configurations by the names of what has them."""
        if not resources:
            return {}
        response = await self._ask(address, DescribeConfigsRequest(list(resources)))
        if isinstance(response, Failure):
            return {name: response for _, name, _ in resources}
        configs: dict[str, Configs | Failure] = {}
        for code, message, _, name, entries in response.resources:
            configs[name] = (
                _failure(errors.for_code(code)(message))
                if code
                else {entry[0]: entry[1] for entry in entries if entry[1] is not None}
            )
        return configs

    async def _group(self, name: str) -> Group | Failure | None:
        """Return the group; None while its coordinator changes or is not ready yet."""
        if self._first is None:
            return Failure("away", "no broker answers")
        response = await self._ask(self._first, FindCoordinatorRequest(name, 0))
        if isinstance(response, Failure):
            return response
        if response.error_code:
            return _unless_moved(response.error_code)
        coordinator = response.host, response.port
        answer = await self._ask(coordinator, DescribeGroupsRequest([name]))
        if isinstance(answer, Failure):
            return answer
        group = answer.to_object()["groups"][0]
        if group["error_code"]:
            return _unless_moved(group["error_code"])
        hosts = [member["client_host"].removeprefix("/") for member in group["members"]]
        configurations: dict[str, list[str]] = {}
        for member in group["members"]:
            theirs = configuration_of(member["member_metadata"])
            if theirs is not None:
                configurations.setdefault(theirs.digest, []).append(theirs.host)
        committed = await self._committed(coordinator, name)
        return Group(group["state"], sorted(hosts), committed, configurations)

    async def _committed(
        self, coordinator: Address, group: str
    ) -> Mapping[tuple[str, int], int] | Failure:
        response = await self._ask(coordinator, OffsetFetchRequest(group, None))
        if isinstance(response, Failure):
            return response
        if response.error_code:
            return _failure(errors.for_code(response.error_code)())
        return {
            (topic, partition): offset
            for topic, partitions in response.topics
            for partition, offset, _, code in partitions
            if not code and offset >= 0
        }


def _unless_moved(code: int) -> Failure | None:
    error = errors.for_code(code)()
    return None if isinstance(error, NO_COORDINATOR_YET) else _failure(error)


def _topic(
    item: Mapping[str, Any], configs: Mapping[str, Configs | Failure]
) -> TopicFacts | Failure | None:
    if item["error_code"]:
        error = errors.for_code(item["error_code"])
        missing = error in {errors.UnknownTopicOrPartitionError, errors.InvalidTopicError}
        return None if missing else _failure(error())
    partitions = [
        TopicPartition(
            partition=part["partition"],
            leader=None if part["leader"] < 0 else part["leader"],
            replicas=len(part["replicas"]),
            in_sync=len(part["isr"]),
        )
        for part in sorted(item["partitions"], key=lambda part: int(part["partition"]))
    ]
    missing_configs = Failure("away", "its configuration is unknown")
    return TopicFacts(partitions, configs.get(item["topic"], missing_configs))


async def _answer(request: Awaitable[_T]) -> _T | Failure:
    """Wait for an answer, within a time limit."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await request
    except (errors.KafkaError, OSError, NotImplementedError, EOFError) as error:
        return _failure(error)


def _failure(error: BaseException) -> Failure:
    untrusted = refusal(error, _VARIABLES, "the address that was connected to")
    if untrusted is not None:
        return Failure("refused", untrusted)
    if isinstance(error, TimeoutError):
        return Failure("away", f"no answer within {PATIENCE_S:.0f} s")
    if isinstance(error, _REFUSALS):
        name, text = type(error).__name__, str(error)
        return Failure("refused", text if name in text else f"{name}: {text}".removesuffix(": "))
    if isinstance(error, _UNSUPPORTED):
        return Failure("unsupported", str(error) or type(error).__name__)
    return Failure("away", str(error) or type(error).__name__)


def _split(address: str) -> Address:
    host, _, port = address.strip().rpartition(":")
    return host.strip("[]"), int(port)


def _joined(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
