"""What a context consists of: the parts of its latest request, and the runtime's own account."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from schemas.records import Category
from schemas.views import ChainView
from streams.cli.screen.figures import GUESS, UNKNOWN, exact, safe

if TYPE_CHECKING:  # most sessions' boxes need no engine
    from contextgauge.compaction.displays.window_parts import WindowPart


def breakdown(chain: ChainView) -> Iterator[tuple[str, RenderableType]]:
    """Yield a chain's parts in tokens, each with its title; those of the runtime while measured."""
    if chain.breakdown is None:
        yield "Breakdown", Text(UNKNOWN, style="dim")
        return
    parts = (
        ("Cache read", chain.breakdown.cache_read_tokens),
        ("Cache creation", chain.breakdown.cache_creation_tokens),
        ("Input", chain.breakdown.input_tokens),
    )
    yield "Breakdown", _amounts(parts)
    categories = chain.categories or ()
    # What is deferred is not in the context: it is loaded when it is needed.
    if loaded := [each for each in categories if each.kind != "deferred"]:
        yield "By category", _by_category(loaded, chain.categories_tokens, chain.used_tokens)
    if deferred := [each for each in categories if each.kind == "deferred"]:
        yield "Not loaded", _amounts(_named(deferred))


_NAMES: Final[dict[str, str]] = {
    "overhead": "System, tools, memory",
    "system": "System messages",
    "summary": "Summary",
    "user": "User",
    "attachments": "Attachments",
    "images": "Images",
    "assistant": "Assistant",
    "thinking": "Thinking",
    "tool_calls": "Tool calls",
    "tool_results": "Tool results",
    "other": "Other",
}

_TOOLS: Final = 4
"""Tools whose results are shown one by one: these are most of it."""


def filled_by(parts: "Sequence[WindowPart] | str") -> RenderableType:
    """Return what fills a window by an estimate; together that is what was measured.

    Where that is unknown, `parts` is the reason.
    """
    if isinstance(parts, str):
        return Text(f"{UNKNOWN}: {parts}", style="dim")
    rows: list[tuple[str, int]] = []
    for part in parts:
        rows.append((_NAMES[part.kind], part.tokens))
        shown = part.tools[: _TOOLS if len(part.tools) > _TOOLS + 1 else None]
        rows += [(f"  {each.name or UNKNOWN}", each.tokens) for each in shown]
        if rest := part.tools[len(shown) :]:
            rows.append((f"  {len(rest)} other tools", sum(each.tokens for each in rest)))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    for name, tokens in rows:
        grid.add_row(Text(safe(name)), Text(f"{GUESS}{exact(tokens)}"))
    return grid


def _by_category(
    categories: Sequence[Category], total_tokens: int | None, used_tokens: int | None
) -> RenderableType:
    """Return the runtime's account, with the size that it is of where that is not `used_tokens`.

    The runtime gives it only when it is asked, and the context goes on growing: what was free then
    is not free any more.
    """
    in_rows = sum(each.tokens or 0 for each in categories if each.kind == "used")
    of_tokens = in_rows if total_tokens is None else total_tokens
    if of_tokens == used_tokens:
        return _amounts(_named(categories))
    # Rows of older runtimes have no kind: of which size they are is not known.
    of_size = f"as of {exact(of_tokens)} tokens" if of_tokens else "as last reported"
    rest = [each for each in categories if each.kind != "free"]
    return Group(Text(of_size, style="dim"), _amounts(_named(rest)))


def _named(categories: Sequence[Category]) -> list[tuple[str, int | None]]:
    return [(each.name or each.id or UNKNOWN, each.tokens) for each in categories]


def _amounts(parts: Sequence[tuple[str, int | None]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    for name, tokens in parts:
        grid.add_row(Text(safe(name)), Text(exact(tokens)))
    return grid
