"""`compact`: one call that makes a conversation fit, for a loop that keeps its own messages."""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from contextgauge.compaction.carried.unmarked_text import former_text
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.linked_messages import is_server_compaction
from contextgauge.compaction.engine.request_size import NO_CALL, ModelCall
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import FormatName, Message
from contextgauge.errors import ConfigError
from contextgauge.records import Json

_T = TypeVar("_T")


def compact(
    messages: Sequence[object],
    format: FormatName,  # noqa: A002 -- its name everywhere
    window_tokens: int | None = None,
    *,
    call: ModelCall = NO_CALL,
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
    if window_tokens is not None:
        call = replace(call, window_tokens=window_tokens)
    window: object = call.window_tokens
    if window is not None and not (isinstance(window, int) and window > 0):
        raise ConfigError(f"window_tokens must be a number of tokens, 1 or more, not {window!r}")
    call = replace(call, recall=False)  # nothing is kept that could be recalled
    history = History(with_fresh_usage(read_messages(messages, format)))
    compactor = compactor or Compactor()
    if now:
        finished(compactor.compact(history, call))
        return write_messages(history.active, format)
    return write_messages(finished(compactor.before_call(history, call)).messages, format)


def with_fresh_usage(messages: list[Message]) -> list[Message]:
    """Return the messages without the reported sizes that are not of these messages.

    Sizes only grow until a compaction. Where one is in the messages, those after the last fall are
    of them, and where no size falls, none is. Else the messages are whole, and the sizes from the
    first fall on are of compacted requests.
    """
    falls = _falls(messages)
    if _is_compacted(messages):
        fresh = range(falls[-1] if falls else len(messages), len(messages))
    else:
        fresh = range(falls[0] if falls else len(messages))
    return [
        each if index in fresh or each.usage is None else replace(each, usage=None)
        for index, each in enumerate(messages)
    ]


def _is_compacted(messages: list[Message]) -> bool:
    turn = next((each for each in messages if each.role == "user"), None)
    return turn is not None and (turn.compaction is not None or former_text(messages) is not None)


def _falls(messages: list[Message]) -> list[int]:
    """Return where a reported size is less than the last one and what was added to it.

    Less by more than an estimate is wrong, and than the API itself leaves out, as of thoughts. A
    compaction of the API's own is no fall.
    """
    falls, last, added = [], 0, 0
    for index, each in enumerate(messages):
        if each.usage is not None:
            missing = last + added - each.usage.context
            if missing > max(added // 2, last // 10):
                falls.append(index)
            last, added = each.usage.context, 0
        if is_server_compaction(each):
            last = added = 0
        added += ESTIMATE.message(each)
    return falls


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
