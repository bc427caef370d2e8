"""Windows that a reader of this machine knows from elsewhere than a session's messages.

They come below what a message reports, and above the table of names. A size that exceeds one
disproves it, as it does with the table's.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from streams.core.derivation.state import NEW_SESSION, Session

OutsideWindows: TypeAlias = Callable[[str], Mapping[str, int]]
"""Returns the windows that are known of a session, by model, in tokens."""


def with_windows(session: Session | None, windows: Mapping[str, int]) -> Session | None:
    """Return a session that knows these windows; the same one where there is nothing new."""
    before = NEW_SESSION if session is None else session
    facts = before.facts
    if not windows or facts.outside_windows == windows:
        return session
    exceeded = tuple(model for model in facts.exceeded if model not in windows)
    return Session(
        before.sequence,
        before.applied,
        before.last_ms,
        before.known,
        before.chains.copy(),
        before.attempt,
        before.hint,
        before.last_reset,
        facts._replace(outside_windows=dict(windows), exceeded=exceeded),
    )
