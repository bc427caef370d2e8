"""How dead letters look: a table, a single letter, counts, and the result of a redrive.

A list shows no message content; only `dead show` does.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from schemas.records import Json
from streams import codec
from streams.cli.screen.figures import UNKNOWN, ago, count, exact, safe, size
from streams.cli.screen.output import cell
from streams.cli.screen.tables import Cells, facts_box, fitted, plain_table
from streams.flow.dead_letters.letters import REMEDIES, Letter
from streams.flow.dead_letters.reading import Selection, Span, session_of_letter
from streams.flow.dead_letters.redrive import SKIP_REMEDIES, RedriveResult

_KEY_CHARACTERS = (24, 12, 8)
"""Of a key in the table, on wide and narrow screens; `dead show` has the whole key."""

_WIDE_DETAIL = 40
"""Columns of a readable detail; if it has fewer, other columns are shortened."""

_LEAST_DETAIL = 16
"""Below this the details are not shown."""


class Brief(NamedTuple):
    """What a list shows of a letter: without its content, which may be large."""

    letter: Letter
    session_id: str | None
    size: int


def brief(letter: Letter) -> Brief:
    """Return what a list shows of a letter."""
    return Brief(letter._replace(value=b""), session_of_letter(letter), letter.size)


def calendar_time(time_ms: int) -> str | None:
    """Return a time as RFC 3339, None if it is out of the calendar's range."""
    try:
        return codec.rfc3339(time_ms)
    except (ValueError, OverflowError, OSError):
        return None


def printable(value: bytes) -> str:
    r"""Return bytes as one line of printable text: other bytes become `\xff`, `\n`."""
    return safe(value.decode("utf-8", "backslashreplace"))


def letters_table(listed: Sequence[Brief], width: int) -> Table:
    """Return a table of letters, in the given order, for a screen of this width.

    If it is too wide, times and keys are shortened, then the details; then these are omitted.
    """
    letters = [each.letter for each in listed]
    times = [[cell(_when(each.died_ms, form)) for each in letters] for form in (19, 16)]
    keys = [[_key(letter.key, shown) for letter in letters] for shown in _KEY_CHARACTERS]
    details = [cell(letter.detail) for letter in letters]
    columns = {
        "Letter": [Cells([Text(letter.address) for letter in letters])],
        "Died (UTC)": [*map(Cells, times)],
        "Reason": [Cells([cell(letter.reason) for letter in letters])],
        "Key": [*map(Cells, keys)],
        "Size": [Cells([Text(size(each.size)) for each in listed])],
        "Detail": [Cells(details, _WIDE_DETAIL), Cells(details, _LEAST_DETAIL)],
    }
    steps = ("Died (UTC)", "Key", "Key", "Detail", "Detail")
    return fitted(columns, steps, width, right={"Size"}, cut=columns)


def _when(time_ms: int, characters: int = 19) -> str | None:
    """Return a time in UTC as `--since` takes it: 2026-05-01 14:30:00."""
    text = calendar_time(time_ms)
    return None if text is None else text[:characters].replace("T", " ")


def _key(key: bytes | None, characters: int) -> Text:
    if key is None:
        return Text("none", style="dim")
    text = printable(key)
    return Text(text if len(text) <= characters else text[: characters - 1] + "…")


def brief_json(listed: Brief) -> dict[str, Json]:
    """Return what a list has of a letter, for programs."""
    letter, session_id, size = listed
    origin = letter.origin
    return {
        "address": letter.address,
        "died": calendar_time(letter.died_ms),
        "reason": letter.reason,
        "detail": letter.detail,
        **_bytes_json("key", letter.key),
        "session_id": session_id,
        "bytes": size,
        "cut_from_sha256": None if letter.cut is None else letter.cut.sha256,
        "source": None
        if origin is None
        else {
            "topic": origin.topic,
            "partition": origin.partition,
            "offset": origin.offset,
            "last_offset": origin.last_offset,
            "time": calendar_time(origin.timestamp_ms),
        },
    }


