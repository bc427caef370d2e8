"""What lists need of a session: its figures, by which they are filtered and sorted."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from schemas.views import ChainView
from streams.core.session_status import State, leading_chain, status_of
from streams.core.until_compaction import (
    NO_POINTS,
    CompactionPoints,
    SessionPoint,
    session_point_of,
    settings_of,
    until_compaction,
)
from streams.serve.views.sessions import SessionKey, decoded

Sort: TypeAlias = Literal["recent", "pressure", "until", "growth", "compactions", "folder"]
"""What a list is sorted by, each in its natural direction: the last active, the fullest, the
nearest to compaction, the fastest growing, the most compacted first; folders by name."""


class ListOrder(NamedTuple):
    """The order of a list: sessions that are active since `live_since_ms` first, if it is set.

    `points` are for the sort `until`: what is known of where compactions begin.
    """

    sort: Sort
    live_since_ms: int | None = None
    points: CompactionPoints = NO_POINTS


_LAST: Final = 1e18
"""The key of a session whose figure is unknown: after all others."""

Rank: TypeAlias = tuple[int, float | str, int, bytes]
"""What a list is sorted by, ascending: 0 for live sessions and 1 for others, the key of the sort,
the last activity; the session comes last, so no two are equal."""


class Summary(NamedTuple):
    """What lists need of a session; `text` is searched, in lower case.

    `leading` is as much of its leading chain as its distance to compaction depends on, together
    with `session_point` and an order's points.
    """

    key: SessionKey
    recent: int
    percent: float | None
    state: State
    model: str | None
    runtime: str | None
    agent: str | None
    folder: str
    cwd: str | None
    compaction_settings: Mapping[str, Any] | None
    leading: ChainView | None
    session_point: SessionPoint | None
    growth_tokens: int | None
    compactions: int
    text: str

    def rank(self, order: ListOrder) -> Rank:
        """Return its rank in a list."""
        is_past = order.live_since_ms is not None and self.recent < order.live_since_ms
        return (int(is_past), self._sort_key(order), -self.recent, _short(self.key.session))

    def _sort_key(self, order: ListOrder) -> float | str:
        match order.sort:
            case "recent":
                return 0.0
            case "pressure":
                return _LAST if self.percent is None else -self.percent
            case "until":
                if self.leading is None:
                    return _LAST
                settings = settings_of(self, order.points)
                until = until_compaction(self.leading, self.session_point, order.points, settings)
                return _LAST if until is None or until.tokens is None else float(until.tokens)
            case "growth":
                return _LAST if self.growth_tokens is None else -float(self.growth_tokens)
            case "compactions":
                return -float(self.compactions)
            case "folder":
                return self.folder[:_MOST_SORTED]


def _short(session: bytes) -> bytes:
    """Return a session, a long one as its beginning and a hash of it: still one of its own."""
    if len(session) <= _MOST_SORTED:
        return session
    return session[:_MOST_SORTED] + hashlib.blake2b(session, digest_size=16).digest()


_MOST_SORTED: Final = 200
"""Sessions and folders are sorted by so much of them: a cursor with it fits into an address."""


UNKNOWN_RUNTIME: Final = "unknown"
"""The filter for sessions whose runtime is unknown."""


class SessionFilter(NamedTuple):
    """Which sessions a list has; None: any. `words`, in lower case, are all in a session's text.

    Or in its title: `titled` are, by word, the sessions whose titles have it; empty without titles.
    """

    state: str | None = None
    model: str | None = None
    runtime: str | None = None
    agent: str | None = None
    min_percent: float | None = None
    words: tuple[str, ...] = ()
    titled: tuple[frozenset[bytes], ...] = ()

    def matches(self, session: Summary) -> bool:
        """Return whether a list with this filter has a session."""
        return (
            (self.state is None or self.state == session.state)
            and (self.model is None or self.model == session.model)
            and (self.runtime is None or self.runtime == (session.runtime or UNKNOWN_RUNTIME))
            and (self.agent is None or self.agent == session.agent)
            and (
                self.min_percent is None
                or (session.percent is not None and session.percent >= self.min_percent)
            )
            and all(
                word in session.text or (self.titled and session.key.session in self.titled[index])
                for index, word in enumerate(self.words)
            )
        )


def summary_of(key: SessionKey, document: bytes) -> Summary:
    """Return what lists need of a session. Raises VersionError."""
    view = decoded(document)
    identity, leading = view.identity, leading_chain(view)
    model = identity.model if leading is None else leading.model or identity.model
    agent, runtime = identity.publisher_agent_id, identity.runtime
    counts = view.compactions
    origin = identity.forked_from
    searched = (view.session_id, identity.cwd, model, agent, identity.task_id, runtime, origin)
    return Summary(
        key=key,
        recent=view.last_ms or 0,
        percent=None if leading is None else leading.used_percent,
        state=status_of(view).settled,
        model=model,
        runtime=runtime,
        agent=agent,
        folder=_folder(identity.cwd or view.session_id),
        cwd=identity.cwd,
        compaction_settings=identity.compaction_settings,
        leading=None if leading is None else _slim(leading),
        session_point=None if leading is None else session_point_of(leading, counts.last),
        growth_tokens=None if leading is None else leading.growth_tokens,
        compactions=counts.manual + counts.automatic + counts.idle + counts.unknown_trigger,
        text="\n".join(text for text in searched if text).lower(),
    )


def _folder(path: str) -> str:
    """Return a folder's name as lists are sorted by it: of a path of any system, in lower case."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()


def _slim(chain: ChainView) -> ChainView:
    """Return a chain with what its distance to compaction depends on only: an index has many."""
    return ChainView(
        chain=chain.chain,
        model=chain.model,
        used_tokens=chain.used_tokens,
        window=chain.window,
        window_source=chain.window_source,
        auto_compact_enabled=chain.auto_compact_enabled,
        auto_compact_threshold=chain.auto_compact_threshold,
    )
