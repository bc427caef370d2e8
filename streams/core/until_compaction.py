"""How far a chain is from its next automatic compaction, also where no runtime reports it.

The best source that is known wins:

    reported         the runtime's own threshold
    configured       a setting of the reader
    settings         the runtime's own settings, unless the session did otherwise repeatedly
    learned_session  where the chain's last automatic compaction began
    learned_model    where automatic compactions of the chain's model begin, of all sessions

What is learned is an estimate, and so is a percentage of a doubtful window. Estimates are made by
readers, from views and aggregates, and stand in no record and no view. The status line imports this
at every prompt, so it imports nothing that takes long.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from contextgauge.runtime_settings import ExpectedPoint, RuntimeSettings
from streams.core.runtime_settings import expected, read_settings

if TYPE_CHECKING:
    from schemas.views import ChainView, CompactionBrief, SessionView

PointSource: TypeAlias = Literal[
    "reported", "configured", "settings", "learned_session", "learned_model"
]

WindowDoubt: TypeAlias = Literal["assumed", "contradicted"]
"""Why a window may be wrong: it is assumed for want of any other, or it is that of the model's name
and the chain's automatic compactions come far below it (R33)."""

_SPREAD_PERCENT: Final = 15
"""Sizes at which runtimes compact one window differ by up to 11 % in captures. A size or a window
that contradicts a learned point by more than this disproves it: the window or model is another."""

_LEAST_PERCENT: Final = 50
"""No runtime compacts below this part of its window by default: a learned point below it is of a
smaller window, unless the chain itself was compacted there repeatedly."""

_REPEATED: Final = 2
"""Automatic compactions in a row at about one size that are more than chance: they beat what is
plausible of runtimes in general (R33)."""

_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%\Z")
_WHOLE: Final = 100

_BOUNDARIES: Final = frozenset("-@:_")
"""Where the beginning of a model's name ends, as in the table of windows."""


class Threshold(NamedTuple):
    """A configured point: tokens, or a percentage of the window."""

    tokens: int | None = None
    percent: float | None = None


class CompactionPoints(NamedTuple):
    """What a reader knows of where compactions begin, by model; hashable, so it can be cached by.

    `configured` are by the beginnings of names, `learned` by whole names, in tokens. `settings` are
    the runtimes' own on this machine, by runtime and folder.
    """

    configured: tuple[tuple[str, Threshold], ...] = ()
    learned: tuple[tuple[str, int], ...] = ()
    settings: tuple[tuple[tuple[str | None, str | None], RuntimeSettings], ...] = ()


NO_POINTS: Final = CompactionPoints()


def parse_threshold(value: object) -> Threshold | None:
    """Read a configured point: tokens above 0, or text such as "83.5%"; None for anything else."""
    if type(value) is int and value > 0:
        return Threshold(tokens=value)
    match = _PERCENT.match(value) if isinstance(value, str) else None
    percent = float(match[1]) if match else 0.0
    return Threshold(percent=percent) if 0 < percent <= _WHOLE else None


class SessionPoint(NamedTuple):
    """Where a chain's last automatic compaction began, in tokens.

    `repeated`: so did those before it, under the model and the window that the chain has now.
    """

    tokens: int
    repeated: bool = False


class SettingsPlace(Protocol):
    """Which runtime a session is of, and its folder: what its settings depend on."""

    @property
    def runtime(self) -> str | None:
        """The runtime's name."""

    @property
    def cwd(self) -> str | None:
        """The folder."""

    @property
    def compaction_settings(self) -> Mapping[str, Any] | None:
        """What is set there, where its publisher knows it."""


class UntilCompaction(NamedTuple):
    """How far a chain is from its next automatic compaction.

    `tokens` and `responses` are what is left, None where it is unknown, negative where the point
    was passed. `threshold_tokens` is the size at which it is expected. `estimated`: it is
    learned, or a percentage of a doubtful window. `setting` names the runtime's settings that say
    so, as people write it.
    """

    tokens: int | None
    responses: int | None
    threshold_tokens: int
    source: PointSource
    estimated: bool
    setting: str | None = None


def until_compaction(
    chain: "ChainView",
    session_point: SessionPoint | None,
    points: CompactionPoints = NO_POINTS,
    settings: RuntimeSettings | None = None,
) -> UntilCompaction | None:
    """Return how far a chain is from compaction; None where it is off or nothing is known.

    `session_point` is where its last automatic compaction began (`session_point_of`), `settings`
    are those of its session (`settings_of`).
    """
    if chain.auto_compact_enabled is False:
        return None
    if chain.auto_compact_threshold is not None:
        return _until(chain, chain.auto_compact_threshold, "reported", estimated=False)
    threshold = _configured(chain, points)
    if threshold is not None and threshold.tokens is not None:
        return _until(chain, threshold.tokens, "configured", estimated=False)
    if threshold is not None and threshold.percent is not None and chain.window is not None:
        point = int(chain.window * threshold.percent / 100)
        is_doubtful = window_doubt(chain, session_point) is not None
        return _until(chain, point, "configured", estimated=is_doubtful)
    own = _expected(chain, settings)
    if own is not None and own.tokens is None and session_point is None:
        return None  # switched off, and the session did nothing else
    if own is not None and own.tokens is not None and _agrees(chain, own.tokens, session_point):
        is_other = session_point is not None and not _is_about(session_point.tokens, own.tokens)
        until = _until(chain, own.tokens, "settings", estimated=own.estimated or is_other)
        return until._replace(setting=own.source)
    if session_point is not None and _fits(
        chain, session_point.tokens, is_repeated=session_point.repeated
    ):
        return _until(chain, session_point.tokens, "learned_session", estimated=True)
    learned = dict(points.learned).get(chain.model) if chain.model else None
    if learned is not None and _fits(chain, learned):
        return _until(chain, learned, "learned_model", estimated=True)
    return None


