"""The request for a broker's API versions, in the form that includes features (KIP-584).

The client library sends an older form, whose answer covers the protocol only. The response's
header is that of version 0 in all versions, so that any client can read a refusal.
"""

from io import BytesIO

from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

_SUPPORTED_TAG, _FINALIZED_TAG = 0, 2
_FEATURE = "metadata.version"
_PRODUCE_API = 0
_SOFTWARE = ("contextgauge", "0")
"""Brokers count clients by name and version; ours would only make more kinds of them."""

_SUPPORTED = CompactArray(
    ("name", CompactString("utf-8")), ("min", Int16), ("max", Int16), ("tags", TaggedFields)
)
_FINALIZED = CompactArray(
    ("name", CompactString("utf-8")), ("max", Int16), ("min", Int16), ("tags", TaggedFields)
)


class _Response(Response):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_versions",
            CompactArray(
                ("api_key", Int16), ("min", Int16), ("max", Int16), ("tags", TaggedFields)
            ),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _Struct(RequestStruct):  # type: ignore[misc]  # aiokafka is not typed
    FLEXIBLE_VERSION = True
    API_KEY = 18
    API_VERSION = 3
    RESPONSE_TYPE = _Response
    SCHEMA = Schema(
        ("name", CompactString("utf-8")),
        ("version", CompactString("utf-8")),
        ("tags", TaggedFields),
    )

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v0:
        return ResponseHeader_v0.decode(read_buffer)


class VersionsRequest(Request[_Struct]):  # type: ignore[misc]  # aiokafka is not typed
    """Ask a broker for its APIs and features; one that is too old raises NotImplementedError."""

    API_KEY = 18

    def build(self, request_struct_class: type[_Struct]) -> _Struct:
        """Build the only version there is here."""
        return request_struct_class(*_SOFTWARE, {})


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
