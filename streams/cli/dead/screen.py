"""How dead letters look: a table, one of them whole, counts, and what a redrive did.

A list shows nothing of what messages say; only `dead show` does.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from schemas.records import Json
from streams import codec
from streams.cli.screen.output import UNKNOWN, ago, cell, count, err, exact, safe, size
from streams.flow.dead_letters.letters import MENDS, Letter, Origin
from streams.flow.dead_letters.reading import Selection, Span, session_of_letter
from streams.flow.dead_letters.redrive import STAY_MENDS, Redriven

_KEY_CHARACTERS = (24, 12, 8)
"""Of a key in the table, on wide and narrow screens; `dead show` has all of it."""

_WIDE_DETAIL = 40
"""Columns of a detail that tell what is meant; where there are fewer, others are cut."""

_LEAST_DETAIL = 16
"""Columns of a detail that are worth showing."""

_GAP = 2
"""Columns between those of a table."""

_NEXT = "  "


class Brief(NamedTuple):
    """What a list tells of a letter: not what the message says."""

    address: str
    died_ms: int
    reason: str
    detail: str
    key: bytes | None
    session_id: str | None
    size: int
    origin: Origin | None


def brief(letter: Letter) -> Brief:
    """Return what a list tells of a letter."""
    return Brief(
        letter.address,
        letter.died_ms,
        letter.reason,
        letter.detail,
        letter.key,
        session_of_letter(letter),
        len(letter.value),
        letter.origin,
    )


def moment(time_ms: int) -> str | None:
    """Return a time as RFC 3339; None where it is none that a calendar has."""
    try:
        return codec.rfc3339(time_ms)
    except (ValueError, OverflowError, OSError):
        return None


def plain(value: bytes) -> str:
    r"""Return bytes as one line of printable text: what is not becomes `\xff`, `\n`."""
    return safe(value.decode("utf-8", "backslashreplace"))


def letters_table(letters: Sequence[Brief], width: int) -> Table:
    """Return the table of letters, in the order given, for a screen of this width.

    Where it is too wide, keys and times are cut, then the details; then these go.
    """
    for shown in _KEY_CHARACTERS:
        to_seconds = shown == max(_KEY_CHARACTERS)
        columns: dict[str, list[Text]] = {
            "Letter": [Text(letter.address) for letter in letters],
            "Died (UTC)": [cell(_when(letter.died_ms, seconds=to_seconds)) for letter in letters],
            "Reason": [cell(letter.reason) for letter in letters],
            "Key": [_key(letter.key, shown) for letter in letters],
            "Size": [Text(size(letter.size)) for letter in letters],
        }
        widths = {
            name: max(len(name), *(each.cell_len for each in cells))
            for name, cells in columns.items()
        }
        rest = width - sum(widths.values()) - _GAP * len(widths)
        if rest >= _WIDE_DETAIL:
            break
    if rest >= _LEAST_DETAIL:
        columns["Detail"] = [cell(letter.detail) for letter in letters]
        widths["Detail"] = rest
    table = _table()
    for name in columns:
        table.add_column(
            name,
            no_wrap=True,
            overflow="ellipsis",
            width=widths[name],
            justify="right" if name == "Size" else "left",
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")


def _when(time_ms: int, *, seconds: bool = True) -> str | None:
    """Return a time in UTC as `--since` takes it: 2026-05-01 14:30:00."""
    told = moment(time_ms)
    return None if told is None else told[: 19 if seconds else 16].replace("T", " ")


def _key(key: bytes | None, characters: int) -> Text:
    if key is None:
        return Text("none", style="dim")
    text = plain(key)
    return Text(text if len(text) <= characters else text[: characters - 1] + "…")


def brief_json(letter: Brief) -> dict[str, Json]:
    """Return what a list tells of a letter, for programs."""
    origin = letter.origin
    return {
        "address": letter.address,
        "died": moment(letter.died_ms),
        "reason": letter.reason,
        "detail": letter.detail,
        **_bytes_json("key", letter.key),
        "session_id": letter.session_id,
        "bytes": letter.size,
        "source": None
        if origin is None
        else {
            "topic": origin.topic,
            "partition": origin.partition,
            "offset": origin.offset,
            "time": moment(origin.timestamp_ms),
        },
    }


def _bytes_json(name: str, value: bytes | None) -> dict[str, Json]:
    """Return bytes under their name where they are text, else under `<name>_base64`."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode("ascii")}


def letter_json(letter: Letter) -> dict[str, Json]:
    """Return a letter whole, for programs."""
    headers: list[Json] = [{"name": name, **_bytes_json("value", v)} for name, v in letter.headers]
    return {
        **brief_json(brief(letter)),
        "mend": _mend(letter.reason),
        "headers": headers,
        **_bytes_json("value", letter.value),
    }


