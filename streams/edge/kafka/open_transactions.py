"""The requests for open transactions (KIP-664), of brokers from 3.0 on; aiokafka has none of them.

A partition's leader knows its producers and where their transactions begin. Which transactional
id a producer has, and until when, only the coordinator of its transaction knows: each broker is
asked, and lists those that it coordinates and that this user may see.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from aiokafka import errors
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from streams.ports.inspection import OpenTransaction, OpenTransactions

Address: TypeAlias = tuple[str, int]

Ask: TypeAlias = Callable[[Address, Request[Any]], Awaitable[Any]]
"""Asks one broker. Raises aiokafka's errors."""

_PRODUCERS_API, _DESCRIBE_API, _LIST_API, _VERSION = 61, 65, 66, 0
_TEXT = CompactString("utf-8")
_NO_TAGS: Mapping[int, bytes] = {}


class _ProducersResponse(Response):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = _PRODUCERS_API
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("error_message", _TEXT),
                        (
                            "producers",
                            CompactArray(
                                ("producer_id", Int64),
                                ("producer_epoch", Int32),
                                ("last_sequence", Int32),
                                ("last_timestamp", Int64),
                                ("coordinator_epoch", Int32),
                                ("transaction_start", Int64),
                                ("tags", TaggedFields),
                            ),
                        ),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _ProducersStruct(RequestStruct):  # type: ignore[misc]  # aiokafka is not typed
    FLEXIBLE_VERSION = True
    API_KEY = _PRODUCERS_API
    API_VERSION = _VERSION
    RESPONSE_TYPE = _ProducersResponse
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("name", _TEXT), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)
            ),
        ),
        ("tags", TaggedFields),
    )


class _ProducersRequest(Request[_ProducersStruct]):  # type: ignore[misc]  # aiokafka is not typed
    """Ask a leader who writes to its partitions."""

    API_KEY = _PRODUCERS_API

    def __init__(self, partitions: Mapping[str, Sequence[int]]) -> None:
        self._partitions = partitions

    def build(self, request_struct_class: type[_ProducersStruct]) -> _ProducersStruct:
        topics = [(name, list(numbers), _NO_TAGS) for name, numbers in self._partitions.items()]
        return request_struct_class(topics, _NO_TAGS)


class _ListResponse(Response):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = _LIST_API
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("unknown_states", CompactArray(_TEXT)),
        (
            "transactions",
            CompactArray(
                ("transactional_id", _TEXT),
                ("producer_id", Int64),
                ("state", _TEXT),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _ListStruct(RequestStruct):  # type: ignore[misc]  # aiokafka is not typed
    FLEXIBLE_VERSION = True
    API_KEY = _LIST_API
    API_VERSION = _VERSION
    RESPONSE_TYPE = _ListResponse
    SCHEMA = Schema(
        ("states", CompactArray(_TEXT)),
        ("producer_ids", CompactArray(Int64)),
        ("tags", TaggedFields),
    )


class _ListRequest(Request[_ListStruct]):  # type: ignore[misc]  # aiokafka is not typed
    """Ask a broker which transactions of these producers it coordinates."""

    API_KEY = _LIST_API

    def __init__(self, producer_ids: Sequence[int]) -> None:
        self._producer_ids = producer_ids

    def build(self, request_struct_class: type[_ListStruct]) -> _ListStruct:
        return request_struct_class([], list(self._producer_ids), _NO_TAGS)


class _DescribeResponse(Response):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = _DESCRIBE_API
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "transactions",
            CompactArray(
                ("error_code", Int16),
                ("transactional_id", _TEXT),
                ("state", _TEXT),
                ("timeout_ms", Int32),
                ("started_ms", Int64),
                ("producer_id", Int64),
                ("producer_epoch", Int16),
                (
                    "topics",
                    CompactArray(
                        ("name", _TEXT), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _DescribeStruct(RequestStruct):  # type: ignore[misc]  # aiokafka is not typed
    FLEXIBLE_VERSION = True
    API_KEY = _DESCRIBE_API
    API_VERSION = _VERSION
    RESPONSE_TYPE = _DescribeResponse
    SCHEMA = Schema(("transactional_ids", CompactArray(_TEXT)), ("tags", TaggedFields))


class _DescribeRequest(Request[_DescribeStruct]):  # type: ignore[misc]  # aiokafka is not typed
    """Ask a coordinator for transactions that it lists."""

    API_KEY = _DESCRIBE_API

    def __init__(self, transactional_ids: Sequence[str]) -> None:
        self._transactional_ids = transactional_ids

    def build(self, request_struct_class: type[_DescribeStruct]) -> _DescribeStruct:
        return request_struct_class(list(self._transactional_ids), _NO_TAGS)


async def open_transactions(
    ask: Ask, leaders: Mapping[Address, Mapping[str, Sequence[int]]], brokers: Sequence[Address]
) -> OpenTransactions:
    """Return the open transactions of partitions, given by their leaders.

    Raises what `ask` raises, and the error of a partition that cannot be examined.
    """
    found: dict[tuple[str, int], list[OpenTransaction]] = {}
    for address, partitions in leaders.items():
        response = (await ask(address, _ProducersRequest(partitions))).to_object()
        for topic in response["topics"]:
            for part in topic["partitions"]:
                place = topic["name"], part["partition"]
                if part["error_code"]:
                    raise errors.for_code(part["error_code"])(f"{place[0]}-{place[1]}")
                found[place] = [
                    OpenTransaction(
                        producer_id=each["producer_id"],
                        producer_epoch=each["producer_epoch"],
                        start=each["transaction_start"],
                        wrote_ms=each["last_timestamp"],
                    )
                    for each in part["producers"]
                    if each["transaction_start"] >= 0
                ]
    ids = sorted({each.producer_id for several in found.values() for each in several})
    owners = await _coordinated(ask, ids, brokers) if ids else {}
    return {
        place: [replace(each, **owners.get((each.producer_id, *place), {})) for each in several]
        for place, several in found.items()
    }


async def _coordinated(
    ask: Ask, producer_ids: Sequence[int], brokers: Sequence[Address]
) -> Mapping[tuple[int, str, int], Mapping[str, Any]]:
    """Return what coordinators say, by producer id, topic and partition."""
    owners: dict[tuple[int, str, int], Mapping[str, Any]] = {}
    for address in brokers:
        listed = (await ask(address, _ListRequest(producer_ids))).to_object()
        names = [each["transactional_id"] for each in listed["transactions"]]
        if not names:
            continue
        described = (await ask(address, _DescribeRequest(names))).to_object()
        for each in described["transactions"]:  # one that was seen no more has no topics
            facts = {name: each[name] for name in ("transactional_id", "started_ms", "timeout_ms")}
            for topic in each["topics"]:
                owners |= {
                    (each["producer_id"], topic["name"], at): facts for at in topic["partitions"]
                }
    return owners
