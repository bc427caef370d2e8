"""Build `contextgauge/window_catalog.json`, the bundled windows, from two public tables.

    python tools/build_catalog.py --litellm FILE --models-dev FOLDER

FILE is `model_prices_and_context_window.json` of BerriAI/litellm; FOLDER is a checkout of the
models.dev repository (one TOML file a model). Only figures are taken. The same input gives the
same file.

How a window is decided, best first:

1. the seed rows below: families missing from the tables, and the window of a real session where
   the tables list what a vendor's API could offer;
2. models.dev, which lists `context`, `input` and `output` separately;
3. litellm, which lists only an input limit, used as the context.

Where models.dev and litellm differ, models.dev wins: for `gpt-5`, the former lists a
context of 400 000, of which 272 000 may be input, the latter 272 000.

Claude up to 4.6 runs with 200 000 tokens unless a name ends in `[1m]` (which the core reads
itself), though both tables give 4.6 the million that its API allows; from 4.7 on the million is
the model's own window. A session that holds more than 200 000 shows that its window was the
larger one, and is then reported without a percentage rather than with a wrong one.

Dated and aliased names collapse: a row equal to that of its next shorter prefix is dropped.
"""

import argparse
import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from contextgauge.windows import Catalog, plain_name

TARGET = Path(__file__).parent.parent / "contextgauge" / "window_catalog.json"


class Limits(NamedTuple):
    """Tokens of one model; `source` names the table."""

    context: int
    input: int | None
    output: int | None
    source: str


def _seed(context: int, output: int | None = None) -> Limits:
    return Limits(context, None, output, "seed")


SEED_ROWS: dict[str, Limits] = {
    "gpt-3.5-turbo": _seed(16_385, 4_096),
    "gpt-4": _seed(8_192, 8_192),
    "gpt-4-32k": _seed(32_768, 8_192),
    "gpt-4-0125": _seed(128_000, 4_096),
    "gpt-4-1106": _seed(128_000, 4_096),
    "gpt-4-vision": _seed(128_000, 4_096),
    "gpt-4-turbo": _seed(128_000, 4_096),
    "gpt-4o": _seed(128_000, 16_384),
    "gpt-4.5": _seed(128_000, 16_384),
    "chatgpt-4o": _seed(128_000, 16_384),
    "o1-mini": _seed(128_000, 65_536),
    "o1-preview": _seed(128_000, 32_768),
    "codex-mini": _seed(200_000, 100_000),
    "claude-2": _seed(100_000, 4_096),
    "claude-2-1": _seed(200_000, 4_096),
    "claude-instant": _seed(100_000, 4_096),
    "claude-3": _seed(200_000, 4_096),
    "claude-haiku-4": _seed(200_000, 64_000),
    "claude-opus-4": _seed(200_000, 32_000),
    "claude-opus-4-6": _seed(200_000, 128_000),
    "claude-sonnet-4": _seed(200_000, 64_000),
    "claude-sonnet-4-6": _seed(200_000, 64_000),
    "gemini-1.0-pro": _seed(32_760, 8_192),
    "gemini-1.5-pro": _seed(2_000_000, 8_192),
    "gemini-1.5-flash": _seed(1_000_000, 8_192),
}
"""From the project's original documents and the vendors' model pages."""

_FAMILY = re.compile(r"(?:claude-|gpt-[0-9]|chatgpt-[0-9]|o[1-9](?:-|\Z)|codex-|gemini-)")
_DATED = re.compile(r"(?:@.*|-v[0-9]+(?::[0-9]+)?|-[0-9]{8}|-[0-9]{4}-[0-9]{2}-[0-9]{2})\Z")
_OTHER_KIND = re.compile(r"audio|realtime|embedding|transcribe|robotics|gemma|search|exp-|omni")
"""Names of models that are not conversational, and of discontinued experiments."""
_LITELLM_PROVIDERS = frozenset(
    {
        "anthropic",
        "openai",
        "gemini",
        "vertex_ai-language-models",
        "vertex_ai-anthropic_models",
    }
)
_MODELS_DEV_LABS = ("anthropic", "openai", "google")


def read_litellm(path: Path) -> dict[str, Limits]:
    """Return litellm's limits by prefix."""
    table: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    limits_by_prefix: dict[str, Limits] = {}
    for name, row in sorted(table.items()):
        context = row.get("max_input_tokens")
        if (
            row.get("litellm_provider") in _LITELLM_PROVIDERS
            and row.get("mode") in {"chat", "responses"}
            and isinstance(context, int)
            and (prefix := _prefix(name)) is not None
        ):
            limits_by_prefix.setdefault(
                prefix, Limits(context, None, row.get("max_output_tokens"), "litellm")
            )
    return limits_by_prefix


def read_models_dev(folder: Path) -> dict[str, Limits]:
    """Return the limits by prefix from a checkout of models.dev."""
    limits_by_prefix: dict[str, Limits] = {}
    for lab in _MODELS_DEV_LABS:
        for path in sorted((folder / "providers" / lab / "models").glob("*.toml")):
            row = tomllib.loads(path.read_text(encoding="utf-8"))
            limit: dict[str, int] = row.get("limit", {})
            if "base_model" in row:
                base = folder / "models" / f"{row['base_model']}.toml"
                limit = tomllib.loads(base.read_text(encoding="utf-8")).get("limit", {}) | limit
            prefix = _prefix(path.stem)
            if prefix is not None and limit.get("context", 0) > 0:
                limits = Limits(
                    limit["context"], limit.get("input"), limit.get("output"), "models.dev"
                )
                limits_by_prefix.setdefault(prefix, limits)
    return limits_by_prefix


def _prefix(name: str) -> str | None:
    """Return the name without vendor and date; None if it is not a conversational model."""
    plain = plain_name(name)
    if _FAMILY.match(plain) is None or _OTHER_KIND.search(plain) is not None:
        return None
    while (shorter := _DATED.sub("", plain)) != plain:
        plain = shorter
    return plain.removesuffix("-latest")


def collapse(rows: dict[str, Limits]) -> dict[str, Limits]:
    """Drop rows with the same context and input as their next shorter prefix."""
    collapsed: dict[str, Limits] = {}
    for prefix in sorted(rows):
        shorter = [
            other for other in collapsed if prefix.startswith(other) and _goes_on(prefix, other)
        ]
        parent = collapsed[max(shorter, key=len)] if shorter else None
        if parent is None or parent[:2] != rows[prefix][:2]:
            collapsed[prefix] = rows[prefix]
    return collapsed


def _goes_on(name: str, prefix: str) -> bool:
    return name[len(prefix)] in "-@:_"


def build(litellm: Path, models_dev: Path) -> str:
    """Return the catalog file's text, one row a line."""
    rows = collapse(read_litellm(litellm) | read_models_dev(models_dev) | SEED_ROWS)
    parsed = [{"prefix": prefix, **limits._asdict()} for prefix, limits in sorted(rows.items())]
    Catalog.from_rows(parsed)
    lines = ",\n".join(json.dumps(row) for row in parsed)
    return f'{{"rows": [\n{lines}\n]}}\n'


def main() -> None:
    """Write the catalog from the tables named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--litellm", type=Path, required=True)
    parser.add_argument("--models-dev", type=Path, required=True)
    arguments = parser.parse_args()
    TARGET.write_text(build(arguments.litellm, arguments.models_dev), encoding="utf-8")


if __name__ == "__main__":
    main()
