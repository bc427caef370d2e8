"""Paths that commands take in place of a session, and what is learned from all that they hold."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from contextgauge.errors import ConfigError
from schemas.views import SessionView
from streams import wiring
from streams.cli.screen.lines import write_error
from streams.core.until_compaction import CompactionPoints, usual_point
from streams.edge.files import reading as files
from streams.edge.files.formats import counted
from streams.edge.files.housekeeping import SUFFIXES
from streams.edge.files.watch import Failed, Source, subagents_of

_PATH_BEGINNINGS = ("/", "./", "../", "~/")


def is_path(text: str) -> bool:
    """Return whether an argument is a path to transcripts, and no session's id."""
    if text == files.STANDARD_INPUT or text.startswith(_PATH_BEGINNINGS) or text.endswith(SUFFIXES):
        return True
    return os.path.exists(text)  # noqa: PTH110 -- False for what no file can be named, where Path raises


def sources_of(paths: Iterable[str], failed: Failed = files.refuse) -> list[Source]:
    """Return what the paths stand for, in reading order.

    `failed` gets what cannot be read; by default that is a ConfigError, as is a path that holds no
    transcripts.
    """
    unread: Counter[str] = Counter()
    sources = files.expand((_expanded(path) for path in paths), failed, unread)
    if unread and sources:
        write_error(f"not read: {counted(unread)}\n")
    if not sources:
        raise ConfigError(counted(unread) if unread else "nothing can be read")
    return sources


def session_folder(path: str) -> str | None:
    """Return the folder with the subagents of a transcript: `X` of `X.jsonl`; None without one."""
    return subagents_of(_expanded(path))


def points_of(
    models: Mapping[str, Iterable[Mapping[str, Any]]], views: Iterable[SessionView]
) -> CompactionPoints:
    """Return where compactions of sessions of this machine are expected.

    That is by all settings, for those that `views` ran under, and by aggregates of models.
    """
    learned = {model: usual_point(aggregates) for model, aggregates in sorted(models.items())}
    known = tuple((model, point) for model, point in learned.items() if point is not None)
    return wiring.local_points(wiring.settings(), views)._replace(learned=known)


def _expanded(path: str) -> str:
    return str(Path(path).expanduser()) if path.startswith("~") else path
