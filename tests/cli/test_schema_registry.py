"""The JSON Schemas in a schema registry that speaks Confluent's API, where there is one.

    SCHEMA_REGISTRY_URL=http://127.0.0.1:8080/apis/ccompat/v7 make test TESTS=tests/cli

A registry is no part of the pipeline, and nothing here starts one. Apicurio Registry is on Maven:
unpack `io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all`, and start `quarkus-run.jar` with Java
21 or later.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from contextgauge import json_codec

URL = os.environ.get("SCHEMA_REGISTRY_URL", "")
SCHEMAS = Path(__file__).parents[2] / "schemas" / "json"
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
"""The newest draft that registries compare; they store ours, 2020-12, and refuse to compare it."""

pytestmark = pytest.mark.skipif(not URL, reason="SCHEMA_REGISTRY_URL names no schema registry")


def _schema(name: str) -> Any:
    return json_codec.loads((SCHEMAS / name).read_bytes()) | {"$schema": _DRAFT_7}


def _add_optional(data: Any) -> None:
    data["properties"]["new"] = {"type": ["string", "null"]}


def _remove(data: Any) -> None:
    del data["properties"]["window"]


def _retype(data: Any) -> None:
    data["properties"]["used_tokens"] = {"type": "string"}


@pytest.fixture
def registry(prefix: str) -> Callable[..., Any]:
    """Ask the registry about a subject of the test's own; return its answer."""

    def ask(method: str, path: str, name: str, **body: object) -> Any:
        url = f"{URL}{path.replace('NAME', prefix + name)}"
        answer = httpx.request(method, url, json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def test_each_schema_is_registered_as_it_is(registry: Callable[..., Any]) -> None:
    names = [path.name for path in SCHEMAS.glob("*.v[0-9].json")]
    assert len(names) > 15
    for name in names:
        text = (SCHEMAS / name).read_text(encoding="utf-8")
        registry("POST", "/subjects/NAME/versions", name, schemaType="JSON", schema=text)


@pytest.mark.parametrize(
    ("change", "is_kept"), [(_add_optional, True), (_remove, False), (_retype, False)]
)
def test_forward_compatibility_is_what_is_promised(
    registry: Callable[..., Any], change: Callable[[Any], None], is_kept: object
) -> None:
    """Readers of the released version read what a later one writes."""
    name = "context_reading.v1.json"
    released = _schema(name)
    changed = copy.deepcopy(released)
    change(changed["properties"]["data"])
    text = json_codec.dumps(released).decode()
    registry("POST", "/subjects/NAME/versions", name, schemaType="JSON", schema=text)
    registry("PUT", "/config/NAME", name, compatibility="FORWARD")
    text = json_codec.dumps(changed).decode()
    path = "/compatibility/subjects/NAME/versions/latest"
    answer = registry("POST", path, name, schemaType="JSON", schema=text)
    assert answer["is_compatible"] is is_kept
