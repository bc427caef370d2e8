"""Paths that commands take in place of a session, and what is learned from all that they hold."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from contextgauge.errors import ConfigError, StopError
from contextgauge.user_folders import expanded
from schemas.views import MODEL_FIELD, SessionView
from streams import codec, wiring
from streams.cli.screen.figures import safe
from streams.cli.screen.lines import write_error
from streams.core.until_compaction import CompactionPoints, usual_point
from streams.edge.files import reading as files
from streams.edge.files.formats import READ, counted, reason_of
from streams.edge.files.housekeeping import DOCUMENT, SUFFIXES
from streams.edge.files.watch import Failed, InputSource, subagents_of
from streams.wiring.stored import own_folders

_PATH_BEGINNINGS = ("/", "./", "../", "~/")


class LeftOut:
    """Reports on standard error what cannot be read, which is left out, and counts it."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, path: str, error: OSError) -> None:
        """Report a file or folder, and why it cannot be read."""
        self.count += 1
        write_error(f"{safe(path)}: {reason_of(error)}\n")


def is_path(text: str) -> bool:
    """Return whether an argument is a path to transcripts, and no session's id."""
    if text == files.STANDARD_INPUT or text.startswith(_PATH_BEGINNINGS):
        return True
    if text.endswith((DOCUMENT, *SUFFIXES)):
        return True
    return os.path.exists(text)  # noqa: PTH110 -- False for what no file can be named, where Path raises


def sources_of(paths: Collection[str], failed: Failed = files.refuse) -> list[InputSource]:
    """Return what the paths stand for, in reading order: a session's transcript, for the session.

    So its subagents' transcripts are read too. `failed` gets what cannot be read; by default it
    is a ConfigError, as is a path that holds no transcripts.
    """
    if "" in paths:
        raise ConfigError("an empty path: name a file or a folder")
    unsupported: Counter[str] = Counter()
    whole = dict.fromkeys(session_folder(path) or expanded(path) for path in paths)
    sources = files.expand(whole, failed, unsupported)
    if not sources:
        raise ConfigError(counted(unsupported) if unsupported else "nothing can be read")
    _report_unsupported(unsupported)
    return sources


def named_or_own(paths: Collection[str], failed: Failed) -> list[InputSource]:
    """Return the transcripts of paths; without any, those of this machine's runtimes, if any.

    In reading order; see `sources_of`. `failed` gets what cannot be read, which is left out.
    """
    if paths:
        return sources_of(paths, failed)
    unsupported: Counter[str] = Counter()
    sources = files.expand_folders(own_folders(), failed, unsupported)
    _report_unsupported(unsupported)
    return sources


def _report_unsupported(unsupported: Counter[str]) -> None:
    if unsupported:
        write_error(f"not read: {counted(unsupported)}\n")


def unrecognised(name: str) -> StopError:
    """Return the error of an input whose sessions are of no known runtime, and have no figures."""
    return StopError(
        f"{name}: no line has a size or a compaction, and the runtime that wrote it is not known. "
        f"{READ}"
    )


def session_folder(path: str) -> str | None:
    """Return the folder with the subagents of a transcript: `X` of `X.jsonl`; None without one."""
    return subagents_of(expanded(path))


def add_totals(
    models: dict[str, list[Mapping[str, Any]]],
    totals: Iterable[tuple[bytes, bytes, bytes]],
    is_counted: Callable[[bytes], bool],
) -> None:
    """Add what a local file has of models, of the sessions that count. Raises ValueError."""
    for session, field, document in totals:
        name = field.decode("utf-8", "surrogatepass")
        if name.startswith(MODEL_FIELD) and is_counted(session):
            models.setdefault(name.removeprefix(MODEL_FIELD), []).append(codec.loads(document))


def points_of(
    models: Mapping[str, Iterable[Mapping[str, Any]]], views: Iterable[SessionView]
) -> CompactionPoints:
    """Return where compactions of sessions of this machine are expected.

    That is by all settings, for those that `views` ran under, and by aggregates of models.
    """
    learned = {model: usual_point(aggregates) for model, aggregates in sorted(models.items())}
    known = tuple((model, point) for model, point in learned.items() if point is not None)
    return wiring.local_points(wiring.settings(), views)._replace(learned=known)
