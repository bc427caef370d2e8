"""How far a chain is from its next automatic compaction, also where no runtime reports it.

The best source that is known wins:

    reported         the runtime's own threshold
    configured       a setting of the reader
    learned_session  where the chain's last automatic compaction began
    learned_model    where automatic compactions of the chain's model begin, of all sessions

What is learned is an estimate. It is made by readers, from views and aggregates, and stands in no
record and no view. The status line imports this at every prompt, so it imports nothing that takes
long.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from schemas.views import ChainView, CompactionBrief, SessionView

PointSource: TypeAlias = Literal["reported", "configured", "learned_session", "learned_model"]

LEARNED: Final[frozenset[PointSource | None]] = frozenset({"learned_session", "learned_model"})
"""The sources that are estimates."""

_SPREAD_PERCENT: Final = 15
"""Sizes at which runtimes compact one window differ by up to 11 % in captures. A size or a window
that contradicts a learned point by more than this disproves it: the window or model is another."""


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

    `configured` are by the beginnings of names, `learned` by whole names, in tokens.
    """

    configured: tuple[tuple[str, Threshold], ...] = ()
    learned: tuple[tuple[str, int], ...] = ()


NO_POINTS: Final = CompactionPoints()


def parse_threshold(value: object) -> Threshold | None:
    """Read a configured point: tokens above 0, or text such as "83.5%"; None for anything else."""
    if type(value) is int and value > 0:
        return Threshold(tokens=value)
    match = _PERCENT.match(value) if isinstance(value, str) else None
    percent = float(match[1]) if match else 0.0
    return Threshold(percent=percent) if 0 < percent <= _WHOLE else None


class UntilCompaction(NamedTuple):
    """How far a chain is from its next automatic compaction.

    `tokens` and `responses` are what is left, None where it is unknown; negative only where the
    point is not learned. `threshold_tokens` is the size at which it is expected.
    """

    tokens: int | None
    responses: int | None
    threshold_tokens: int
    source: PointSource
    estimated: bool


def until_compaction(
    chain: "ChainView", session_point: int | None, points: CompactionPoints = NO_POINTS
) -> UntilCompaction | None:
    """Return how far a chain is from compaction; None where it is off or nothing is known.

    `session_point` is where its last automatic compaction began (`session_point_of`).
    """
    if chain.auto_compact_enabled is False:
        return None
    if chain.auto_compact_threshold is not None:
        return _until(chain, chain.auto_compact_threshold, "reported")
    configured = _configured(chain, points)
    if configured is not None:
        return _until(chain, configured, "configured")
    if session_point is not None and _fits(chain, session_point):
        return _until(chain, session_point, "learned_session")
    learned = dict(points.learned).get(chain.model) if chain.model else None
    if learned is not None and _fits(chain, learned):
        return _until(chain, learned, "learned_model")
    return None


def session_point_of(chain: str, last: "Iterable[CompactionBrief]") -> int | None:
    """Return where a chain's last automatic compaction began; the newest of `last` comes last."""
    sizes = [
        brief.tokens_before
        for brief in last
        if brief.chain == chain and brief.outcome == "succeeded" and brief.trigger == "auto"
    ]
    return sizes[-1] if sizes else None


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


def _until(chain: "ChainView", point: int, source: PointSource) -> UntilCompaction:
    estimated = source in LEARNED
    used, growth = chain.used_tokens, chain.growth_tokens
    left = None if used is None else point - used
    if left is not None and estimated:
        left = max(left, 0)
    responses = None if left is None or growth is None else left // growth
    return UntilCompaction(left, responses, point, source, estimated)


def _configured(chain: "ChainView", points: CompactionPoints) -> int | None:
    """Return the configured point of a chain's model, by the longest name that it begins with."""
    model = chain.model or ""
    fitting = [
        each
        for each in points.configured
        if model.startswith(each[0]) and (model[len(each[0]) :][:1] or "-") in _BOUNDARIES
    ]
    if not fitting:
        return None
    _, threshold = max(fitting, key=lambda each: len(each[0]))
    if threshold.percent is None or chain.window is None:
        return threshold.tokens
    return int(chain.window * threshold.percent / 100)


def _fits(chain: "ChainView", point: int) -> bool:
    """Return whether a learned point can be that of the chain's window as it is now."""
    limit = point * (100 + _SPREAD_PERCENT) // 100
    is_small_enough = chain.window is None or point * 100 <= chain.window * (100 + _SPREAD_PERCENT)
    return is_small_enough and (chain.used_tokens is None or chain.used_tokens <= limit)
