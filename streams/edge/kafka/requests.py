"""Requests that aiokafka lacks, each in one version of the forms with tagged fields (KIP-482)."""

from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.api import (
    Request,
    RequestStruct,
    Response,
    ResponseHeader_v0,
    ResponseHeader_v1,
)
from aiokafka.protocol.types import CompactArray, CompactString, Schema, TaggedFields

TEXT: Final = CompactString("utf-8")


def fields(*named: tuple[str, Any]) -> Schema:
    """Return a message's fields; no tagged ones are sent."""
    return Schema(*named, ("tags", TaggedFields))


def rows(*named: tuple[str, Any]) -> CompactArray:
    """Return an array of objects with these fields."""
    return CompactArray(*named, ("tags", TaggedFields))


def request(
    api: int,
    version: int,
    asked: Schema,
    answered: Schema,
    header: type[ResponseHeader_v0 | ResponseHeader_v1] = ResponseHeader_v1,
) -> type[Request]:
    """Return the class of a request, which takes the values of its fields."""

    class TaggedAnswer(Response):  # type: ignore[misc]  # aiokafka is not typed
        API_KEY = api
        API_VERSION = version
        SCHEMA = answered

    class TaggedStruct(RequestStruct):  # type: ignore[misc]  # as above
        FLEXIBLE_VERSION = True
        API_KEY = api
        API_VERSION = version
        RESPONSE_TYPE = TaggedAnswer
        SCHEMA = asked

        def parse_response_header(self, read_buffer: BytesIO | bytes) -> Any:  # noqa: ANN401 -- aiokafka's
            return header.decode(read_buffer)

    class TaggedRequest(Request[TaggedStruct]):  # type: ignore[misc]  # as above
        API_KEY = api

        def __init__(self, *values: Any) -> None:  # noqa: ANN401 -- as the schema says
            self._values = values

        def build(self, request_struct_class: type[TaggedStruct]) -> TaggedStruct:
            return request_struct_class(*self._values, {})

    return TaggedRequest
