"""What the caller's own functions are called with, so that none of them breaks a compaction.

What one raises is logged, and the engine goes on as if it were not there; a compaction that
`confirm` could not confirm is declined, a summary that `review` could not review refused.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from contextgauge.compaction.counting import ESTIMATE, Counter
from contextgauge.compaction.displays import log_line
from contextgauge.compaction.events import (
    CompactionDone,
    CompactionNotDone,
    CompactionStarting,
    EngineEvent,
    Hooks,
    answer_of,
)
from contextgauge.compaction.messages import Message
from contextgauge.errors import ConfigError

_logger: Final = logging.getLogger("contextgauge.compaction")

_T = TypeVar("_T")


class Callbacks:
    """The hooks of a compactor, and its look-up of windows."""

    def __init__(self, hooks: Hooks, window_of: Callable[[str], int | None]) -> None:
        self._hooks = hooks
        self._window_of = window_of

    def emit(self, event: EngineEvent) -> None:
        """Report an event, where the caller takes them; log what became of a compaction."""
        if isinstance(event, CompactionDone):
            _logger.info(log_line(event.receipt))
        elif isinstance(event, CompactionNotDone):
            _logger.warning("not compacted: %s", event.reason)
        on_event = self._hooks.on_event
        if on_event is not None:
            _called("on_event", lambda: on_event(event), None)

    def window_of(self, model: str) -> int | None:
        """Look a model's window up; None where it is unknown."""
        return _called("window_of", lambda: self._window_of(model), None)

    def restored(self) -> Sequence[str]:
        """Return the texts that follow a summary."""
        restore = self._hooks.restore
        return () if restore is None else _called("restore", lambda: tuple(restore()), ())

    async def confirmed(self, starting: CompactionStarting) -> bool:
        """Return whether an automatic compaction may begin. Raises ConfigError."""
        confirm = self._hooks.confirm
        return confirm is None or bool(await _awaited("confirm", lambda: confirm(starting)))

    @property
    def review(self) -> Callable[[str], Awaitable[str | None]] | None:
        """What a summary is shown to before it is used; None where no caller wants to see it."""
        return None if self._hooks.review is None else self._reviewed

    async def _reviewed(self, text: str) -> str | None:
        review = self._hooks.review
        if review is None:
            return text
        answer: object = await _awaited("review", lambda: review(text))
        if answer is None or isinstance(answer, str):
            return answer
        _logger.error("review returned %s, not a text or None", type(answer).__name__)
        return None


class CarefulCounter:
    """A caller's counter, and the estimate of what it cannot count."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        tokens = _called("counter", lambda: self._counter.text(text), None)
        return ESTIMATE.text(text) if tokens is None else tokens

    def message(self, message: Message) -> int:
        """Return the tokens of a message."""
        tokens = _called("counter", lambda: self._counter.message(message), None)
        return ESTIMATE.message(message) if tokens is None else tokens


def _called(name: str, callback: Callable[[], _T], otherwise: _T) -> _T:
    try:
        return callback()
    except Exception:
        _logger.exception("%s raised an error", name)
        return otherwise


async def _awaited(name: str, callback: Callable[[], Awaitable[_T]]) -> _T | None:
    """Wait for an answer; None: an error. Raises ConfigError where it is no async function."""
    try:
        return await answer_of(name, callback())
    except ConfigError:
        raise
    except Exception:
        _logger.exception("%s raised an error", name)
        return None
