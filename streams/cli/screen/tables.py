"""Tables without lines, as wide as the terminal has room for, and boxes of facts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text


def plain_table(
    *names: str, right: Collection[str] = (), wrap: Collection[str] = (), gap: int = 2
) -> Table:
    """Return a table without lines and with these columns, `gap` characters between them.

    Where there is no room, cells are cut; with `wrap`, these columns are wrapped instead.
    """
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in names:
        table.add_column(
            name,
            no_wrap=name not in wrap,
            overflow="fold" if wrap else "ellipsis",
            justify="right" if name in right else "left",
        )
    return table


def facts_box(
    title: str, facts: Iterable[tuple[str, RenderableType]], *more: RenderableType
) -> Panel:
    """Return a box with facts by name, and what follows them."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(name, value)
    shown = Text(title, overflow="ellipsis", no_wrap=True)
    return Panel(Group(grid, *more), title=shown, title_align="left", expand=False, padding=(1, 2))


class Cells(NamedTuple):
    """A column of a fitted table; `least` is the width that it can be cut or wrapped to."""

    texts: Sequence[Text]
    least: int | None = None


def fitted(
    columns: Mapping[str, Sequence[Cells]],
    steps: Iterable[str],
    width: int,
    *,
    right: Collection[str] = (),
    cut: Collection[str] = (),
    gap: int = 2,
    rows: Iterable[int] | None = None,
) -> Table:
    """Return a table that fits, with these `rows` or all; its columns are as wide as all rows need.

    While it is too wide, each of the `steps` takes a column's next form, if there is the column;
    after its last form it is left out. Then columns become narrower, in their order. Those in `cut`
    end with an ellipsis, others are wrapped.
    """
    forms = {name: [_measured(name, cells) for cells in forms] for name, forms in columns.items()}
    for step in steps:
        if sum(form[0].narrow + gap for form in forms.values()) - gap <= width:
            break
        if step not in forms:
            continue
        del forms[step][0]
        if not forms[step]:
            del forms[step]
    excess = sum(form[0].wide + gap for form in forms.values()) - gap - width
    table = plain_table(gap=gap)
    for name, (form, *_) in forms.items():
        own = max(form.narrow, form.wide - max(0, excess))
        excess -= form.wide - own
        table.add_column(
            name,
            no_wrap=name in cut,
            overflow="ellipsis" if name in cut else "fold",
            width=own,
            justify="right" if name in right else "left",
        )
    lines = list(zip(*(form[0].texts for form in forms.values()), strict=True))
    for line in lines if rows is None else (lines[row] for row in rows):
        table.add_row(*line)
    return table


class _Form(NamedTuple):
    texts: Sequence[Text]
    wide: int
    narrow: int


def _measured(name: str, cells: Cells) -> _Form:
    wide = max([len(name), *(text.cell_len for text in cells.texts)])
    narrow = wide if cells.least is None else min(wide, max(cells.least, len(name)))
    return _Form(cells.texts, wide, narrow)
