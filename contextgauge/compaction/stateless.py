"""`compact`: one call that makes a conversation fit, for a loop that keeps its own messages."""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final, TypeVar

from contextgauge.compaction.carried.unmarked_text import former_text
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import FormatName, Message
from contextgauge.records import Json

_T = TypeVar("_T")

_NO_CALL: Final = ModelCall()


def compact(
    messages: Sequence[object],
    format: FormatName,  # noqa: A002 -- its name everywhere
    window_tokens: int | None = None,
    *,
    call: ModelCall = _NO_CALL,
    compactor: Compactor | None = None,
    now: bool = False,
) -> list[Json]:
    """Return the messages to send next, in the same format: compacted where that is due.

    Nothing is kept between calls: what was returned may be stored, continued and given again, and
    its compaction is found in it. `call` has the rest of the request, `window_tokens` the model's
    window in its place; `compactor` a profile and a summariser other than the default. With `now`
    the size does not matter. Messages that stay are the objects that were given. Raises
    ConfigError, and NoSummaryError where a summariser fails with `now`.
    """
    history = History(with_fresh_usage(read_messages(messages, format)))
    if window_tokens is not None:
        call = replace(call, window_tokens=window_tokens)
    compactor = compactor or Compactor()
    if now:
        finished(compactor.compact(history, call))
        return write_messages(history.active, format)
    return write_messages(finished(compactor.before_call(history, call)).messages, format)


def with_fresh_usage(messages: list[Message]) -> list[Message]:
    """Return the messages without sizes that were reported before a compaction that is in them.

    Sizes only grow until a compaction: the first of the smaller conversation is below the last one
    of the larger. Where none is, all are of the larger one.
    """
    turn = next((each for each in messages if each.role == "user"), None)
    if turn is None or (turn.compaction is None and former_text(messages) is None):
        return messages
    fresh_from, last = len(messages), 0
    for index, each in enumerate(messages):
        if each.usage is not None:
            fresh_from = index if each.usage.context < last else fresh_from
            last = each.usage.context
    return [
        each if index >= fresh_from else replace(each, usage=None)
        for index, each in enumerate(messages)
    ]


def finished(work: Coroutine[object, object, _T]) -> _T:
    """Return what a coroutine returns: run here, or where a loop runs already in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_run, work).result()


def _run(work: Coroutine[object, object, _T]) -> _T:
    """Run to the end. `asyncio.run` would write out the whole result, to restore a signal."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
