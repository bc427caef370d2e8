"""Messages that no runtime would send, made from ones that it does: the same for the same seed.

Each mutation knows JSON, or deliberately does not: it replaces values by ones of another type or
of another message, names fields by other names that the product reads, repeats, nests, cuts and
damages. Names and words come from the normaliser's own source, so that new ones are tried too.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import ClassVar, Final, TypeVar

from tests.fuzz.seeds import WRITTEN, stories
from tests.fuzz.templates import Span, Template, template_of
from tests.fuzz.words import DAMAGE, LONG, TIMES, VALUES

_Choice = TypeVar("_Choice")

ROOT: Final = Path(__file__).parents[2]

_LARGEST_SEED_BYTES: Final = 4_000
_MOST_KEPT: Final = 2_000


@cache
def names() -> tuple[bytes, ...]:
    """Return the names and words that the normaliser's source has, as JSON strings."""
    folder = ROOT / "contextgauge" / "normalise"
    words = set[str]()
    for path in folder.glob("*.py"):
        words.update(re.findall(r'"([\w./\[\]<>-]{1,40})"', path.read_text(encoding="utf-8")))
    return tuple(b'"%s"' % each.encode() for each in sorted(words))


@cache
def templates() -> tuple[tuple[Template | bytes, ...], ...]:
    """Return the stories, each message as a template, or as bytes where it has no object."""
    return tuple(tuple(template_of(line) or line for line in story) for story in stories())


