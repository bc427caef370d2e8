"""Captures of runtimes that keep a session in JSON documents, and write these again."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schemas.records import Record
from tests.edge.follower_kit import Bench
from tests.edge.test_origins import derived

Body = dict[str, Any]
Documents = Mapping[str, Any]
"""Each document, by its path below the home."""


def write(home: Path, documents: Documents) -> Path:
    """Write documents as runtimes do: in the place of those that were there."""
    for name, value in documents.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".tmp").write_text(json.dumps(value, indent=2))
        os.replace(path.with_suffix(".tmp"), path)  # noqa: PTH105 -- as runtimes do
    return home


def records_of(home: Path, documents: Documents) -> list[Record]:
    """Return what documents give."""
    return derived(write(home, documents))


class Publishing:
    """What a follower of a home sends, one look after the other."""

    def __init__(self, home: Path) -> None:
        self.bench = Bench([str(home)])

    def sent(self) -> list[Body]:
        """Look again after a while; return what is sent."""
        self.bench.clock.at_s += 60
        # A piece without lines comes first: up to where a document's list begins.
        return [json.loads(line) for line in (*self.bench.lines(), *self.bench.lines())]

    @property
    def reported(self) -> list[str]:
        """What it reported."""
        return self.bench.events
