"""The request for topics' ids, which a topic gets when it is created (KIP-516).

The client library's metadata request ends at version 5; ids are in its answers from version 10 on,
of brokers from 2.8 on. Version 10 is the only one here: all brokers since then know it.
"""

from collections.abc import Sequence
from io import BytesIO
from uuid import UUID

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion, TopicAuthorizationFailedError, for_code
from aiokafka.protocol.types import AbstractType, Boolean, CompactArray, Int16, Int32

from streams.edge.kafka.requests import TEXT, fields, request, rows
from streams.ports import NO_ID


class _Uuid(AbstractType[UUID]):  # type: ignore[misc]  # aiokafka is not typed
    @classmethod
    def encode(cls, value: UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> UUID:
        return UUID(bytes=data.read(16))


_NODES = CompactArray(Int32)

_IdsRequest = request(
    3,
    10,
    fields(
        ("topics", rows(("id", _Uuid), ("name", TEXT))),
        ("creates_topics", Boolean),
        ("with_operations_of_cluster", Boolean),
        ("with_operations_of_topics", Boolean),
    ),
    fields(
        ("throttle_time_ms", Int32),
        ("brokers", rows(("node_id", Int32), ("host", TEXT), ("port", Int32), ("rack", TEXT))),
        ("cluster_id", TEXT),
        ("controller", Int32),
        (
            "topics",
            rows(
                ("error_code", Int16),
                ("name", TEXT),
                ("id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    rows(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", _NODES),
                        ("in_sync", _NODES),
                        ("offline", _NODES),
                    ),
                ),
                ("operations", Int32),
            ),
        ),
        ("operations", Int32),
    ),
)


async def topic_ids(admin: AIOKafkaAdminClient, topics: Sequence[str]) -> dict[str, UUID | None]:
    """Return each topic's id; None where it is missing, NO_ID where the broker is too old for ids.

    Raises Kafka's error where a topic is hidden from this user.
    """
    ids: dict[str, UUID | None] = dict.fromkeys(topics)
    if not topics:
        return ids
    # Never to be made by asking for it: some brokers create what they are asked for.
    asked = _IdsRequest([(NO_ID, name, {}) for name in topics], False, False, False)  # noqa: FBT003 -- creates no topics, asks for no rights
    try:
        response = await admin._send_request(asked)  # noqa: SLF001 -- no public way
    except (IncompatibleBrokerVersion, NotImplementedError):
        return dict.fromkeys(topics, NO_ID)
    for code, name, topic_id, *_ in response.topics:
        if for_code(code) is TopicAuthorizationFailedError:
            raise TopicAuthorizationFailedError(f"{name} cannot be seen")
        if name in ids and not code:
            ids[name] = topic_id
    return ids