def settings_of(identity: SettingsPlace, points: CompactionPoints) -> RuntimeSettings | None:
    """Return the settings of a session: as published, else as the reader knows its folder's."""
    if identity.compaction_settings:
        return read_settings(identity.runtime, identity.compaction_settings)
    place = (identity.runtime, identity.cwd)
    return next((settings for known, settings in points.settings if known == place), None)


def switched_off_by(
    chain: "ChainView", session_point: SessionPoint | None, settings: RuntimeSettings | None
) -> str | None:
    """Return the settings that switch automatic compaction off; None: nothing says so.

    What the runtime reports, and what the chain did, comes first.
    """
    if chain.auto_compact_enabled is not None or chain.auto_compact_threshold is not None:
        return None
    own = _expected(chain, settings)
    is_off = own is not None and own.tokens is None and session_point is None
    return own.source if own is not None and is_off else None


def _expected(chain: "ChainView", settings: RuntimeSettings | None) -> ExpectedPoint | None:
    if settings is None:
        return None
    is_reported = chain.window_source in ("configured", "runtime")
    return expected(settings, chain.model, chain.window, is_reported=is_reported)


def _agrees(chain: "ChainView", point: int, session_point: SessionPoint | None) -> bool:
    """Return whether what settings say can be so: neither the size nor repetition disproves it."""
    used = chain.used_tokens
    if used is not None and used * _WHOLE > point * (_WHOLE + _SPREAD_PERCENT):
        return False
    is_repeated = session_point is not None and session_point.repeated
    return not is_repeated or session_point is None or _is_about(session_point.tokens, point)


def session_point_of(chain: "ChainView", last: "Iterable[CompactionBrief]") -> SessionPoint | None:
    """Return where a chain's last automatic compaction of known size began.

    The newest of `last` comes last. That of an idle session teaches nothing. Those that were copied
    with the history count: the conversation is the same.
    """
    sizes = [
        (brief.tokens_before, (brief.model, brief.window) == (chain.model, chain.window))
        for brief in last
        if brief.chain == chain.chain
        and brief.outcome == "succeeded"
        and brief.trigger == "auto"
        and brief.idle_ms is None
        and brief.tokens_before is not None
    ]
    if not sizes:
        return None
    point = sizes[-1][0]
    alike = takewhile(lambda each: each[1] and _is_about(each[0], point), reversed(sizes))
    return SessionPoint(point, repeated=sum(1 for _ in alike) >= _REPEATED)


def window_doubt(chain: "ChainView", session_point: SessionPoint | None) -> WindowDoubt | None:
    """Return why a chain's window may be wrong; None where it is as good as its source."""
    if chain.window_source == "default":
        return "assumed"
    if chain.window_source != "catalog" or chain.window is None or session_point is None:
        return None
    is_below = session_point.tokens * _WHOLE < chain.window * _LEAST_PERCENT
    return "contradicted" if session_point.repeated and is_below else None


def _is_about(size: int, other: int) -> bool:
    """Return whether two sizes differ by no more than those of one window do."""
    return abs(size - other) * _WHOLE <= max(size, other) * _SPREAD_PERCENT


def models_to_learn(view: "SessionView") -> set[str]:
    """Return the models of a session's chains whose threshold no runtime reports."""
    return {
        chain.model
        for chain in view.chains.values()
        if chain.model is not None and chain.auto_compact_threshold is None
    }


def usual_point(aggregates: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the median size at which automatic compactions began, off by at most 2 %.

    `aggregates` are a model's, of each partition, as documents; None where none was counted.
    """
    buckets: Counter[int] = Counter()
    least: list[int] = []
    most: list[int] = []
    for document in aggregates:
        sizes = document["automatic"]["pre_tokens"]
        if sizes["count"]:
            buckets.update({int(edge): count for edge, count in sizes["buckets"].items()})
            least.append(sizes["min"])
            most.append(sizes["max"])
    half, seen = (buckets.total() + 1) // 2, 0
    for edge in sorted(buckets):
        seen += buckets[edge]
        if seen >= half:
            # Edges grow by 51/49: 2 % below the upper edge is the middle of a bucket.
            return min(max(edge * 49 // 50, min(least)), max(most))
    return None


def _until(
    chain: "ChainView", point: int, source: PointSource, *, estimated: bool
) -> UntilCompaction:
    used, growth = chain.used_tokens, chain.growth_tokens
    left = None if used is None else point - used
    responses = None if left is None or growth is None else left // growth
    return UntilCompaction(left, responses, point, source, estimated)


def _configured(chain: "ChainView", points: CompactionPoints) -> Threshold | None:
    """Return the configured point of a chain's model, by the longest name that it begins with."""
    model = chain.model or ""
    fitting = [
        each
        for each in points.configured
        if model.startswith(each[0]) and (model[len(each[0]) :][:1] or "-") in _BOUNDARIES
    ]
    return max(fitting, key=lambda each: len(each[0]))[1] if fitting else None


def _fits(chain: "ChainView", point: int, *, is_repeated: bool = False) -> bool:
    """Return whether a learned point can be that of the chain's window as it is now.

    An assumed window may be too large, so it disproves no point that is small. Nor does any where
    the point is what this chain did repeatedly under that window.
    """
    window, used = chain.window, chain.used_tokens
    if window is not None and point * 100 > window * (100 + _SPREAD_PERCENT):
        return False
    is_assumed = is_repeated or chain.window_source == "default"
    if window is not None and not is_assumed and point * 100 < window * _LEAST_PERCENT:
        return False
    return used is None or used * 100 <= point * (100 + _SPREAD_PERCENT)
