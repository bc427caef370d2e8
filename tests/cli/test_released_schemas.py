"""What the released version promised programs is kept; and what is not is named with its place."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from contextgauge import json_codec
from tools.released_schemas import RELEASED, broken, promises

READING, SESSION = "context_reading.v1.json", "view.session.v3.json"
INGEST, TOPICS = "openapi.ingest.json", "asyncapi.json"
PRESENT = promises()


def test_the_promises_of_the_released_version_are_kept() -> None:
    released = json_codec.loads(RELEASED.read_bytes())
    remedy = "docs/COMPATIBILITY.md; at a release: python -m tools.released_schemas --take"
    assert broken(released["documents"], PRESENT) == [], remedy


def _data(documents: Any) -> Any:
    return documents[READING]["properties"]["data"]


def _remove(documents: Any) -> None:
    del _data(documents)["properties"]["window"]


def _retype(documents: Any) -> None:
    _data(documents)["properties"]["used_tokens"] = {"type": "string"}


def _make_nullable(documents: Any) -> None:
    documents[SESSION]["properties"]["session_id"] = {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }


def _make_optional(documents: Any) -> None:
    _data(documents)["required"].remove("used_tokens")


def _require(documents: Any) -> None:
    _data(documents)["properties"]["new"] = {"type": "string"}
    _data(documents)["required"].append("new")


def _require_of_requests(documents: Any) -> None:
    documents[TOPICS]["components"]["schemas"]["CompactRequested"]["required"].append("urgent")


def _remove_type(documents: Any) -> None:
    del documents[READING]


def _remove_word(documents: Any) -> None:
    request = documents[TOPICS]["components"]["schemas"]["CompactRequested"]
    request["properties"]["trigger"]["enum"].remove("manual")


def _require_parameter(documents: Any) -> None:
    documents[INGEST]["paths"]["/v1/messages"]["post"]["parameters"][0]["required"] = True


def _remove_answer(documents: Any) -> None:
    del documents[INGEST]["components"]["schemas"]["TakenAnswer"]["properties"]["ignored"]


def _remove_route(documents: Any) -> None:
    del documents[INGEST]["paths"]["/v1/logs"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (_remove, f"{READING}.data.window: is gone"),
        (_retype, f"{READING}.data.used_tokens: may now be string"),
        (_make_nullable, f"{SESSION}.session_id: may now be null"),
        (_make_optional, f"{READING}.data.used_tokens: was always there"),
        (_require, f"{READING}.data.new: is needed now"),
        (_require_of_requests, f"{TOPICS}: CompactRequested.urgent: is needed now"),
        (_remove_word, f"{TOPICS}: CompactRequested.trigger: may not be manual"),
        (_remove_type, f"{READING}: is gone"),
        (_require_parameter, f"{INGEST}: POST /v1/messages: needs session_id"),
        (_remove_answer, f"{INGEST}: POST /v1/messages: 202.ignored: is gone"),
        (_remove_route, f"{INGEST}: POST /v1/logs: is gone"),
    ],
)
def test_a_broken_promise_is_named_with_its_place(
    change: Callable[[Any], None], place: str
) -> None:
    changed = copy.deepcopy(PRESENT)
    change(changed)
    lines = broken(PRESENT, changed)
    assert lines
    assert lines[0].startswith(place)


def _add_optional(documents: Any) -> None:
    _data(documents)["properties"]["new"] = {"type": "string"}


def _add_to_view(documents: Any) -> None:
    documents[SESSION]["properties"]["new"] = {"type": "string"}
    documents[SESSION]["required"].append("new")


def _add_word(documents: Any) -> None:
    runtime = documents["session_info.v1.json"]["properties"]["data"]["properties"]["runtime"]
    runtime["anyOf"][0]["enum"].append("muse")


def _replace_view(documents: Any) -> None:
    documents["view.session.v4.json"] = documents.pop(SESSION)


@pytest.mark.parametrize("change", [_add_optional, _add_to_view, _add_word, _replace_view])
def test_what_only_adds_breaks_nothing(change: Callable[[Any], None]) -> None:
    changed = copy.deepcopy(PRESENT)
    change(changed)
    assert changed != PRESENT
    assert broken(PRESENT, changed) == []
