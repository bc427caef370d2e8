"""A capture of a runtime's files, written below a home and read as any command reads it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from contextgauge.containers import Line
from contextgauge.delivery.privacy import strip_text
from contextgauge.delivery.shorten import fit
from schemas.records import CompactBoundary, ContextReading, Record
from streams.edge.files import reading as files
from tests.edge.test_origins import derived

Body: TypeAlias = dict[str, Any]
Capture: TypeAlias = Mapping[str, Sequence[Body]]
"""The lines of each file, by its path below the home."""

NAMES = (
    *("chain", "model", "used_tokens", "input_tokens", "window", "window_source", "pre_tokens"),
    *("post_tokens", "trigger", "trigger_reason", "duration_ms", "runtime", "cwd", "number"),
    *("messages", "messages_total", "categories", "receipt", "reason", "outcome"),
)
"""Figures of records: all but texts, and ids of messages that have none of their own."""


def write(home: Path, capture: Capture) -> Path:
    """Write a capture; return the folder that all of it is below."""
    for name, bodies in capture.items():
        save(home / name, map(json.dumps, bodies))
    return home


def save(path: Path, lines: Iterable[str]) -> None:
    """Write a file of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{each}\n" for each in lines))


def records_of(home: Path, capture: Capture) -> list[Record]:
    """Return what a capture's files give."""
    return derived(write(home, capture))


def sizes(records: Iterable[Record], chain: str = "main") -> list[tuple[int, int | None]]:
    """Return the sizes of a chain, each with its window."""
    data = (record.data for record in records)
    return [
        (each.used_tokens, each.window)
        for each in data
        if isinstance(each, ContextReading) and each.chain == chain
    ]


def boundaries(records: Iterable[Record]) -> list[CompactBoundary]:
    """Return the compactions."""
    return [record.data for record in records if isinstance(record.data, CompactBoundary)]


def figures(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    """Return what records say but for texts."""
    return [
        (record.kind, record.time_ms, *(getattr(record.data, each, None) for each in NAMES))
        for record in records
    ]


def without_texts(home: Path, capture: Capture, words: str) -> list[Record]:
    """Return what a capture gives that was published without its texts; `words` are in these."""
    published = _published(home, capture, _stripped)
    assert words not in str(published)
    return derived(home / "no-text")


def shortened(home: Path, capture: Capture, most_bytes: int) -> list[Record]:
    """Return what a capture gives whose messages were shortened."""
    published = _published(home, capture, partial(_fitted, most_bytes=most_bytes), "short")
    assert max(map(len, published)) <= most_bytes
    return derived(home / "short")


def _stripped(line: Line) -> bytes:
    made = strip_text(line, b"key")
    assert isinstance(made, Line)
    return made.value


def _fitted(line: Line, most_bytes: int) -> bytes:
    made = fit(line, most_bytes)
    assert isinstance(made, bytes)
    return made


def _published(
    home: Path, capture: Capture, made: Callable[[Line], bytes], folder: str = "no-text"
) -> list[bytes]:
    values: list[bytes] = []
    write(home, capture)
    for name in capture:
        sources = files.expand([str(home / name)])
        lines: list[Line] = [line for block in files.read(sources) for line in block]
        values += map(made, lines)
        save(home / folder / name, (made(line).decode() for line in lines))
    return values