def letter_box(letter: Letter, now_ms: int, characters: int) -> RenderableType:
    """Return a letter whole: what is told of it, and the beginning of what it holds."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, told in _facts(letter, now_ms):
        grid.add_row(name, Text(told))
    text = plain(letter.value)
    parts: list[RenderableType] = [grid, Text(), Text(text[:characters], overflow="fold")]
    if len(text) > characters:
        rest = exact(len(text) - characters)
        parts.append(Text(f"… {rest} characters more: --characters, --raw", style="dim"))
    title = Text(f"Dead letter {letter.address}")
    return Panel(Group(*parts), title=title, title_align="left", expand=False, padding=(1, 2))


def _facts(letter: Letter, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "Reason", safe(letter.reason)
    if letter.detail:
        yield "Detail", safe(letter.detail)
    yield "What to do", _mend(letter.reason)
    yield "", ""
    died = moment(letter.died_ms)
    yield "Died", UNKNOWN if died is None else f"{died} · {ago(letter.died_ms, now_ms)}"
    origin = letter.origin
    if origin is not None:
        yield "From", f"{safe(origin.topic)}, partition {origin.partition}, offset {origin.offset}"
        yield "Its time", moment(origin.timestamp_ms) or f"{origin.timestamp_ms} ms"
    yield "Key", "none" if letter.key is None else plain(letter.key)
    yield "Session", safe(session_of_letter(letter) or "none")
    yield "Size", f"{exact(len(letter.value))} bytes"
    for name, value in letter.headers:
        yield "Header", f"{safe(name)}: {plain(value)}"


def _mend(reason: str) -> str:
    return MENDS.get(reason, "it was not written by a derive worker, or by a newer one")


@dataclass(slots=True)
class Tally:
    """Letters of one reason, counted."""

    letters: int = 0
    size: int = 0
    first_ms: int = field(default=2**63)
    last_ms: int = -1

    def add(self, died_ms: int, bytes_: int) -> None:
        """Count one more."""
        self.letters += 1
        self.size += bytes_
        self.first_ms = min(self.first_ms, died_ms)
        self.last_ms = max(self.last_ms, died_ms)


def summary_table(tallies: Mapping[str, Tally]) -> Table:
    """Return the counts by reason, the most frequent first."""
    table = _table()
    table.add_column("Reason", no_wrap=True)
    table.add_column("Letters", no_wrap=True, justify="right")
    table.add_column("Size", no_wrap=True, justify="right")
    table.add_column("First died (UTC)", no_wrap=True)
    table.add_column("Last died (UTC)", no_wrap=True)
    for reason, tally in _by_number(tallies):
        times = [cell(_when(ms)) for ms in (tally.first_ms, tally.last_ms)]
        table.add_row(cell(reason), exact(tally.letters), size(tally.size), *times)
    return table


def summary_json(tallies: Mapping[str, Tally]) -> list[Json]:
    """Return the counts by reason, for programs."""
    return [
        {
            "reason": reason,
            "letters": tally.letters,
            "bytes": tally.size,
            "first_died": moment(tally.first_ms),
            "last_died": moment(tally.last_ms),
        }
        for reason, tally in _by_number(tallies)
    ]


def _by_number(tallies: Mapping[str, Tally]) -> list[tuple[str, Tally]]:
    return sorted(tallies.items(), key=lambda item: (-item[1].letters, item[0]))


def redriven_lines(done: Redriven, topic: str, *, sent: bool) -> Iterator[str]:
    """Yield the lines that tell what a redrive did, or would do."""
    said = "sent" if sent else "would send"
    sessions = count(len(done.sessions), "session")
    told = f"{said} {count(done.messages, 'message')} ({size(done.sent_bytes)}) of {sessions}"
    why = ", ".join(f"{exact(n)} {reason}" for reason, n in done.reasons.most_common())
    yield f"{told} to {topic}" + (f": {why}" if why else "")
    if done.shortened:
        yield f"{exact(done.shortened)} of them shortened to the limit"
    if done.meaningless:
        yield f"{exact(done.meaningless)} left: no session, and no meaning either"
    for reason, left in done.left.items():
        more = ", …" if left.letters > len(left.examples) else ""
        where = ", ".join(left.examples) + more
        yield f"{exact(left.letters)} left, {reason} ({where}): {left.detail}"
        yield f"{_NEXT}{STAY_MENDS[reason]}"


def go_on(selection: Selection, partitions: Sequence[int], settled: Mapping[int, int]) -> str:
    """Say how to send what is left of a redrive that ended early; see `Redriven.settled`."""
    spans = selection.spans or [Span(partition, 0, None) for partition in partitions]
    rest = [span._replace(begin=max(span.begin, settled.get(span.partition, 0))) for span in spans]
    left = [_address(span) for span in rest if span.end is None or span.begin < span.end]
    if not left:
        return "all of them were sent before it ended"
    whole = "in place of --all" if selection == Selection() else "with the same options"
    if selection.spans:
        whole += ", in place of the addresses"
    return f"not all was sent; what was sent stays sent. To go on, give {whole}: {' '.join(left)}"


def _address(span: Span) -> str:
    if span.end == span.begin + 1:
        return f"{span.partition}:{span.begin}"
    return f"{span.partition}:{span.begin}-{'' if span.end is None else span.end - 1}"


def redriven_json(done: Redriven, *, sent: bool) -> dict[str, Json]:
    """Return what a redrive did, or would do, for programs."""
    left: list[Json] = [
        {
            "reason": reason,
            "letters": left.letters,
            "detail": left.detail,
            "mend": STAY_MENDS[reason],
            "examples": [*left.examples],
        }
        for reason, left in done.left.items()
    ]
    return {
        "sent": sent,
        "messages": done.messages,
        "bytes": done.sent_bytes,
        "sessions": len(done.sessions),
        "shortened": done.shortened,
        "reasons": dict(done.reasons),
        "meaningless": done.meaningless,
        "left": left,
    }


class Bar:
    """How much of the topic has been read, where standard error is a terminal."""

    def __init__(self, doing: str, *, shown: bool = True) -> None:
        self._progress = Progress(
            TextColumn(doing),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            console=err,
            transient=True,
            disable=not (shown and err.is_terminal),
        )
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        self._task = self._progress.add_task("", total=None)
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, read: int, of: int) -> None:
        """Bring the bar up to date."""
        self._progress.update(self._task, completed=read, total=of)