class Mutator:
    """Makes inputs by a random source; those with new behaviour are mutated further."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._random = chance.random
        self._made = 0
        self.corpus = [
            each for story in templates() for each in story if isinstance(each, Template)
        ]
        self._fields: dict[bytes, list[bytes]] = {}
        for template in self.corpus:
            for key, spans in template.fields.items():
                self._fields.setdefault(key, []).extend(template.part(span) for span in spans[:3])
        self._containers = _containers(self.corpus)
        self._keys = [*self._fields, *names()]
        self._words = [*names(), *VALUES, *TIMES]
        self._kept = 0

    def one_of(self, choices: Sequence[_Choice]) -> _Choice:
        """Return one of them."""
        return choices[int(self._random() * len(choices))]

    def keep(self, value: bytes) -> None:
        """Mutate this input further: it showed something new."""
        if len(value) > _LARGEST_SEED_BYTES or self._kept >= _MOST_KEPT:
            return
        template = template_of(value)
        if template is not None:
            self._kept += 1
            self.corpus.append(template)

    def story(self) -> tuple[Template | bytes, ...]:
        """Return one of the sequences that runtimes send."""
        every = templates()
        return self.one_of(every[:WRITTEN] if self._random() < 0.5 else every)

    def message(self, template: Template | bytes | None) -> bytes:
        """Return a message made of this one, or, for None, of any of the corpus."""
        random = self._random
        if template is None:
            template = self.corpus[int(random() * len(self.corpus))]
        elif isinstance(template, bytes):
            return self._damaged(template) if random() < 0.5 else template
        tokens = template.tokens.copy()
        self._made += 1
        if template.ids and random() < 0.9:
            for place in template.ids:
                tokens[place] = b'"u%d"' % self._made
        chance, changes = random(), self._CHANGES
        while chance < 0.75:
            changes[int(random() * len(changes))](self, template, tokens)
            chance = random() * 1.4
        value = b"".join(tokens)
        return self._damaged(value) if random() < 0.08 else value

    def large(self, size: int) -> bytes:
        """Return a message in which one part is repeated, or nested, to about so many bytes.

        Most often it is an object with many members, or an array, of any field.
        """
        template = self.one_of(self.corpus)
        tokens = template.tokens.copy()
        kind = int(self._random() * 10)
        if kind > 5:
            template, begin, end = self.one_of(self.one_of(self._containers))
            tokens = template.tokens.copy()
            many = _extended(template, begin, size)
        elif kind == 0 and template.members:
            begin, end = span = self.one_of(template.members)
            part = template.part(span)[len(tokens[begin]) :]
            count = max(1, size // (len(part) + 12))
            many = b",".join(b'"k%d"%s' % (number, part) for number in range(count))
        elif kind == 1:
            begin, end = span = self.one_of(template.values)
            part = template.part(span)
            many = b"[" + b",".join([part] * max(1, size // (len(part) + 1))) + b"]"
        elif kind == 2 and template.members:
            begin, end = span = self.one_of(template.members)
            part = template.part(span)
            many = b",".join([part] * max(1, size // (len(part) + 1)))
        elif kind == 3:
            begin, end = self.one_of(template.values)
            word = self.one_of(self._words)
            many = b"[" + b",".join([word or b"0"] * max(1, size // (len(word) + 1))) + b"]"
        elif kind == 4:
            begin, end = self.one_of(template.values)
            unit = self.one_of(
                (b"a", b"\\ud800", b"\\n", b"\xe2\x82\xac", b"<command-name>/", b"\\\\")
            )
            many = b'"' + unit * (size // len(unit)) + b'"'
        else:
            begin, end = span = self.one_of(template.values)
            part, (opening, closing) = template.part(span), self.one_of(_NESTINGS)
            depth = min(size // len(opening + closing), 100_000)
            many = opening * depth + part + closing * depth
        tokens[begin:end] = [many]
        return b"".join(tokens)

    def _by_pool(self, template: Template, tokens: list[bytes]) -> None:
        words = LONG if self._random() < 0.004 else self._words
        _put(tokens, self.one_of(template.values[:-1] or template.values), self.one_of(words))

    def _by_like(self, template: Template, tokens: list[bytes]) -> None:
        """Put a value of the same field of another message."""
        if template.fields:
            key = self.one_of(template.keys)
            spans = template.fields.get(template.tokens[key])
            if spans:
                _put(
                    tokens,
                    self.one_of(spans),
                    self.one_of(self._fields.get(template.tokens[key], VALUES)),
                )

    def _by_other(self, template: Template, tokens: list[bytes]) -> None:
        """Put any value of any message."""
        other = self.one_of(self.corpus)
        _put(tokens, self.one_of(template.values), other.part(self.one_of(other.values)))

    def _remove(self, template: Template, tokens: list[bytes]) -> None:
        if template.members:
            begin, end = self.one_of(template.members)
            comma = end < len(tokens) and tokens[end] == b","
            _put(tokens, (begin, end + comma), b"")

    def _repeat(self, template: Template, tokens: list[bytes]) -> None:
        span = self.one_of(
            template.members if template.members and self._random() < 0.5 else template.values
        )
        part = b"".join(tokens[span[0] : span[1]])
        _put(tokens, span, b",".join([part] * self.one_of((2, 2, 2, 3, 5, 21, 101))))

    def _insert(self, template: Template, tokens: list[bytes]) -> None:
        """Add a member that another message has, or that the product knows, to an object."""
        if template.keys:
            place = self.one_of(template.keys)
            key = self.one_of(self._keys)
            value = self.one_of(self._fields.get(key, self._words))
            tokens[place] = b"%s:%s,%s" % (key, value or b"0", tokens[place])

    def _rename(self, template: Template, tokens: list[bytes]) -> None:
        if template.keys:
            tokens[self.one_of(template.keys)] = self.one_of(self._keys)

    def _swap(self, template: Template, tokens: list[bytes]) -> None:
        first, second = self.one_of(template.values), self.one_of(template.values)
        if first[1] <= second[0] or second[1] <= first[0]:
            one, two = b"".join(tokens[slice(*first)]), b"".join(tokens[slice(*second)])
            _put(tokens, first, two)
            _put(tokens, second, one)

    def _number(self, template: Template, tokens: list[bytes]) -> None:
        digits = self.one_of((1, 3, 5, 6, 6, 9, 16, 17, 20, 25))
        number = b"%d" % int(self._random() * 10**digits)
        _put(tokens, self.one_of(template.values[:-1] or template.values), number)

    def _time(self, template: Template, tokens: list[bytes]) -> None:
        spans = template.fields.get(b'"timestamp"') or template.values
        if self._random() < 0.5:
            time = self.one_of(TIMES)
        else:
            second = int(self._random() * 10 ** self.one_of((1, 2, 4, 6)))
            day, second = divmod(second, 86_400)
            hour, second = divmod(second, 3_600)
            time = b'"2026-11-%02dT%02d:%02d:%02dZ"' % (
                1 + day % 30,
                hour,
                second // 60,
                second % 60,
            )
        _put(tokens, self.one_of(spans), time)

    def _nest(self, template: Template, tokens: list[bytes]) -> None:
        span = self.one_of(template.values)
        part, (opening, closing) = b"".join(tokens[slice(*span)]), self.one_of(_NESTINGS)
        depth = self.one_of((3, 250, 1_020, 1_026, 2_000) if self._random() < 0.02 else (1, 2))
        _put(tokens, span, opening * depth + part + closing * depth)

    def _escape(self, template: Template, tokens: list[bytes]) -> None:
        """Write the first character of a string as an escape: another spelling of the same."""
        place = self.one_of(self.one_of((template.keys or [0], [0])) or [0])
        token = tokens[place]
        if len(token) > 2 and token[:1] == b'"' and 32 < token[1] < 127 and token[1] not in b'\\"':
            tokens[place] = b'"\\u%04x' % token[1] + token[2:]

    # Functions, not methods of one mutator: what refers to itself is freed late, or never.
    _CHANGES: ClassVar = (
        *[_by_pool] * 2,
        *[_by_like] * 3,
        *[_insert] * 2,
        *[_number] * 2,
        _by_other,
        _remove,
        _repeat,
        _rename,
        _swap,
        _time,
        _nest,
        _escape,
    )
    """What is done to a message; what leaves it plausible more often."""

    def _damaged(self, value: bytes) -> bytes:
        chance = self._random()
        place = int(self._random() * (len(value) + 1))
        if chance < 0.25:
            return value[:place] + self.one_of(DAMAGE) + value[place:]
        if chance < 0.5:
            return value[:place] + self.one_of(DAMAGE) + value[place + 1 :]
        if chance < 0.6:
            return value[:place]
        if chance < 0.7:
            return value[:place] + value[int(self._random() * (len(value) + 1)) :]
        if chance < 0.75:
            return value + value
        if chance < 0.8:
            return b"\xef\xbb\xbf" + value
        if chance < 0.85:
            return b"[" + value + b"]"
        if chance < 0.9:
            return self.one_of((b" ", b"\n", b"\r\n", b"\t", b"\x0b", b"\x00")) + value + b"\r\n"
        if chance < 0.97:
            return value[:place] + self._chance.randbytes(int(self._random() * 9)) + value[place:]
        return self._chance.randbytes(int(self._random() * 64))


def _containers(corpus: Iterable[Template]) -> list[list[tuple[Template, int, int]]]:
    """Return the objects and arrays that are not empty, by the name of their field."""
    by_key: dict[bytes, list[tuple[Template, int, int]]] = {}
    for template in corpus:
        for key, spans in template.fields.items():
            by_key.setdefault(key, []).extend(
                (template, *span)
                for span in spans
                if span[1] - span[0] > 2 and template.tokens[span[0]] in {b"{", b"["}
            )
    return [each for each in by_key.values() if each]


def _extended(template: Template, begin: int, size: int) -> bytes:
    """Return an object with many members like its first, or an array likewise."""
    spans = template.members if template.tokens[begin] == b"{" else template.values
    last = max(to for start, to in spans if start == begin + 1)
    if template.tokens[begin] == b"{":
        part = template.part((begin + 2, last))
        count = max(1, size // (len(part) + 12))
        return b"{" + b",".join(b'"k%d"%s' % (number, part) for number in range(count)) + b"}"
    part = template.part((begin + 1, last))
    return b"[" + b",".join([part] * max(1, size // (len(part) + 1))) + b"]"


def _put(tokens: list[bytes], span: Span, new: bytes) -> None:
    begin, end = span
    tokens[begin:end] = [new, *[b""] * (end - begin - 1)]


_NESTINGS: Final = ((b"[", b"]"), (b'{"a":', b"}"), (b'{"content":', b"}"), (b'[{"text":', b"}]"))
