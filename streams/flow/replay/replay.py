"""The whole derivation in one process, without a broker: lines in, records out, in order."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from contextgauge.containers import Line
from contextgauge.delivery.shorten import fit
from contextgauge.normalise.signals import InputMessage
from schemas.messages import DeadLetter
from schemas.records import Record
from schemas.topics import MESSAGE_LIMIT_BYTES
from streams.flow.derive.deriver import Deriver


class Derived(NamedTuple):
    """What one block of lines gave."""

    records: list[Record]
    dead: list[tuple[Line, DeadLetter]]


def replay(
    deriver: Deriver, blocks: Iterable[Sequence[Line]], limit_bytes: int = MESSAGE_LIMIT_BYTES
) -> Iterator[Derived]:
    """Derive block after block; total: a malformed line is a dead letter in its block.

    A line over the limit is shortened as `publish` does it.
    """
    for block in blocks:
        derived = Derived([], [])
        for line in block:
            value = line.value
            if line.size > limit_bytes:
                fitted = fit(line, limit_bytes)
                if isinstance(fitted, DeadLetter):
                    derived.dead.append((line, fitted))
                    continue
                value = fitted
            taken = deriver.derive(InputMessage(value, line.session_hint))
            if taken.records:
                derived.records.extend(taken.records)
            elif taken.dead is not None:
                derived.dead.append((line, taken.dead))
        yield derived
