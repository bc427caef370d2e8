"""Brings an over-long line under the limit, the same way wherever lines are read."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from contextgauge.containers import Line
from contextgauge.messages import DeadLetter
from contextgauge.stub import shorten
from schemas.topics import MESSAGE_LIMIT_BYTES, MIB
from streams import codec


def fit(line: Line, limit: int = MESSAGE_LIMIT_BYTES) -> bytes | DeadLetter:
    """Return the line's bytes: as they are, or with stubs where they exceed `limit`.

    What is over the limit and cannot be shortened is a `too_large` dead letter, whatever else is
    wrong with it: that is what the deriver would find. A line of tens of megabytes takes seconds:
    on an event loop, call it in a thread.
    """
    if line.size <= limit:
        return line.value
    why = f"{line.size} bytes; the limit is {limit} ({limit / MIB:g} MiB)"
    if len(line.value) < line.size:
        return DeadLetter("too_large", f"{why}: too large to be read and shortened")
    with _without_cycle_search():
        body = codec.decode(line.value, limit=line.size)
        if isinstance(body, DeadLetter):
            return DeadLetter("too_large", f"{why}; it cannot be shortened: {body.detail}")
        short = shorten(body, line.value, limit, codec.dumps)
        del body
    if short is None:
        return DeadLetter("too_large", f"{why}; what derivation reads of it is too large itself")
    return codec.dumps(short)


@contextmanager
def _without_cycle_search() -> Iterator[None]:
    """Keep the garbage collector from looking for cycles, again and again, among what is parsed.

    JSON holds none, and in a line of millions of small lists the search takes longer than all
    else, with every other thread waiting.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
