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
from streams.edge.kafka.versions import VersionsRequest, versions
from streams.ports.inspection import (
    GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
    Bootstrap,
    Broker,
    Cluster,
    Configs,
    Failure,
    Group,
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
_NOT_YET = (
    errors.GroupCoordinatorNotAvailableError,
    errors.GroupLoadInProgressError,
    errors.NotCoordinatorForGroupError,
)
_LOOK_S = 0.1

_VARIABLES = "CONTEXTGAUGE_KAFKA_"
"""How the settings begin that TLS is mended with."""

_Address = tuple[str, int]


class KafkaInspector:
    """The cluster that the options name."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._connections: dict[_Address, AIOKafkaConnection] = {}
        self._addresses: dict[int, _Address] = {}
        self._first: _Address | None = None
        self._has_groups = False

    async def bootstrap(self) -> Sequence[Bootstrap]:
        """Try each address of the settings."""
        addresses = [_split(text) for text in self._options.bootstrap_servers.split(",")]
        found = await asyncio.gather(*[self._connect(address) for address in addresses])
        answering = [
            address for address, failure in zip(addresses, found, strict=True) if failure is None
        ]
        self._first = answering[0] if answering else None
        return [
            Bootstrap(_joined(address), failure)
            for address, failure in zip(addresses, found, strict=True)
        ]

    async def cluster(self, topics: Sequence[str]) -> Cluster | Failure:
        """Return the brokers and these topics."""
        if self._first is None:
            return Failure("away", "no broker answers")
        # Never to be made by asking for it: some brokers create what they are asked for.
        asked = [*topics, GROUPS_TOPIC, TRANSACTIONS_TOPIC]
        request = MetadataRequest(asked, allow_auto_topic_creation=False)
        found = await self._ask(self._first, request)
        if isinstance(found, Failure):
            return found
        told = found.to_object()
        self._addresses = {
            item["node_id"]: (item["host"], item["port"]) for item in told["brokers"]
        }
        brokers = await asyncio.gather(*[self._broker(node) for node in sorted(self._addresses)])
        there = [item["topic"] for item in told["topics"] if item["error_code"] == 0]
        configs = await self._configs(self._first, [(_TOPIC, name, None) for name in there])
        described = {item["topic"]: _topic(item, configs) for item in told["topics"]}
        self._has_groups = described.get(GROUPS_TOPIC) is not None
        return Cluster(told.get("cluster_id"), brokers, described)

    async def group(self, name: str) -> Group | Failure:
        """Return a consumer group, from the broker that coordinates it."""
        if not self._has_groups:
            # To ask for a coordinator would make the topic that keeps groups.
            return Group("Dead", (), {})
        try:
            async with asyncio.timeout(PATIENCE_S):
                # The broker tells of no event that could be waited for.
                while isinstance(found := await self._group(name), _Moved):  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            return Failure("away", f"no broker coordinates the group {name} yet")
        return found

    async def stop(self) -> None:
        """Close all connections."""
        connections = list(self._connections.values())
        self._connections.clear()
        closing = [closed for item in connections if (closed := item.close()) is not None]
        if closing:
            await asyncio.wait(closing, timeout=PATIENCE_S)

    async def _connect(self, address: _Address) -> Failure | None:
        if address in self._connections:
            return None
        host, port = address
        made = await _answer(
            create_conn(
                host,
                port,
                client_id=self._options.client_id,
                request_timeout_ms=int(PATIENCE_S * 1_000),
                **self._options.security.arguments(),
            )
        )
        if isinstance(made, Failure):
            return made
        self._connections[address] = made
        return None

    async def _ask(self, address: _Address, request: Request[Any]) -> Any | Failure:  # noqa: ANN401 -- aiokafka's
        failure = await self._connect(address)
        if failure is not None:
            return failure

        async def send() -> Any:  # noqa: ANN401 -- aiokafka's
            return await self._connections[address].send(request)

        return await _answer(send())

    async def _broker(self, node: int) -> Broker:
        address = self._addresses[node]
        failure = await self._connect(address)
        if failure is not None:
            return Broker(node, _joined(address), failure)
        found = await self._ask(address, VersionsRequest())
        told = None if isinstance(found, Failure) or found.error_code else versions(found)
        resource = (_BROKER, str(node), list(_BROKER_CONFIGS))
        configs = await self._configs(address, [resource])
        return Broker(
            node,
            _joined(address),
            None,
            supported_level=None if told is None else told.supported_level,
            level=None if told is None else told.level,
            newest_api=None if told is None else told.newest_api,
            configs=configs[str(node)],
        )

    async def _configs(
        self, address: _Address, resources: Sequence[tuple[int, str, Sequence[str] | None]]
    ) -> Mapping[str, Configs | Failure]:
        """Return configurations by the names of what has them."""
        if not resources:
            return {}
        found = await self._ask(address, DescribeConfigsRequest(list(resources)))
        if isinstance(found, Failure):
            return {name: found for _, name, _ in resources}
        told: dict[str, Configs | Failure] = {}
        for code, message, _, name, entries in found.resources:
            told[name] = (
                _failure(errors.for_code(code)(message))
                if code
                else {entry[0]: entry[1] for entry in entries if entry[1] is not None}
            )
        return told

    async def _group(self, name: str) -> "Group | Failure | _Moved":
        if self._first is None:
            return Failure("away", "no broker answers")
        found = await self._ask(self._first, FindCoordinatorRequest(name, 0))
        if isinstance(found, Failure):
            return found
        if found.error_code:
            return _moved_or(found.error_code)
        coordinator = found.host, found.port
        answer = await self._ask(coordinator, DescribeGroupsRequest([name]))
        if isinstance(answer, Failure):
            return answer
        group = answer.to_object()["groups"][0]
        if group["error_code"]:
            return _moved_or(group["error_code"])
        hosts = [member["client_host"].removeprefix("/") for member in group["members"]]
        return Group(group["state"], sorted(hosts), await self._committed(coordinator, name))

    async def _committed(
        self, coordinator: _Address, group: str
    ) -> Mapping[tuple[str, int], int] | Failure:
        found = await self._ask(coordinator, OffsetFetchRequest(group, None))
        if isinstance(found, Failure):
            return found
        if found.error_code:
            return _failure(errors.for_code(found.error_code)())
        return {
            (topic, partition): offset
            for topic, partitions in found.topics
            for partition, offset, _, code in partitions
            if not code and offset >= 0
        }


class _Moved:
    """The group's coordinator is another by now, or is not ready yet."""


def _moved_or(code: int) -> Failure | _Moved:
    error = errors.for_code(code)()
    return _Moved() if isinstance(error, _NOT_YET) else _failure(error)


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
    missing_configs = Failure("away", "its configuration was not told")
    return TopicFacts(partitions, configs.get(item["topic"], missing_configs))


async def _answer(asked: Awaitable[_T]) -> _T | Failure:
    """Wait for an answer, and not for ever."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await asked
    except (errors.KafkaError, OSError, NotImplementedError, EOFError) as error:
        return _failure(error)


def _failure(error: BaseException) -> Failure:
    untrusted = refusal(error, _VARIABLES, "the address that was connected to")
    if untrusted is not None:
        return Failure("refused", untrusted)
    if isinstance(error, TimeoutError):
        return Failure("away", f"no answer within {PATIENCE_S:.0f} s")
    if isinstance(error, _REFUSALS):
        name, said = type(error).__name__, str(error)
        return Failure("refused", said if name in said else f"{name}: {said}".removesuffix(": "))
    if isinstance(error, NotImplementedError | errors.UnsupportedVersionError):
        return Failure("unsupported", str(error) or type(error).__name__)
    return Failure("away", str(error) or type(error).__name__)


def _split(address: str) -> _Address:
    host, _, port = address.strip().rpartition(":")
    return host.strip("[]"), int(port)


def _joined(address: _Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
