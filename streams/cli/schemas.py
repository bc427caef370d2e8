"""`contextgauge schemas`: what programs may rely on, generated from the code.

JSON Schemas of records and views, the AsyncAPI document of the topics, and the OpenAPI documents of
the servers.
"""

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from schemas import views
from schemas.records import (
    DATA_CLASSES,
    SCHEMA_VERSION,
    SPEC_VERSION,
    RecordData,
    event_type,
)
from streams import codec
from streams.cli.api_documents import api_documents
from streams.cli.asyncapi import asyncapi_document
from streams.cli.screen.output import say
from streams.codec.cloudevents import OPTIONAL_FIELDS

SCHEMA_FOLDER = Path("schemas/json")
"""Under the current folder: in a checkout, where they are under version control."""

_OWN_NAME = re.compile(r"(?:view\.)?[a-z_]+\.v\d+\.json|openapi\.[a-z]+\.json|asyncapi\.json")

VIEW_CLASSES: dict[str, type] = {
    "session": views.SessionView,
    "compaction": views.Compaction,
    "live": views.LiveEntry,
    "aggregates": views.Aggregates,
    "partition": views.PartitionView,
}

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _AsWritten(GenerateJsonSchema):
    """Every field is required: writers write all of them, with null for unknown values."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,  # noqa: FBT001 -- as in the class that this extends
    ) -> bool:
        del field, total
        return True


def schemas(
    folder: Annotated[
        Path, typer.Option(help="Folder to write to.", file_okay=False)
    ] = SCHEMA_FOLDER,
) -> None:
    """Write the JSON Schemas of records and views, and AsyncAPI and OpenAPI documents.

    They are generated from the code. Those of former versions in the folder are deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = documents()
    for stale in folder.glob("*.json"):
        if stale.name not in texts and _OWN_NAME.fullmatch(stale.name):
            stale.unlink()
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    say(f"wrote {len(texts)} files to {folder}")


def documents() -> dict[str, bytes]:
    """Return the files' texts by name."""
    schemas: dict[str, dict[str, Any]] = {
        f"{cls.kind}.v{SCHEMA_VERSION}.json": _event(cls) for cls in DATA_CLASSES
    }
    schemas[f"record.v{SCHEMA_VERSION}.json"] = {
        "$schema": _DIALECT,
        "title": "Record",
        "description": "Any derived record, as one structured-mode CloudEvent.",
        "oneOf": [{"$ref": name} for name in schemas],
    }
    for name, cls in VIEW_CLASSES.items():
        schema = _schema(cls)
        if "version" in schema["properties"]:
            schema["properties"]["version"] = {"const": views.VIEW_VERSION}
        schemas[f"view.{name}.v{views.VIEW_VERSION}.json"] = {"$schema": _DIALECT, **schema}
    whole = {
        name: {"$schema": _DIALECT, "$id": name, **schema} for name, schema in schemas.items()
    } | {"asyncapi.json": asyncapi_document(), **api_documents()}
    return {name: codec.dumps_indented(document) for name, document in whole.items()}


def _schema(cls: type) -> dict[str, Any]:
    return TypeAdapter(cls).json_schema(mode="serialization", schema_generator=_AsWritten)


def _event(cls: type[RecordData]) -> dict[str, Any]:
    """Return the schema of a kind's CloudEvent, its data included."""
    data = _schema(cls)
    definitions = data.pop("$defs", {})
    optional = OPTIONAL_FIELDS[cls]
    data["required"] = [name for name in data["required"] if name not in optional]
    envelope: dict[str, dict[str, Any]] = {
        "specversion": {"const": SPEC_VERSION},
        "id": {"type": "string", "format": "uuid"},
        "source": {"type": "string", "pattern": "^/sessions/"},
        "type": {"const": event_type(cls.kind)},
        "subject": {"type": "string", "description": "The chain."},
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"const": "application/json"},
        "sequence": {"type": "string", "pattern": "^[1-9][0-9]*$"},
        "rules": {"type": "string"},
        "data": data,
    }
    return {
        "title": event_type(cls.kind),
        "type": "object",
        "properties": envelope,
        "required": [name for name in envelope if name != "time"],
    } | ({"$defs": definitions} if definitions else {})
