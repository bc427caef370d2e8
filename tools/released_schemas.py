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
from typing import Any, Final, Literal, TypeAlias

from contextgauge import __version__, json_codec
from streams.cli.schemas import documents

RELEASED: Final = Path(__file__).with_name("released_schemas.json")

_TEXTS: Final = frozenset({"description", "title", "summary", "example", "info", "tags", "$id"})

Document: TypeAlias = dict[str, Any]
Side: TypeAlias = Literal["read", "kept", "sent"]
"""`read`: programs read what is written now. `kept`: also, what was written before is read now.
`sent`: programs send it, and what they sent before is taken now."""

_VERSION: Final = re.compile(r"\.v(\d+)\.json$")
_JSON_NAMES: Final = {str: "string", int: "integer", bool: "boolean", float: "number"}


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
            lines += _Comparison(old, new, side).of(name, old, new)
    return lines


def _later_version(name: str) -> str:
    return _VERSION.sub(lambda found: f".v{int(found[1]) + 1}.json", name)


def _of_topics(name: str, old: Document, new: Document) -> Iterator[str]:
    for topic, channel in old["channels"].items():
        messages = new["channels"].get(topic, {}).get("messages", {})
        for message in channel["messages"].keys() - messages.keys():
            yield f"{name}: {topic} has no {message} any more"
    for schema, shape in old["components"]["schemas"].items():
        there = new["components"]["schemas"].get(schema)
        if there is None:
            yield f"{name}: {schema} is gone"
        else:
            yield from _Comparison(old, new, "kept").of(f"{name}: {schema}", shape, there)


def _of_api(name: str, old: Document, new: Document) -> Iterator[str]:
    for path, operations in old["paths"].items():
        for method, operation in operations.items():
            place = f"{name}: {method.upper()} {path}"
            there = new["paths"].get(path, {}).get(method)
            if there is None:
                yield f"{place}: is gone"
                continue
            yield from _of_operation(place, old, new, operation, there)


def _of_operation(
    place: str, old: Document, new: Document, operation: Document, there: Document
) -> Iterator[str]:
    sent, read = _Comparison(old, new, "sent"), _Comparison(old, new, "read")
    taken = {each["name"]: each for each in there["parameters"]}
    known = {each["name"]: each for each in operation["parameters"]}
    for each in sorted(known.keys() - taken.keys()):
        yield f"{place}: does not take {each} any more"
    for each, parameter in taken.items():
        if parameter["required"] and not known.get(each, {"required": False})["required"]:
            yield f"{place}: needs {each}, which programs do not send"
        if each in known:
            schemas = known[each]["schema"], parameter["schema"]
            yield from sent.of(f"{place}: {each}", *schemas)
    bodies = operation.get("requestBody", {}), there.get("requestBody", {})
    yield from _of_contents(f"{place}: body", sent, *bodies)
    for status, response in operation["responses"].items():
        answers = there["responses"].get(status, {})
        yield from _of_contents(f"{place}: {status}", read, response, answers)


def _of_contents(
    place: str, comparison: "_Comparison", old: Document, new: Document
) -> Iterator[str]:
    there = _contents(new)
    for media_type, schema in _contents(old).items():
        if media_type in there:
            yield from comparison.of(place, schema, there[media_type])
        else:
            yield f"{place}: not in {media_type} any more"


def _contents(part: Document) -> dict[str, Document]:
    return {name: each["schema"] for name, each in part.get("content", {}).items()}


class _Comparison:
    """Compares a schema of the released document with that of the present one."""

    def __init__(self, old: Document, new: Document, side: Side) -> None:
        self._old, self._new, self._side = old, new, side
        self._seen: set[tuple[str, str]] = set()

    def of(self, place: str, old: Document, new: Document) -> Iterator[str]:
        """Yield what is broken, below the same place of both."""
        references = (old.get("$ref", ""), new.get("$ref", ""))
        if all(references):
            if references in self._seen:
                return
            self._seen.add(references)
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        yield from self._of_types(place, _types(self._old, old), _types(self._new, new))
        had, has = _words(self._old, old), _words(self._new, new)
        gone = had - has if has else set()
        if gone and (self._side != "read" or len(had) == 1):
            yield f"{place}: may not be {', '.join(sorted(map(str, gone)))} any more"
        yield from self._of_fields(place, old, new)
        for part in ("items", "additionalProperties"):
            if isinstance(old.get(part), dict) and isinstance(new.get(part), dict):
                yield from self.of(f"{place}[]", old[part], new[part])
        yield from self._of_alternatives(place, old, new)

    def _of_types(self, place: str, old: set[str], new: set[str]) -> Iterator[str]:
        widened, narrowed = (new - old if old else set()), (old - new if new else set())
        if widened and self._side != "sent":
            yield f"{place}: may now be {', '.join(sorted(widened))}, which no reader expects"
        if narrowed and self._side != "read":
            yield f"{place}: may not be {', '.join(sorted(narrowed))} any more"

    def _of_fields(self, place: str, old: Document, new: Document) -> Iterator[str]:
        had, has = old.get("properties", {}), new.get("properties", {})
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        for name in had:
            if name not in has:
                yield f"{place}.{name}: is gone"
            else:
                yield from self.of(f"{place}.{name}", had[name], has[name])
        if self._side != "sent":
            for name in sorted((needed - needs) & has.keys()):
                yield f"{place}.{name}: was always there, and may be missing now"
        if self._side != "read":
            for name in sorted(needs - needed):
                yield f"{place}.{name}: is needed now, which was not written before"

    def _of_alternatives(self, place: str, old: Document, new: Document) -> Iterator[str]:
        """Compare the members of unions that are objects or lists, each with that of its name."""
        members = {_name(each): each for each in _alternatives(new)}
        for each in _alternatives(old):
            there = members.get(_name(each))
            if there is not None and not _is_scalar(each):
                yield from self.of(place, each, there)
            elif "$ref" in each:
                yield f"{place}: {_name(each)} is not among its forms any more"


def _alternatives(schema: Document) -> list[Document]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _is_scalar(schema: Document) -> bool:
    return "$ref" not in schema and schema.get("type") not in {"object", "array"}


def _words(document: Document, schema: Document) -> set[Any]:
    """Return the values that a schema lists; empty where it lists none, or allows others too."""
    schema = _resolved(document, schema)
    members = [each for each in _alternatives(schema) if each.get("type") != "null"]
    if members:
        words = [_words(document, each) for each in members]
        return set().union(*words) if all(words) else set()
    return {schema["const"]} if "const" in schema else set(schema.get("enum", ()))


def _name(schema: Document) -> str:
    return str(schema.get("$ref") or schema.get("type", ""))


def _resolved(document: Document, schema: Document) -> Document:
    reference = str(schema.get("$ref", ""))
    if not reference.startswith("#/"):
        return schema  # to a file that is compared by itself, or to none
    target: Any = document
    for part in reference[2:].split("/"):
        target = target[part]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _types(document: Document, schema: Document) -> set[str]:
    """Return the types of JSON that a schema allows, with their formats; empty for any."""
    schema = _resolved(document, schema)
    if members := _alternatives(schema):
        types = [_types(document, each) for each in members]
        return set().union(*types) if all(types) else set()
    if "const" in schema:
        return {_JSON_NAMES[type(schema["const"])]}
    if "type" not in schema:
        return set()
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    form = f" ({schema['format']})" if "format" in schema else ""
    return {name + form for name in names}


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
