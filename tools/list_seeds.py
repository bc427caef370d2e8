"""Generate `docs/SEEDS.md`, what each seed says, from the table of cases and what they answer.

    python -m tools.list_seeds

Fails where an example answers something else than the seed says: then nothing is written. A test
fails if the document is out of date.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.seeds.cases import Example, Row, answer, introduction, sections

DOCUMENT = Path(__file__).parents[1] / "docs" / "SEEDS.md"

_LONGEST, _LONGEST_ANSWER = 60, 30
"""Characters of an example that is shown whole, and of an answer shown without its arguments."""


def document() -> str:
    """Return the document's text. Raises ValueError where an example answers something else."""
    return introduction() + "".join(_lines())


def _lines() -> Iterator[str]:
    for section in sections():
        yield f"\n{section.title}\n"
        if section.note is not None:
            yield f"\n{section.note}\n"
        if section.rows:
            yield "\n| behaviour | shown by |\n|---|---|\n"
        for row in section.rows:
            shown = "<br>".join(_shown(row)).replace("|", "\\|")
            yield f"| {row.behaviour.replace('|', '&#124;')} | {shown} |\n"


def _shown(row: Row) -> Iterator[str]:
    if row.declined is not None:
        yield f"*Declined*: {row.declined}"
    examples = [_written(row, example) for example in row.examples]
    short = [text for text in examples if len(text) <= _LONGEST]
    yield from short[:1]
    if short or row.declined:
        return
    yield from (f"`{test}`" for test in row.tests[:1])
    if not row.tests:
        answered = _json(row.examples[0].answer)
        shown = f" → `{answered}`" if len(answered) <= _LONGEST_ANSWER else ""
        yield f"`{row.examples[0].probe}`{shown}"


def _written(row: Row, example: Example) -> str:
    given = ", ".join(f"{name}={_json(each)}" for name, each in example.arguments.items())
    return f"`{example.probe}({given})` → `{_json(_passed(row, example))}`"


def _passed(row: Row, example: Example) -> object:
    answered = answer(example)
    if answered != example.answer:
        raise ValueError(f"{row.behaviour}: {example.probe} answers {answered!r}")
    return answered


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    try:
        DOCUMENT.write_text(document(), encoding="utf-8")
    except ValueError as error:
        sys.exit(str(error))
