"""JSON documents as tokens, whose values, members and keys can be replaced without parsing again.

A mutation puts other bytes into the first token of a part and empties the others, so that the
places of all parts stay as they are, and the document is the tokens joined.
"""

import re
from typing import Final, NamedTuple

Span = tuple[int, int]
"""The tokens of a part: the first, and the one after the last."""

TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


class Template(NamedTuple):
    """A document. `fields` are the keys with their values; `ids` the values that name a message."""

    tokens: list[bytes]
    values: list[Span]
    members: list[Span]
    keys: list[int]
    fields: dict[bytes, list[Span]]
    ids: list[int]

    def part(self, span: Span) -> bytes:
        """Return the bytes of a part."""
        return b"".join(self.tokens[span[0] : span[1]])


def template_of(document: bytes) -> Template | None:
    """Return a document as a template; None for what is no object, or is not closed."""
    tokens = TOKEN.findall(document)
    if tokens[:1] != [b"{"]:
        return None
    template = Template(tokens, [], [], [], {}, [])
    begins: list[tuple[int, int | None]] = []
    key: int | None = None
    for place, token in enumerate(tokens):
        if token in _OPENING:
            begins.append((place, key))
            key = None
        elif token in _CLOSING:
            if not begins:
                break
            begin, own_key = begins.pop()
            _add(template, own_key, begin, place + 1)
            key = None
        elif token not in _BETWEEN:
            if tokens[place + 1 : place + 2] == [b":"]:
                key = place
                template.keys.append(place)
            else:
                _add(template, key, place, place + 1)
                key = None
    return template if template.values else None


def _add(template: Template, key: int | None, begin: int, end: int) -> None:
    """Add a value, and the member that it is of."""
    template.values.append((begin, end))
    if key is not None:
        name = template.tokens[key]
        template.members.append((key, end))
        template.fields.setdefault(name, []).append((begin, end))
        if name == b'"uuid"' and end == begin + 1:
            template.ids.append(begin)


_OPENING, _CLOSING, _BETWEEN = (b"{", b"["), (b"}", b"]"), (b",", b":")
