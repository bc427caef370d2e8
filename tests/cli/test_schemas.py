"""The kept JSON Schemas are those of the code, and what is written fits them."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from referencing import Registry, Resource

from schemas.records import DATA_CLASS_BY_KIND, ContextReading, Record, SessionInfo
from streams import codec
from streams.cli.schemas import documents, schemas

KEPT = Path(__file__).parents[2] / "schemas" / "json"

READING = ContextReading(
    session_id="s",
    chain="main",
    model="m",
    task_id=None,
    subagent_type=None,
    response_id="r",
    used_tokens=58_432,
    input_tokens=432,
    cache_creation_tokens=None,
    cache_read_tokens=58_000,
    previous_output_tokens=None,
    window=128_000,
    window_source="catalog",
    used_percent=45.65,
    messages=3,
    messages_total=3,
)
INFO = SessionInfo(
    session_id="s",
    chain="main",
    model=None,
    task_id=None,
    subagent_type=None,
    runtime="codex",
    runtime_version=None,
    cwd=None,
    forked_from=None,
)


def _validator(name: str) -> Draft202012Validator:
    kept = {path.name: json.loads(path.read_text()) for path in KEPT.glob("*.v*.json")}
    registry: Registry[Any] = Registry().with_resources(
        (file, Resource.from_contents(schema)) for file, schema in kept.items()
    )
    return Draft202012Validator(kept[name], registry=registry, format_checker=FormatChecker())


def _event(data: ContextReading | SessionInfo) -> dict[str, Any]:
    identifier = "5d0bcb26-1f1a-5f0e-9d33-0c5cf1b0b9a2"
    record = Record(identifier, "main", 1_770_000_000_000, 7, "1-abcdef12", data)
    event: dict[str, Any] = json.loads(codec.to_structured(record))
    return event


def test_the_stored_schemas_match_the_code() -> None:
    stored = {path.name: path.read_bytes() for path in KEPT.glob("*.json")}
    assert stored == documents(), "stale: run make schemas"


def test_every_kind_has_a_schema() -> None:
    assert {f"{kind}.v1.json" for kind in DATA_CLASS_BY_KIND} < set(documents())


@pytest.mark.parametrize("data", [READING, INFO])
@pytest.mark.parametrize("schema", ["own", "record.v1.json"])
def test_a_written_record_fits_its_schema(data: ContextReading | SessionInfo, schema: str) -> None:
    name = f"{data.kind}.v1.json" if schema == "own" else schema
    _validator(name).validate(_event(data))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("used_tokens", "many"), ("window_source", "guess"), ("model", 5), ("used_tokens", None)],
)
def test_a_wrong_field_does_not_fit(field: str, wrong: object) -> None:
    event = _event(READING)
    event["data"][field] = wrong
    with pytest.raises(ValidationError):
        _validator("context_reading.v1.json").validate(event)


def test_a_missing_field_does_not_fit() -> None:
    event = _event(READING)
    del event["data"]["window"]
    with pytest.raises(ValidationError, match="window"):
        _validator("context_reading.v1.json").validate(event)


@pytest.mark.extended
def test_write_replaces_stale_files(tmp_path: Path) -> None:
    (tmp_path / "gone.v1.json").write_text("{}")
    schemas(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == documents()
