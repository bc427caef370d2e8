"""The request for topics' ids, which a topic gets when it is created (KIP-516).

The client library's metadata request ends at version 5; ids are in its answers from version 10 on,
of brokers from 2.8 on. Version 10 is the only one here: all brokers since then know it.
"""

from collections.abc import Sequence
from io import BytesIO
from uuid import UUID

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion, TopicAuthorizationFailedError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    AbstractType,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from streams.ports import NO_ID

_METADATA_API, _VERSION = 3, 10


class _Uuid(AbstractType[UUID]):  # type: ignore[misc]  # aiokafka is not typed
    @classmethod
    def encode(cls, value: UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> UUID:
        return UUID(bytes=data.read(16))


_TEXT = CompactString("utf-8")
_NODES = CompactArray(Int32)
_BROKERS = CompactArray(
    ("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT), ("tags", TaggedFields)
)
_PARTITIONS = CompactArray(
    ("error_code", Int16),
    ("partition", Int32),
    ("leader", Int32),
    ("leader_epoch", Int32),
    ("replicas", _NODES),
    ("in_sync", _NODES),
    ("offline", _NODES),
    ("tags", TaggedFields),
)


class _IdsResponse(Response):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = _METADATA_API
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", _BROKERS),
        ("cluster_id", _TEXT),
        ("controller", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", _TEXT),
                ("id", _Uuid),
                ("is_internal", Boolean),
                ("partitions", _PARTITIONS),
                ("operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("operations", Int32),
        ("tags", TaggedFields),
    )


class _IdsStruct(RequestStruct):  # type: ignore[misc]  # aiokafka is not typed
    FLEXIBLE_VERSION = True
    API_KEY = _METADATA_API
    API_VERSION = _VERSION
    RESPONSE_TYPE = _IdsResponse
    SCHEMA = Schema(
        ("topics", CompactArray(("id", _Uuid), ("name", _TEXT), ("tags", TaggedFields))),
        ("creates_topics", Boolean),
        ("with_operations_of_cluster", Boolean),
        ("with_operations_of_topics", Boolean),
        ("tags", TaggedFields),
    )


class _IdsRequest(Request[_IdsStruct]):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = _METADATA_API

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[_IdsStruct]) -> _IdsStruct:
        no_tags: dict[int, bytes] = {}
        topics = [(NO_ID, name, no_tags) for name in self._topics]
        # Never to be made by asking for it: some brokers create what they are asked for.
        creates_topics = with_operations = False
        return request_struct_class(
            topics, creates_topics, with_operations, with_operations, no_tags
        )


async def topic_ids(admin: AIOKafkaAdminClient, topics: Sequence[str]) -> dict[str, UUID | None]:
    """Return each topic's id; None where it is missing, NO_ID where the broker is too old for ids.

    Raises Kafka's error where a topic is hidden from this user.
    """
    ids: dict[str, UUID | None] = dict.fromkeys(topics)
    if not topics:
        return ids
    try:
        response = await admin._send_request(_IdsRequest(topics))  # noqa: SLF001 -- no public way
    except (IncompatibleBrokerVersion, NotImplementedError):
        return dict.fromkeys(topics, NO_ID)
    for code, name, topic_id, *_ in response.topics:
        if for_code(code) is TopicAuthorizationFailedError:
            raise TopicAuthorizationFailedError(f"{name} cannot be seen")
        if name in ids and not code:
            ids[name] = topic_id
    return ids
