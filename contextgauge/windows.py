"""Context windows by model name: the catalog, and how a name is read.

The rows are data (`contextgauge/window_catalog.json`, built by `tools/build_catalog.py`);
this module only looks names up in them. A row matches every name that begins with its prefix and
ends or goes on at a name boundary, so `gpt-4` covers `gpt-4-0613` but neither `gpt-4.1` nor
`gpt-45`; of several rows the longest prefix wins.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

_SUFFIX: Final = re.compile(r"\[([0-9]{1,6})([km])\]\Z", re.IGNORECASE)
_SUFFIX_UNIT: Final = {"k": 1_000, "m": 1_000_000}
_VENDOR: Final = re.compile(
    r"(?:ft:|(?:[a-z]{2,6}(?:-[a-z]{2,4})?\.)?(?:anthropic|openai|google)\.)"
)
"""What clouds put before a name: Bedrock's `us.anthropic.`, OpenAI's `ft:` of tuned models."""
_VERSION: Final = re.compile(
    r"(?:[-@](?:[0-9]{1,2}|20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2})(?![^-@:_]))+"
)
"""Behind a row's name: minor versions and days. Other numbers may be an account's."""
_DIGIT_DOT: Final = re.compile(r"(?<=[0-9])\.(?=[0-9])")
_REMEMBERED_NAMES: Final = 256
"""Cached look-ups: every reading looks a name up, and a fleet uses some dozens."""
_BOUNDARIES: Final = frozenset("-@:_")


@dataclass(frozen=True, slots=True)
class Catalog:
    """Windows by the beginnings of names. `digest` changes when any name's window could."""

    digest: str
    _context_by_prefix: Mapping[str, int] = field(repr=False, compare=False)
    _longest: int = field(repr=False, compare=False)
    _remembered: dict[str, int | None] = field(repr=False, compare=False, default_factory=dict)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, object]]) -> "Catalog":
        """Build from parsed rows with a `prefix` and a `context`, the window in tokens.

        What else a row has is for people. Raises ValueError for a row that is malformed or a
        prefix that is there twice.
        """
        context_by_prefix: dict[str, int] = {}
        for row in rows:
            prefix, context = row.get("prefix"), row.get("context")
            if not isinstance(prefix, str) or plain_name(prefix) != prefix or not prefix:
                raise ValueError(
                    f"window catalog: prefix {prefix!r} is not a plain lower-case model name"
                )
            if not isinstance(context, int) or isinstance(context, bool) or context < 1:
                raise ValueError(
                    f"window catalog: context {context!r} of {prefix!r} is not a count"
                )
            if prefix in context_by_prefix:
                raise ValueError(f"the window catalog has two rows for {prefix!r}")
            context_by_prefix[prefix] = context
        digest = hashlib.sha256(repr(sorted(context_by_prefix.items())).encode()).hexdigest()[:8]
        longest = max(map(len, context_by_prefix), default=0)
        return cls(digest, context_by_prefix, longest)

    def window(self, model: str) -> int | None:
        """Return the model's window in tokens, None where no row matches.

        A `[1m]`-like suffix is the window itself.
        """
        try:
            return self._remembered[model]
        except KeyError:
            window = self._look_up(model)
        if len(self._remembered) >= _REMEMBERED_NAMES:
            self._remembered.clear()
        self._remembered[model] = window
        return window

    def public_name(self, model: str) -> str | None:
        """Return a model's name without what a deployment adds, None where no row matches.

        That is its row's name with the version that follows, of `claude-opus-4-6-our-team`
        `claude-opus-4-6`; with `…` where more follows.
        """
        name = plain_name(base_name(model)[0])
        row = self._row(name)
        if row is None:
            return None
        version = _VERSION.match(name, len(row))
        end = len(row) if version is None else version.end()
        return name[:end] + "…" * (end < len(name))

    def _look_up(self, model: str) -> int | None:
        base, window = base_name(model)
        if window is not None:
            return window
        row = self._row(plain_name(base))
        return None if row is None else self._context_by_prefix[row]

    def _row(self, name: str) -> str | None:
        """Return the longest prefix of a plain name that has a row."""
        for end in range(min(len(name), self._longest), 0, -1):
            if end < len(name) and name[end] not in _BOUNDARIES:
                continue
            if name[:end] in self._context_by_prefix:
                return name[:end]
        return None


def base_name(model: str) -> tuple[str, int | None]:
    """Split a `[1m]`-like suffix off: the name without it, and the tokens that it means.

    `claude-sonnet-4-5[1m]` gives `("claude-sonnet-4-5", 1_000_000)`; a name without a suffix
    comes back as it is, with None.
    """
    if not model.endswith("]"):
        return model, None
    suffix = _SUFFIX.search(model)
    if suffix is None or (count := int(suffix[1])) == 0:
        return model, None
    return model[: suffix.start()], count * _SUFFIX_UNIT[suffix[2].lower()]


def plain_name(model: str) -> str:
    """Return the name as the catalog spells it: lower case, no vendor, Claude's dots as dashes.

    `us.anthropic.claude-opus-4-1-20250805-v1:0` → `claude-opus-4-1-20250805-v1:0`,
    `publishers/google/models/gemini-2.5-pro` → `gemini-2.5-pro`,
    `anthropic/claude-opus-4.5` → `claude-opus-4-5`. Behind the name of a provider, which may allow
    less, as in `openrouter:anthropic/claude-opus-4.5`, it stays as it is.
    """
    before, _, name = model.strip().lower().rpartition("/")
    if ":" in before and not before.startswith("arn:"):
        return f"{before}/{name}"
    if (vendor := _VENDOR.match(name)) is not None:
        name = name[vendor.end() :]
    return _DIGIT_DOT.sub("-", name) if name.startswith("claude") else name
