"""What the released version promised programs, and whether the present one keeps it.

    python -m tools.released_schemas          # lists what is broken; the status is 1 if anything is
    python -m tools.released_schemas --take   # at a release: its promises are those to keep

They are in `tools/released_schemas.json`, which a clone without tags has too: the documents of
`contextgauge schemas` without texts. docs/COMPATIBILITY.md explains the rules.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from contextgauge import __version__, json_codec
from streams.cli.schemas import documents
from tools.compared_schemas import Comparison, Document, Side

RELEASED: Final = Path(__file__).with_name("released_schemas.json")

_TEXTS: Final = frozenset({"description", "title", "summary", "example", "info", "tags", "$id"})

_VERSION: Final = re.compile(r"\.v(\d+)\.json$")


def promises() -> dict[str, Document]:
    """Return the documents of this build, without texts, by their file names."""
    whole = {name: json_codec.loads(text) for name, text in documents().items()}
    return {name: _without_texts(document) for name, document in whole.items()}


def broken(released: Mapping[str, Document], present: Mapping[str, Document]) -> list[str]:
    """Return each promise that is not kept, as a sentence with its place."""
    lines = []
    for name, old in released.items():
        new = present.get(name)
        if new is None:
            if not (name.startswith("view.") and _later_version(name) in present):
                lines.append(f"{name}: is gone: what reads such data finds no schema for it")
        elif name.startswith("openapi."):
            lines += _of_api(name, old, new)
        elif name == "asyncapi.json":
            lines += _of_topics(name, old, new)
        else:
            side: Side = "read" if name.startswith("view.") else "kept"
            lines += Comparison(old, new, side).of(name, old, new)
    return lines


def _later_version(name: str) -> str:
    return _VERSION.sub(lambda found: f".v{int(found[1]) + 1}.json", name)


def _of_topics(name: str, old: Document, new: Document) -> Iterator[str]:
    for topic, channel in old["channels"].items():
        place = f"{name}: {topic}"
        there = new["channels"].get(topic)
        if there is None:
            yield f"{place}: is gone"
            continue
        if _of_kafka(channel) != _of_kafka(there):
            yield f"{place}: has another address, or other partitions"
        for message, shape in channel["messages"].items():
            if message not in there["messages"]:
                yield f"{place} has no {message} any more"
            else:
                other = there["messages"][message]
                yield from _of_message(f"{place}: {message}", old, new, shape, other)
    for each in old["operations"].keys() - new["operations"].keys():
        yield f"{name}: {each} is gone"
    for schema, shape in old["components"]["schemas"].items():
        there = new["components"]["schemas"].get(schema)
        if there is None:
            yield f"{name}: {schema} is gone"
        else:
            yield from Comparison(old, new, "kept").of(f"{name}: {schema}", shape, there)


def _of_kafka(channel: Document) -> tuple[Any, Any]:
    return channel.get("address"), channel.get("bindings", {}).get("kafka", {}).get("partitions")


def _of_message(
    place: str, old: Document, new: Document, shape: Document, there: Document
) -> Iterator[str]:
    comparison = Comparison(old, new, "kept")
    parts = {
        "payload": (shape.get("payload"), there.get("payload")),
        "headers": (shape.get("headers"), there.get("headers")),
        "key": (_key(shape), _key(there)),
    }
    for part, (had, has) in parts.items():
        # One that is named is compared by itself.
        if had is not None and (had != has or "$ref" not in had):
            yield from comparison.of(f"{place}: {part}", had, has or {})
    if shape.get("contentType") != there.get("contentType"):
        yield f"{place}: is {there.get('contentType')} now"


def _key(message: Document) -> Any:  # noqa: ANN401 -- a schema, or none
    return message.get("bindings", {}).get("kafka", {}).get("key")


def _of_api(name: str, old: Document, new: Document) -> Iterator[str]:
    for path, operations in old["paths"].items():
        for method, operation in operations.items():
            place = f"{name}: {method.upper()} {path}"
            there = new["paths"].get(path, {}).get(method)
            if there is None:
                yield f"{place}: is gone"
                continue
            yield from _of_operation(place, old, new, operation, there)
    schemes = new["components"].get("securitySchemes", {})
    for each, scheme in old["components"].get("securitySchemes", {}).items():
        if each in schemes and schemes[each] != scheme:
            yield f"{name}: {each} is another scheme of authorization"


def _of_operation(
    place: str, old: Document, new: Document, operation: Document, there: Document
) -> Iterator[str]:
    sent, read = Comparison(old, new, "sent"), Comparison(old, new, "read")
    yield from _of_security(place, _allowed(old, operation), _allowed(new, there))
    taken = {(each["in"], each["name"]): each for each in there["parameters"]}
    known = {(each["in"], each["name"]): each for each in operation["parameters"]}
    for where, each in sorted(known.keys() - taken.keys()):
        yield f"{place}: does not take {each} of the {where} any more"
    for key, parameter in taken.items():
        before = known.get(key, {})
        if parameter.get("required", False) and not before.get("required", False):
            yield f"{place}: needs {key[1]}, which programs do not send"
        if before:
            yield from sent.of(f"{place}: {key[1]}", before["schema"], parameter["schema"])
    had, has = operation.get("requestBody", {}), there.get("requestBody", {})
    if has.get("required", False) and not had.get("required", False):
        yield f"{place}: needs a body, which programs do not send"
    yield from _of_contents(f"{place}: body", sent, had, has)
    for status, response in operation["responses"].items():
        if status not in there["responses"]:
            yield f"{place}: {status}: is gone"
        else:
            answer = there["responses"][status]
            yield from _of_contents(f"{place}: {status}", read, response, answer)


def _allowed(document: Document, operation: Document) -> list[dict[str, list[str]]]:
    """Return the ways in which a call is allowed; each has all of its schemes."""
    ways: list[dict[str, list[str]]] = operation.get("security", document.get("security", []))
    return ways or [{}]


def _of_security(
    place: str, old: list[dict[str, list[str]]], new: list[dict[str, list[str]]]
) -> Iterator[str]:
    """Name the ways that are allowed no more: what a program has is in none of the present ones."""
    for way in old:
        is_enough = any(
            all(
                set(scopes) <= set(way.get(each, ())) and each in way
                for each, scopes in now.items()
            )
            for now in new
        )
        if not is_enough:
            has = ", ".join(sorted(way)) or "nothing"
            needs = " or ".join(" and ".join(sorted(now)) for now in new)
            yield f"{place}: needs {needs}, and {has} was enough"


def _of_contents(place: str, comparison: Comparison, old: Document, new: Document) -> Iterator[str]:
    there = _contents(new)
    for media_type, schema in _contents(old).items():
        if media_type in there:
            yield from comparison.of(place, schema, there[media_type])
        else:
            yield f"{place}: not in {media_type} any more"


def _contents(part: Document) -> dict[str, Document]:
    return {name: each["schema"] for name, each in part.get("content", {}).items()}


def _without_texts(value: Any, *, are_names: bool = False) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, list):
        return [_without_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_texts(
            each, are_names=not are_names and key in {"properties", "$defs", "schemas"}
        )
        for key, each in value.items()
        if are_names or key not in _TEXTS
    }


def main() -> int:
    """Compare, or take the present promises as those of a release; return the exit status."""
    present = promises()
    if sys.argv[1:] == ["--take"]:
        released = {"version": __version__, "documents": present}
        RELEASED.write_bytes(json_codec.dumps(released) + b"\n")
        return 0
    released = json_codec.loads(RELEASED.read_bytes())
    lines = broken(released["documents"], present)
    for line in lines:
        print(line)  # noqa: T201 -- a tool's output
    if lines:
        print(f"{len(lines)} promises of {released['version']} broken: see docs/COMPATIBILITY.md")  # noqa: T201
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
