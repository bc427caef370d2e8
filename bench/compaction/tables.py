"""The results as tables in Markdown."""

from collections.abc import Sequence
from itertools import groupby

from bench.compaction.facts import KINDS
from bench.compaction.measures import Result


def tables(results: Sequence[Result]) -> str:
    """Return the figures at each goal, then the facts by kind."""
    parts: list[str] = []
    for goal, group in groupby(results, lambda each: each.goal_percent):
        rows = list(group)
        planted = sum(rows[0].planted.values())
        parts += [
            f"**Goal {goal:g} % of the usable window**",
            _figures(rows, planted),
            _kinds(rows),
        ]
    return "\n\n".join(parts)


def _figures(rows: Sequence[Result], planted: int) -> str:
    heads = (
        "", f"facts of {planted}", "with recall", "old values", "stale", "injected", "invalid",
        "over goal", "size / usable", "ms",
    )  # fmt: skip
    lines = [
        (
            each.contender,
            str(each.in_context),
            "-" if each.recalled is None else str(each.recalled),
            str(each.old),
            str(each.stale),
            f"{each.injected} of {each.orders}",
            str(each.invalid),
            f"{each.over_goal} of {each.compactions}",
            f"{each.size:.2f}",
            f"{each.ms:.1f}",
        )
        for each in rows
    ]
    return _table(heads, lines)


def _kinds(rows: Sequence[Result]) -> str:
    heads = ("facts in %", *KINDS)
    lines = [
        (each.contender, *(_percent(each.facts[kind], each.planted[kind]) for kind in KINDS))
        for each in rows
    ]
    return _table(heads, lines)


def _percent(count: int, of: int) -> str:
    """Return a share in percent, rounded down: 100 only where it is all."""
    return str(100 * count // of) if of else "-"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = "|---" + "|---:" * (len(heads) - 1) + "|"
    written = [f"| {' | '.join(each)} |" for each in (heads, *lines)]
    return "\n".join([written[0], rule, *written[1:]])