def _bytes_json(name: str, value: bytes | None) -> dict[str, Json]:
    """Return bytes under their name if they are text, else under `<name>_base64`."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode("ascii")}


def letter_json(letter: Letter) -> dict[str, Json]:
    """Return the whole letter, for programs."""
    headers: list[Json] = [{"name": name, **_bytes_json("value", v)} for name, v in letter.headers]
    return {
        **brief_json(brief(letter)),
        "remedy": _remedy(letter),
        "headers": headers,
        **_bytes_json("value", letter.value),
    }


def letter_box(letter: Letter, now_ms: int, characters: int) -> RenderableType:
    """Return the whole letter: its properties, and the beginning of the message."""
    text = printable(letter.value)
    parts: list[RenderableType] = [Text(), Text(text[:characters], overflow="fold")]
    if len(text) > characters:
        rest = exact(len(text) - characters)
        parts.append(Text(f"… {rest} more characters: --characters, --raw", style="dim"))
    facts = ((name, Text(value)) for name, value in _properties(letter, now_ms))
    return facts_box(f"Dead letter {letter.address}", facts, *parts)


def _properties(letter: Letter, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "Reason", safe(letter.reason)
    if letter.detail:
        yield "Detail", safe(letter.detail)
    yield "What to do", _remedy(letter)
    yield "", ""
    died = calendar_time(letter.died_ms)
    yield "Died", UNKNOWN if died is None else f"{died} · {ago(letter.died_ms, now_ms)}"
    origin = letter.origin
    if origin is not None:
        offsets = f"offset {origin.offset}"
        if origin.last_offset is not None:
            offsets = f"offsets {origin.offset} to {origin.last_offset}"
        yield "From", f"{safe(origin.topic)}, partition {origin.partition}, {offsets}"
        yield "Timestamp", calendar_time(origin.timestamp_ms) or f"{origin.timestamp_ms} ms"
    yield "Key", "none" if letter.key is None else printable(letter.key)
    yield "Session", safe(session_of_letter(letter) or "none")
    yield "Size", f"{exact(letter.size)} bytes"
    if letter.cut is not None:
        yield (
            "Kept",
            f"the first {exact(len(letter.value))} bytes; SHA-256 {safe(letter.cut.sha256)}",
        )
    for name, value in letter.headers:
        yield "Header", f"{safe(name)}: {'null' if value is None else printable(value)}"


def _remedy(letter: Letter) -> str:
    if letter.cut is not None:
        return SKIP_REMEDIES["cut"]
    return REMEDIES.get(letter.reason, "it was not written by a derive worker, or by a newer one")


@dataclass(slots=True)
class Tally:
    """Counts letters of one reason."""

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
    names = ("Reason", "Letters", "Size", "First died (UTC)", "Last died (UTC)")
    table = plain_table(*names, right=("Letters", "Size"))
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
            "first_died": calendar_time(tally.first_ms),
            "last_died": calendar_time(tally.last_ms),
        }
        for reason, tally in _by_number(tallies)
    ]


def _by_number(tallies: Mapping[str, Tally]) -> list[tuple[str, Tally]]:
    return sorted(tallies.items(), key=lambda item: (-item[1].letters, item[0]))


def redrive_lines(result: RedriveResult, topic: str, *, sent: bool) -> Iterator[str]:
    """Yield the lines that describe what a redrive did, or would do."""
    verb = "sent" if sent else "would send"
    messages, sessions = count(result.messages, "message"), count(len(result.sessions), "session")
    reasons = ", ".join(f"{exact(n)} {reason}" for reason, n in result.reasons.most_common())
    yield f"{verb} {messages} ({size(result.sent_bytes)}) of {sessions} to {topic}" + (
        f": {reasons}" if reasons else ""
    )
    if result.shortened:
        yield f"{exact(result.shortened)} of them shortened to the limit"
    if result.meaningless:
        yield f"{exact(result.meaningless)} skipped: no session, and nothing to derive"
    for reason, skipped in result.skipped.items():
        more = ", …" if skipped.letters > len(skipped.examples) else ""
        addresses = ", ".join(skipped.examples) + more
        yield f"{exact(skipped.letters)} skipped, {reason} ({addresses}): {skipped.detail}"
        yield f"  {SKIP_REMEDIES[reason]}"


def how_to_continue(
    selection: Selection, partitions: Sequence[int], settled: Mapping[int, int]
) -> str:
    """Return how to send the rest after a redrive ended early; see `RedriveResult.settled`."""
    spans = selection.spans or [Span(partition, 0, None) for partition in partitions]
    rest = [span._replace(begin=max(span.begin, settled.get(span.partition, 0))) for span in spans]
    left = [address_of(span) for span in rest if span.end is None or span.begin < span.end]
    if not left:
        return "all letters were sent before the command ended"
    where = "in place of --all" if selection == Selection() else "with the same options"
    if selection.spans:
        where += ", in place of the addresses"
    return f"not all letters were sent. To continue, give these {where}: {' '.join(left)}"


def address_of(span: Span) -> str:
    """Return a span as the commands take it: 0:1234, 0:1200-1300 or, to the last, 0:1200-."""
    if span.end == span.begin + 1:
        return f"{span.partition}:{span.begin}"
    return f"{span.partition}:{span.begin}-{'' if span.end is None else span.end - 1}"


def redrive_json(result: RedriveResult, *, sent: bool) -> dict[str, Json]:
    """Return what a redrive did, or would do, for programs."""
    left: list[Json] = [
        {
            "reason": reason,
            "letters": skipped.letters,
            "detail": skipped.detail,
            "remedy": SKIP_REMEDIES[reason],
            "examples": [*skipped.examples],
        }
        for reason, skipped in result.skipped.items()
    ]
    return {
        "sent": sent,
        "messages": result.messages,
        "bytes": result.sent_bytes,
        "sessions": len(result.sessions),
        "shortened": result.shortened,
        "reasons": dict(result.reasons),
        "meaningless": result.meaningless,
        "left": left,
    }
