"""The request for a broker's API versions, in the form that includes features (KIP-584).

The client library sends an older form, whose answer covers the protocol only. The response's
header is that of version 0 in all versions, so that any client can read a refusal.
"""

from io import BytesIO

from aiokafka.protocol.api import Response, ResponseHeader_v0
from aiokafka.protocol.types import CompactArray, Int16, Int32

from streams.edge.kafka.requests import TEXT, fields, request, rows

_SUPPORTED_TAG, _FINALIZED_TAG = 0, 2
_FEATURE = "metadata.version"
_PRODUCE_API = 0
SOFTWARE = ("contextgauge", "0")
"""Brokers count clients by name and version; ours would only make more kinds of them."""

_SUPPORTED = rows(("name", TEXT), ("min", Int16), ("max", Int16))
_FINALIZED = rows(("name", TEXT), ("max", Int16), ("min", Int16))


VersionsRequest = request(
    18,
    3,
    fields(("name", TEXT), ("version", TEXT)),
    fields(
        ("error_code", Int16),
        ("api_versions", rows(("api_key", Int16), ("min", Int16), ("max", Int16))),
        ("throttle_time_ms", Int32),
    ),
    ResponseHeader_v0,
)
"""Asks a broker for its APIs and features; one that is too old raises NotImplementedError."""


def versions(response: Response) -> dict[str, int | None]:
    """Return a `Broker`'s fields: `metadata.version`, supported and finalised, newest Produce."""
    apis = {key: newest for key, _, newest, _ in response.api_versions}
    supported = _features(_SUPPORTED, response.tags.get(_SUPPORTED_TAG))
    finalized = _features(_FINALIZED, response.tags.get(_FINALIZED_TAG))
    return {
        "supported_level": supported.get(_FEATURE, (None, None))[1],
        "level": finalized.get(_FEATURE, (None, None))[0],
        "newest_api": apis.get(_PRODUCE_API),
    }


def _features(schema: CompactArray, tagged: bytes | None) -> dict[str, tuple[int, int]]:
    if not tagged:
        return {}
    features = schema.decode(BytesIO(tagged)) or []
    return {name: (first, second) for name, first, second, _ in features}
