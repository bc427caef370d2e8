"""What the released version promised programs is kept; and what is not is named with its place."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from contextgauge import json_codec
from tools.compared_schemas import unknown_keywords
from tools.released_schemas import RELEASED, broken, promises

READING, SESSION = "context_reading.v1.json", "view.session.v3.json"
INGEST, SERVE, TOPICS = "openapi.ingest.json", "openapi.serve.json", "asyncapi.json"
SESSIONS, COMPACT = "/v1/sessions", "/v1/sessions/{session_id}/compact"
CHAT = "/api/agents/{agent_id}/events"
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


def _operation(documents: Any, path: str, method: str = "get", *, of: str = SERVE) -> Any:
    return documents[of]["paths"][path][method]


def _parameter(documents: Any, path: str, name: str) -> Any:
    parameters = _operation(documents, path)["parameters"]
    return next(each for each in parameters if each["name"] == name)


def _set(names: str, **values: Any) -> Callable[[Any], None]:
    """Return a change of the schema at these names; None takes a keyword away."""

    def change(documents: Any) -> None:
        part = documents
        for name in names.split(" "):
            part = part[int(name) if name.isdigit() else name]
        for key, value in values.items():
            if value is None:
                del part[key]
            else:
                part[key] = value

    return change


def _need_a_token(documents: Any) -> None:
    _operation(documents, SESSIONS)["security"] = [{"bearer": []}]


def _replace_scheme(documents: Any) -> None:
    documents[SERVE]["components"]["securitySchemes"]["bearer"]["scheme"] = "basic"


def _move_parameter(documents: Any) -> None:
    _parameter(documents, SESSIONS, "limit")["in"] = "header"


def _need_body(documents: Any) -> None:
    _operation(documents, COMPACT, "post")["requestBody"]["required"] = True


def _remove_status(documents: Any) -> None:
    del _operation(documents, "/v1/sessions/{session_id}/control")["responses"]["304"]


def _less(name: str, **values: Any) -> Callable[[Any], None]:
    return lambda documents: _parameter(documents, SESSIONS, name)["schema"].update(values)


def _shrink_number_in_a_union(documents: Any) -> None:
    _parameter(documents, SESSIONS, "min_percent")["schema"]["anyOf"][0]["maximum"] = 10


def _tell_apart_by_another(documents: Any) -> None:
    answer = _operation(documents, CHAT)["responses"]["200"]["content"]["application/json"]
    answer["schema"]["items"]["discriminator"]["propertyName"] = "kind"


def _rename_form(documents: Any) -> None:
    answer = _operation(documents, CHAT)["responses"]["200"]["content"]["application/json"]
    mapping = answer["schema"]["items"]["discriminator"]["mapping"]
    mapping["warning"] = mapping.pop("context_warning")


def _drop_form(documents: Any) -> None:
    documents["record.v1.json"]["oneOf"].pop()


BODY = f"{SERVE} components schemas CompactBody"
DATA = f"{READING} properties data properties"
HEADERS = f"{TOPICS} channels agent.messages messages message headers properties"
ANSWER = f"{INGEST} components schemas TakenAnswer"


@pytest.mark.extended
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
        (_need_a_token, f"{SERVE}: GET {SESSIONS}: needs bearer, and nothing was enough"),
        (_replace_scheme, f"{SERVE}: bearer is another scheme"),
        (_move_parameter, f"{SERVE}: GET {SESSIONS}: does not take limit of the query"),
        (_need_body, f"{SERVE}: POST {COMPACT}: needs a body"),
        (_remove_status, f"{SERVE}: GET /v1/sessions/{{session_id}}/control: 304: is gone"),
        (_less("limit", maximum=10), f"{SERVE}: GET {SESSIONS}: limit: has another maximum, 10"),
        (_less("limit", minimum=2), f"{SERVE}: GET {SESSIONS}: limit: has another minimum, 2"),
        (_less("limit", default=9), f"{SERVE}: GET {SESSIONS}: limit: is 9 where it is not sent"),
        (_less("sort", pattern="^a"), f"{SERVE}: GET {SESSIONS}: sort: has another pattern"),
        (_less("sort", format="date"), f"{SERVE}: GET {SESSIONS}: sort: may not be string"),
        (_shrink_number_in_a_union, f"{SERVE}: GET {SESSIONS}: min_percent: has another max"),
        (_tell_apart_by_another, f"{SERVE}: GET {CHAT}: 200[]: is not distinguished by type"),
        (_rename_form, f"{SERVE}: GET {CHAT}: 200[]: context_warning does not name"),
        (_drop_form, "record.v1.json: user_turn.v1.json is not among its forms"),
        (
            _set(f"{DATA} response_id", anyOf=[{"type": "string", "maxLength": 5}]),
            f"{READING}.data.response_id: may not be null",
        ),
        (_set(f"{DATA} used_tokens", minimum=0), f"{READING}.data.used_tokens: has another min"),
        (
            _set(f"{READING} properties type", const=None, type="string"),
            f"{READING}.type: was always",
        ),
        (_set(f"{READING} properties type", const="size"), f"{READING}.type: may not be context"),
        (_set(f"{DATA} used_tokens", type=None), f"{READING}.data.used_tokens: may now be any"),
        (_set(f"{DATA} used_tokens", enum=[1]), f"{READING}.data.used_tokens: may only be 1 now"),
        (_set(f"{READING} properties source", pattern=None), f"{READING}.source: has another pat"),
        (
            _set(f"{READING} properties data", additionalProperties=False),
            f"{READING}.data: takes no other fields",
        ),
        (_set(f"{ANSWER} properties accepted", minimum=None), f"{INGEST}: POST /v1/messages: 202"),
        (_set(f"{HEADERS} task_id", type="integer"), f"{TOPICS}: agent.messages: message: headers"),
        (
            _set(f"{TOPICS} channels agent.messages bindings kafka", partitions=9),
            f"{TOPICS}: agent.messages: has another address, or other partitions",
        ),
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


def _need_no_token(documents: Any) -> None:
    _operation(documents, SESSIONS)["security"] = []


@pytest.mark.extended
@pytest.mark.parametrize(
    "change",
    [
        _add_optional,
        _add_to_view,
        _add_word,
        _replace_view,
        _need_no_token,
        _less("limit", maximum=9_999),
        _set(BODY, additionalProperties=None),
        _set(f"{ANSWER} properties accepted", minimum=1),
        _set(f"{ANSWER} properties accepted", type="integer", maximum=9),
        _set(f"{SERVE} paths {SESSIONS} get parameters 8 schema", type="number"),
    ],
)
def test_what_only_adds_breaks_nothing(change: Callable[[Any], None]) -> None:
    changed = copy.deepcopy(PRESENT)
    change(changed)
    assert changed != PRESENT
    assert broken(PRESENT, changed) == []


def test_no_keyword_of_the_documents_goes_uncompared() -> None:
    unknown = set()
    for name, document in PRESENT.items():
        shapes = [document] if "components" not in document else _schemas(document)
        unknown |= {(name, each) for shape in shapes for each in unknown_keywords(shape)}
    assert unknown == set()
    assert list(unknown_keywords({"items": {"not": {}}})) == ["not"]


def _schemas(part: Any) -> list[Any]:
    """Return the schemas in a document of an API or of topics."""
    if isinstance(part, list):
        return [schema for each in part for schema in _schemas(each)]
    if not isinstance(part, dict):
        return []
    schemas = [part[name] for name in ("schema", "headers", "payload") if name in part]
    named = part.get("schemas", {}).values()
    rest = [each for name, each in part.items() if name not in {"schema", "schemas", "headers"}]
    return [*schemas, *named, *_schemas(rest)]
