"""Whether a JSON Schema keeps what another one promised, by who reads and who writes.

What is read may be narrower than before, what is taken may be wider: a reader relies on what was
never there, and a program sends all that was allowed. Values may be added to words that are read,
as documents say that they may, and fields to objects that are not closed.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

Document: TypeAlias = dict[str, Any]
Side: TypeAlias = Literal["read", "kept", "sent"]
"""`read`: programs read what is written now. `kept`: also, what was written before is read now.
`sent`: programs send it, and what they sent before is taken now."""

_LOWEST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_SAME: Final = ("pattern", "contentMediaType", "multipleOf", "uniqueItems")
"""Keywords that only another of the same value keeps."""

COMPARED: Final = frozenset(
    {
        *_LOWEST, *_MOST, *_SAME, "type", "format", "const", "enum", "anyOf", "oneOf", "$ref",
        "properties", "required", "items", "additionalProperties", "discriminator", "default",
    }
)  # fmt: skip
SILENT: Final = frozenset({"$schema", "$defs", "examples", "deprecated", "readOnly", "writeOnly"})
"""Keywords that allow and forbid nothing."""

_JSON_NAMES: Final = {str: "string", int: "integer", bool: "boolean", float: "number"}


def unknown_keywords(schema: Document) -> Iterator[str]:
    """Yield the keywords of a schema, and of those in it, that no comparison knows."""
    yield from schema.keys() - COMPARED - SILENT
    for name in ("properties", "$defs"):
        for each in schema.get(name, {}).values():
            yield from unknown_keywords(each)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from unknown_keywords(schema[name])
    for each in _alternatives(schema):
        yield from unknown_keywords(each)


class Comparison:
    """Compares a schema of the released document with that of the present one."""

    def __init__(self, old: Document, new: Document, side: Side) -> None:
        self._old, self._new, self._side = old, new, side
        self._is_taken, self._is_read = side != "read", side != "sent"
        self._seen: set[tuple[str, str]] = set()

    def of(self, place: str, old: Document, new: Document) -> Iterator[str]:
        """Yield what is broken, below the same place of both."""
        references = (old.get("$ref", ""), new.get("$ref", ""))
        if all(references):
            if references in self._seen:
                return
            self._seen.add(references)
        old, new = resolved(self._old, old), resolved(self._new, new)
        yield from self._of_types(place, _types(self._old, old), _types(self._new, new))
        yield from self._of_words(place, old, new)
        yield from self._of_fields(place, old, new)
        yield from self._of_others(place, old, new)
        yield from self._of_limits(place, old, new)
        yield from self._of_alternatives(place, old, new)

    def _of_types(self, place: str, old: set[str], new: set[str]) -> Iterator[str]:
        widened = _beyond(new, old) if old else set()
        narrowed = _beyond(old, new) if new else set()
        if self._is_read and old and not new:
            yield f"{place}: may now be anything, which no reader expects"
        if widened and self._is_read:
            yield f"{place}: may now be {', '.join(sorted(widened))}, which no reader expects"
        if narrowed and self._is_taken:
            yield f"{place}: may not be {', '.join(sorted(narrowed))} any more"
        if self._is_taken and new and not old:
            yield f"{place}: may only be {', '.join(sorted(new))} now"

    def _of_words(self, place: str, old: Document, new: Document) -> Iterator[str]:
        had, has = _words(self._old, old), _words(self._new, new)
        gone = had - has if has else set()
        if gone and self._is_taken:
            yield f"{place}: may not be {_listed(gone)} any more"
        elif self._is_read and len(had) == 1 and has != had:
            yield f"{place}: was always {_listed(had)}"
        elif self._is_taken and has and not had:
            yield f"{place}: may only be {_listed(has)} now"

    def _of_fields(self, place: str, old: Document, new: Document) -> Iterator[str]:
        had, has = old.get("properties", {}), new.get("properties", {})
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        for name in had:
            if name not in has:
                yield f"{place}.{name}: is gone"
            else:
                yield from self.of(f"{place}.{name}", had[name], has[name])
        if self._is_read:
            for name in sorted((needed - needs) & has.keys()):
                yield f"{place}.{name}: was always there, and may be missing now"
        if self._is_read and old.get("additionalProperties") is False:
            for name in sorted(has.keys() - had.keys()):
                yield f"{place}.{name}: is new in what was closed to other fields"
        if self._is_taken:
            for name in sorted(needs - needed):
                yield f"{place}.{name}: is needed now, which was not written before"

    def _of_others(self, place: str, old: Document, new: Document) -> Iterator[str]:
        """Compare items, and fields that are not named: of a schema, any, or none."""
        for part, name in (("items", "items"), ("additionalProperties", "other fields")):
            had, has = (_open(each.get(part, True)) for each in (old, new))
            if isinstance(had, dict) and isinstance(has, dict):
                yield from self.of(f"{place}[]", had, has)
            elif self._is_taken and (has is False or isinstance(has, dict)) and had is not False:
                only = "no" if has is False else "not all"
                if had != has:
                    yield f"{place}: takes {only} {name} any more"
            elif self._is_read and has is not False and had is not True and had != has:
                yield f"{place}: may have any {name} now, which no reader expects"

    def _of_limits(self, place: str, old: Document, new: Document) -> Iterator[str]:
        for name in (*_LOWEST, *_MOST):
            had, has = old.get(name), new.get(name)
            if had == has:
                continue
            sign = 1 if name in _LOWEST else -1
            is_narrower = has is not None and (had is None or sign * has > sign * had)
            if self._is_taken and is_narrower:
                yield f"{place}: has another {name}, {has}: less is taken than before"
            if self._is_read and not is_narrower:
                yield f"{place}: has another {name}, {has}: no reader expects what is beyond {had}"
        for name in _SAME:
            had, has = old.get(name), new.get(name)
            is_kept = had == has or (
                (has is None or not self._is_taken) and (had is None or not self._is_read)
            )
            if not is_kept:
                yield f"{place}: has another {name}, {has}"
        had, has = old.get("default"), new.get("default")
        if self._side == "sent" and had != has:
            yield f"{place}: is {has!r} where it is not sent, and was {had!r}"

    def _of_alternatives(self, place: str, old: Document, new: Document) -> Iterator[str]:
        """Compare the members of unions, each with that of its name."""
        yield from self._of_discriminator(place, old, new)
        if not _alternatives(old) and not _alternatives(new):
            return
        members = _by_name(new)
        for name, each in _by_name(old).items():
            there = members.get(name)
            if there is None:
                if "$ref" in each:
                    yield f"{place}: {name} is not among its forms any more"
            elif "$ref" in each or each.get("type") in {"object", "array"}:
                if _alternatives(old) and _alternatives(new):
                    yield from self.of(place, each, there)
            else:
                yield from self._of_limits(place, each, there)

    def _of_discriminator(self, place: str, old: Document, new: Document) -> Iterator[str]:
        had, has = old.get("discriminator"), new.get("discriminator")
        if had is None:
            return
        if has is None or has["propertyName"] != had["propertyName"]:
            yield f"{place}: is not distinguished by {had['propertyName']} any more"
            return
        names = has.get("mapping", {})
        for value, schema in had.get("mapping", {}).items():
            if names.get(value) != schema:
                yield f"{place}: {value} does not name {schema} any more"


def resolved(document: Document, schema: Document) -> Document:
    """Return a schema with what its reference is to in place of that."""
    reference = str(schema.get("$ref", ""))
    if not reference.startswith("#/"):
        return schema  # to a file that is compared by itself, or to none
    target: Any = document
    for part in reference[2:].split("/"):
        target = target[part.replace("~1", "/").replace("~0", "~")]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _alternatives(schema: Document) -> list[Document]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _by_name(schema: Document) -> dict[str, Document]:
    """Return the forms of a schema by their names; scalars of one type are compared as words."""
    forms = _alternatives(schema) or [schema]
    names = [_name(each) for each in forms]
    return {
        name: each
        for name, each in zip(names, forms, strict=True)
        if "$ref" in each or names.count(name) == 1
    }


def _name(schema: Document) -> str:
    return str(schema.get("$ref") or schema.get("type", ""))


def _open(part: object) -> object:
    return True if part == {} else part


def _beyond(some: set[str], others: set[str]) -> set[str]:
    """Return the types that others do not include; a whole number is a number."""
    return {
        each for each in some - others if not (each.startswith("integer") and "number" in others)
    }


def _listed(words: set[Any]) -> str:
    return ", ".join(sorted(map(str, words)))


def _words(document: Document, schema: Document) -> set[Any]:
    """Return the values that a schema lists; empty where it lists none, or allows others too."""
    schema = resolved(document, schema)
    members = [each for each in _alternatives(schema) if each.get("type") != "null"]
    if members:
        words = [_words(document, each) for each in members]
        return set().union(*words) if all(words) else set()
    return {schema["const"]} if "const" in schema else set(schema.get("enum", ()))


def _types(document: Document, schema: Document) -> set[str]:
    """Return the types of JSON that a schema allows, with their formats; empty for any."""
    schema = resolved(document, schema)
    if members := _alternatives(schema):
        types = [_types(document, each) for each in members]
        return set().union(*types) if all(types) else set()
    if "const" in schema:
        return {_JSON_NAMES[type(schema["const"])]}
    if "enum" in schema and "type" not in schema:
        return {_JSON_NAMES.get(type(each), "null") for each in schema["enum"]}
    if "type" not in schema:
        return set()
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    form = f" ({schema['format']})" if "format" in schema else ""
    return {name + form for name in names}
