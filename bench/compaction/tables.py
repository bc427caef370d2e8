"""The results as a table for a terminal, and for docs/COMPACTION.md."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bench.compaction.contenders import Contender
from bench.compaction.measures import Result

Pair = tuple[Result, Result]
"""One contender under both stand-ins: `even`, `careful`."""

HEADINGS: Final = (
    "", "constraints", "of these early", "conflicts", "stale", "files", "orphans", "tokens",
    "over budget", "ms",
)  # fmt: skip

_FULL: Final = "100"


def pairs(results: Sequence[Result]) -> list[Pair]:
    """Return the results of each contender together, in their order."""
    even = [each for each in results if each.style == "even"]
    careful = {each.contender: each for each in results if each.style == "careful"}
    return [(each, careful[each.contender]) for each in even]


def row(pair: Pair) -> tuple[str, ...]:
    """Return the cells of a contender. Two figures are those of the two stand-ins."""
    return (
        pair[0].contender,
        _both(pair, lambda each: _percent(each.constraints)),
        _both(pair, lambda each: _percent(each.early)),
        _both(pair, lambda each: _percent(each.resolved)),
        _both(pair, lambda each: _percent(each.stale)),
        _both(pair, lambda each: _percent(each.files)),
        _both(pair, lambda each: str(each.orphans)),
        _both(pair, lambda each: _percent(each.tokens_share)),
        _both(pair, lambda each: _percent(each.over_budget)),
        f"{pair[1].ms:.1f}",
    )


def _both(pair: Pair, figure: Callable[[Result], str]) -> str:
    even, careful = figure(pair[0]), figure(pair[1])
    return even if even == careful else f"{even} / {careful}"


def _percent(share: float) -> str:
    """Return a share in percent; 0 and 100 only where it is exactly that."""
    rounded = f"{share * 100:.0f}"
    if (rounded == "0" and share > 0) or (rounded == _FULL and share < 1):
        return f"{share * 100:.1f}"
    return rounded


def text_table(results: Sequence[Result]) -> str:
    """Return a table with aligned columns."""
    rows = [HEADINGS, *map(row, pairs(results))]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        for cells in rows
    ]
    return "\n".join(lines)


def markdown_table(results: Sequence[Result]) -> str:
    """Return a table in Markdown."""
    lines = [_markdown(HEADINGS), "|---" + "|---:" * (len(HEADINGS) - 1) + "|"]
    return "\n".join([*lines, *(_markdown(row(each)) for each in pairs(results))])


def _markdown(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def sources(contenders: Iterable[Contender]) -> str:
    """Return where the rules of other agents are published, as a list in Markdown."""
    return "\n".join(f"- {each.name}: {each.source}" for each in contenders if each.kind == "other")
