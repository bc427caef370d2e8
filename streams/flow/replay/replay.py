"""The whole derivation in one process, without a broker: lines in, records out, in order."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from contextgauge.containers import Line
from contextgauge.delivery.shorten import fit
from contextgauge.normalise.signals import InputMessage
from schemas.messages import DeadLetter
from schemas.records import Record
from schemas.topics import MESSAGE_LIMIT_BYTES
from streams.flow.derive.deriver import Deriver, DeriveResult, settings_of


class Derived(NamedTuple):
    """What one block of lines gave."""

    records: list[Record]
    dead: list[tuple[Line, DeadLetter]]


def replay(
    deriver: Deriver, blocks: Iterable[Sequence[Line]], limit_bytes: int = MESSAGE_LIMIT_BYTES
) -> Iterator[Derived]:
    """Derive block after block; total: a malformed line is a dead letter in its block."""
    for block in blocks:
        derived = Derived([], [])
        for line in block:
            taken = derive_line(deriver, line, limit_bytes)
            if taken.records:
                derived.records.extend(taken.records)
            elif taken.dead is not None:
                derived.dead.append((line, taken.dead))
        deriver.end_steps()
        yield derived


def derive_line(
    deriver: Deriver, line: Line, limit_bytes: int, received_ms: int | None = None
) -> DeriveResult:
    """Derive one line; one over the limit is shortened as `publish` does it.

    `received_ms` is when it was seen, if it was written just then.
    """
    value = line.value
    if line.size > limit_bytes:
        fitted = fit(line, limit_bytes)
        if isinstance(fitted, DeadLetter):
            return DeriveResult(None, (), fitted)
        value = fitted
    return deriver.derive(
        InputMessage(
            value,
            line.session_hint,
            received_ms,
            thread_id=line.thread_id,
            inherited=line.inherited,
            settings=settings_of(line.settings),
        )
    )
