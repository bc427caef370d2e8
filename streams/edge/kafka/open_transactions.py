"""The requests for open transactions (KIP-664), of brokers from 3.0 on; aiokafka has none of them.

A partition's leader knows its producers and where their transactions begin. Which transactional
id a producer has, and until when, only the coordinator of its transaction knows: each broker is
asked, and lists those that it coordinates and that this user may see.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from aiokafka import errors
from aiokafka.protocol.api import Request
from aiokafka.protocol.types import CompactArray, Int16, Int32, Int64

from streams.edge.kafka.requests import TEXT, fields, request, rows
from streams.ports.inspection import OpenTransaction, OpenTransactions

Address: TypeAlias = tuple[str, int]

Ask: TypeAlias = Callable[[Address, Request[Any]], Awaitable[Any]]
"""Asks one broker. Raises aiokafka's errors."""

_PARTITIONS = rows(("name", TEXT), ("partitions", CompactArray(Int32)))

_ProducersRequest = request(
    61,
    0,
    fields(("topics", _PARTITIONS)),
    fields(
        ("throttle_time_ms", Int32),
        (
            "topics",
            rows(
                ("name", TEXT),
                (
                    "partitions",
                    rows(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("error_message", TEXT),
                        (
                            "producers",
                            rows(
                                ("producer_id", Int64),
                                ("producer_epoch", Int32),
                                ("last_sequence", Int32),
                                ("last_timestamp", Int64),
                                ("coordinator_epoch", Int32),
                                ("transaction_start", Int64),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)
"""Asks a leader who writes to its partitions."""

_ListRequest = request(
    66,
    0,
    fields(("states", CompactArray(TEXT)), ("producer_ids", CompactArray(Int64))),
    fields(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("unknown_states", CompactArray(TEXT)),
        (
            "transactions",
            rows(("transactional_id", TEXT), ("producer_id", Int64), ("state", TEXT)),
        ),
    ),
)
"""Asks a broker which transactions of these producers it coordinates."""

_DescribeRequest = request(
    65,
    0,
    fields(("transactional_ids", CompactArray(TEXT))),
    fields(
        ("throttle_time_ms", Int32),
        (
            "transactions",
            rows(
                ("error_code", Int16),
                ("transactional_id", TEXT),
                ("state", TEXT),
                ("timeout_ms", Int32),
                ("started_ms", Int64),
                ("producer_id", Int64),
                ("producer_epoch", Int16),
                ("topics", _PARTITIONS),
            ),
        ),
    ),
)
"""Asks a coordinator for transactions that it lists."""


async def open_transactions(
    ask: Ask, leaders: Mapping[Address, Mapping[str, Sequence[int]]], brokers: Sequence[Address]
) -> OpenTransactions:
    """Return the open transactions of partitions, given by their leaders.

    Raises what `ask` raises, and the error of a partition that cannot be examined.
    """
    by_partition: dict[tuple[str, int], list[OpenTransaction]] = {}
    for address, partitions in leaders.items():
        topics: list[Any] = [(name, list(numbers), {}) for name, numbers in partitions.items()]
        response = (await ask(address, _ProducersRequest(topics))).to_object()
        for topic in response["topics"]:
            for part in topic["partitions"]:
                place = topic["name"], part["partition"]
                if part["error_code"]:
                    raise errors.for_code(part["error_code"])(f"{place[0]}-{place[1]}")
                by_partition[place] = [
                    OpenTransaction(
                        producer_id=each["producer_id"],
                        producer_epoch=each["producer_epoch"],
                        start=each["transaction_start"],
                        wrote_ms=each["last_timestamp"],
                    )
                    for each in part["producers"]
                    if each["transaction_start"] >= 0
                ]
    ids = sorted({each.producer_id for several in by_partition.values() for each in several})
    owners = await _coordinated(ask, ids, brokers) if ids else {}
    return {
        place: [replace(each, **owners.get((each.producer_id, *place), {})) for each in several]
        for place, several in by_partition.items()
    }


async def _coordinated(
    ask: Ask, producer_ids: Sequence[int], brokers: Sequence[Address]
) -> Mapping[tuple[int, str, int], Mapping[str, Any]]:
    """Return what coordinators say, by producer id, topic and partition."""
    owners: dict[tuple[int, str, int], Mapping[str, Any]] = {}
    for address in brokers:
        listed = (await ask(address, _ListRequest([], list(producer_ids)))).to_object()
        names = [each["transactional_id"] for each in listed["transactions"]]
        if not names:
            continue
        described = (await ask(address, _DescribeRequest(names))).to_object()
        for each in described["transactions"]:  # one that was seen no more has no topics
            facts = {name: each[name] for name in ("transactional_id", "started_ms", "timeout_ms")}
            for topic in each["topics"]:
                owners |= {
                    (each["producer_id"], topic["name"], partition): facts
                    for partition in topic["partitions"]
                }
    return owners
