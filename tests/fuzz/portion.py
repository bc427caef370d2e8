"""A portion of inputs: derived and folded in episodes, watched for errors, time and memory.

A portion follows from its seed and number alone, so that any of them can be run again: the compiled
product and the pure one give the same digests of each episode's records and views.
"""

import gc
import re
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from random import Random
from typing import Final, NamedTuple

from contextgauge.normalise.signals import InputMessage
from schemas.messages import MESSAGE_LIMIT_BYTES
from tests.fuzz.checked import NOW_MS, CheckedPartition, WrongError
from tests.fuzz.mutation import Mutator
from tests.fuzz.seeds import BOUNDARY

EPISODE: Final = 24
"""Inputs of one episode: enough for a session to be compacted twice."""

_LONG_EPISODE: Final = 480
_SHORT: Final = 0.997
"""The part of the episodes that are not long; in long ones more causes are known than in one piece
of the memory of a session."""

_FOLDED: Final = 0.2
"""The part of the episodes of which the records become views: that takes longest."""

_SAMPLED: Final = 0.0003
"""The part of records and views that are read back and validated though their shape is known."""

_looked_at = set[tuple[object, ...]]()
"""Shapes that were, in this process."""

_LARGE_EVERY: Final = 250
"""Episodes, one of which is short and ends with a large input, whose time and memory are always
measured: of 1 KiB to 256 KiB, now and then up to 2 MiB."""

_BEFORE_LARGE: Final = 8


_MEASURED_BYTES: Final = 1 << 16
_MEASURED: Final = 0.002
"""Time and memory are measured of each larger input, and of one in this part of the episodes."""

_COLLECT_EVERY: Final = 400
_BATCH: Final = 50
"""Episodes that are made before they are run: code and data that are used at once stay in the
processor's cache."""

_SMALL_BYTES: Final = 4_000
"""What counts as bytes of each input, so that the smallest are not the slowest for their size."""
_SLOWEST: Final = 3

CPU_US: Final = 3_000
CPU_US_PER_BYTE: Final = 0.5
MEMORY_BYTES: Final = 300_000
MEMORY_PER_BYTE: Final = 200
"""What one input may cost at most: something, and something for each of its bytes. Most memory for
its bytes takes an array of many digits or empty objects that a record keeps whole: up to 115."""


class Input(NamedTuple):
    """What an `InputMessage` is made of, in the same order: compiled ones pass to no process."""

    value: bytes
    session_hint: str | None = None
    received_ms: int | None = None
    task_id: str | None = None
    publisher_agent_id: str | None = None

    @property
    def size(self) -> int:
        """The bytes of it, about."""
        names = (self.session_hint, self.task_id, self.publisher_agent_id)
        return len(self.value) + sum(len(name) for name in names if name is not None)


class Episode(NamedTuple):
    """Messages that are derived in turn, and what is done with them."""

    messages: list[Input]
    is_large: bool
    folds: bool
    restarts_at: int
    limit_bytes: int


class Failure(NamedTuple):
    """What was wrong, its kind, and the inputs that lead to it."""

    kind: str
    what: str
    inputs: tuple[Input, ...]


class Cost(NamedTuple):
    """What an input took: CPU time and memory, and how large it and the written views were."""

    size: int
    us: float
    peak_bytes: int

    def per_byte(self) -> float:
        """Return the time for each byte, where the smallest inputs count as larger."""
        return self.us / (self.size + CPU_US / CPU_US_PER_BYTE)

    def memory_per_byte(self) -> float:
        """Return the memory for each byte, likewise."""
        return self.peak_bytes / (self.size + MEMORY_BYTES / MEMORY_PER_BYTE)


@dataclass
class Portion:
    """What a portion gave."""

    inputs: int = 0
    input_bytes: int = 0
    records: int = 0
    cpu_s: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    digests: list[int] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    shapes: int = 0
    compared: int = 0
    """Inputs that the pure product was given too."""


class Fuzzer:
    """Runs the episodes of one portion."""

    def __init__(self, seed: int, number: int) -> None:
        self.chance = Random(f"{seed} {number}")
        self.mutator = Mutator(self.chance)
        self.portion = Portion()
        self._shapes: set[tuple[object, ...]] = set()
        self._samples = Random(f"{seed} {number} samples")
        self._novel = False
        self._slowest = (0.0, 0)
        """Of an episode: the nanoseconds for each byte, and which message took them."""
        self._slow: list[tuple[float, list[Input], bool]] = []

    def run(self, inputs: int) -> Portion:
        """Run episodes of so many inputs, at least."""
        began = time.process_time()
        gc.collect()
        gc.freeze()
        was_on = gc.isenabled()
        gc.disable()
        made = episodes = 0
        while made < inputs:
            batch = list[Episode]()
            while made < inputs and len(batch) < _BATCH:
                episodes += 1
                batch.append(self._made(is_large=episodes % _LARGE_EVERY == 0))
                made += len(batch[-1].messages)
            batch.sort(key=attrgetter("folds"))
            for episode in batch:
                self._run(episode)
            if episodes % _COLLECT_EVERY == 0:
                gc.collect()
        for _, messages, folds in self._slow:
            self._measure(messages, folds=folds)
        if was_on:
            gc.enable()
        self.portion.cpu_s = time.process_time() - began
        self.portion.shapes = len(self._shapes)
        return self.portion

    def _thorough(self, shape: tuple[object, ...]) -> bool:
        """Return whether this is to be looked at closely: it is new, or one of many."""
        if shape not in self._shapes:
            self._shapes.add(shape)
            self._novel = True
            if shape not in _looked_at:
                _looked_at.add(shape)
                return True
        return self._samples.random() < _SAMPLED

    def _messages(self) -> list[Input]:
        chance, mutator = self.chance.random, self.mutator
        story = mutator.story()
        begin = int(chance() * max(1, len(story) - EPISODE + 1))
        hint = None if chance() < 0.02 else mutator.one_of(_HINTS)
        dressed = chance() < 0.1
        messages = []
        for place in range(EPISODE if chance() < _SHORT else _LONG_EPISODE):
            own = story[begin + place] if begin + place < len(story) and chance() < 0.8 else None
            value = mutator.message(own)
            if dressed:
                messages.append(
                    Input(
                        value,
                        mutator.one_of(_HINTS),
                        mutator.one_of(_RECEIVED),
                        mutator.one_of(_HINTS),
                        mutator.one_of(_HINTS),
                    )
                )
            else:
                messages.append(Input(value, hint))
        return messages

    def _made(self, *, is_large: bool) -> Episode:
        messages, chance = self._messages(), self.chance.random
        if is_large:
            size = int(2 ** (10 + 8 * chance())) * (8 if chance() < 0.06 else 1)
            messages[int(chance() * _BEFORE_LARGE) :] = [
                Input(self.mutator.large(size), "a-session")
            ]
        return Episode(
            messages,
            is_large=is_large,
            folds=is_large or chance() < _FOLDED,
            restarts_at=int(chance() * len(messages) * 8),
            limit_bytes=2_000 if chance() < 0.01 else MESSAGE_LIMIT_BYTES,
        )

    def _run(self, episode: Episode) -> None:
        portion, messages, folds = self.portion, episode.messages, episode.folds
        partition = CheckedPartition(self._thorough, folds=folds, limit_bytes=episode.limit_bytes)
        self._slowest = (0.0, 0)
        try:
            self._take(partition, messages, episode.restarts_at)
            partition.finish()
        except Exception as error:  # noqa: BLE001 -- whatever it is: it is what is looked for
            what = "".join(traceback.format_exception(error)[-6:])
            portion.failures.append(Failure(kind_of(error), what, tuple(messages)))
        sizes = [len(message.value) for message in messages]
        portion.inputs += len(messages)
        portion.input_bytes += sum(sizes)
        portion.records += partition.records
        portion.digests.append(partition.digest)
        if episode.is_large:
            self._measure(messages, folds=folds)
        else:
            place = self._samples.random()
            largest = max(sizes)
            if largest > _MEASURED_BYTES:
                self._measure(messages[: sizes.index(largest) + 1], folds=folds)
            elif place < _MEASURED:
                self._measure(messages[: int(place / _MEASURED * len(messages)) + 1], folds=folds)
        took, index = self._slowest
        self._note_slow(took, messages[: index + 1], folds=folds)

    def _take(self, partition: CheckedPartition, messages: list[Input], restarts_at: int) -> None:
        """Derive an episode's messages, in which `BOUNDARY` becomes the id of the last one."""
        boundary: bytes | None = None
        outcomes, clock, take = self.portion.outcomes, time.thread_time_ns, partition.take
        slowest = 0.0
        began = clock()
        for index, generated in enumerate(messages):
            message = generated
            if boundary is not None and BOUNDARY in message.value:
                message = message._replace(value=message.value.replace(BOUNDARY, boundary))
                messages[index] = message
            self._novel = False
            result = take(InputMessage(*message))
            ended = clock()
            took = (ended - began) / (len(message.value) + _SMALL_BYTES)
            began = ended
            if result.dead is not None:
                outcomes[result.dead.reason] += 1
            for record in result.records:
                outcomes[record.kind] += 1
                if record.kind == "compact_boundary":
                    boundary = record.id.encode()
            if self._novel:
                self.mutator.keep(message.value)
                began = clock()
            elif took > slowest:
                slowest, self._slowest = took, (took, index)
            if index == restarts_at:
                partition.restart()
                began = clock()

    def _note_slow(self, took: float, messages: list[Input], *, folds: bool) -> None:
        if len(self._slow) < _SLOWEST or took > self._slow[-1][0]:
            self._slow.append((took, messages, folds))
            self._slow.sort(key=lambda item: -item[0])
            del self._slow[_SLOWEST:]

    def _measure(self, messages: Sequence[Input], *, folds: bool) -> None:
        """Measure the last of some messages alone, after the others."""
        cost = measure(messages, folds=folds)
        if cost is None:
            return
        self.portion.costs.append(cost)
        if cost.us > _most_us(cost.size):
            what = f"{cost.us:.0f} µs for {cost.size} bytes"
            self.portion.failures.append(Failure("slow", what, tuple(messages)))
        if cost.peak_bytes > MEMORY_BYTES + MEMORY_PER_BYTE * cost.size:
            what = f"{cost.peak_bytes} bytes of memory for {cost.size} bytes"
            self.portion.failures.append(Failure("memory", what, tuple(messages)))


def run_portion(task: tuple[int, int, int]) -> Portion:
    """Run a portion: its seed, its number, and how many inputs it has."""
    seed, number, inputs = task
    return Fuzzer(seed, number).run(inputs)


def measure(messages: Sequence[Input], *, folds: bool) -> Cost | None:
    """Return what the last of some messages costs after the others; None where one fails.

    Its CPU time is the first of three that is within the bound, else the least.
    """
    *before, last = messages
    final, bound_s = InputMessage(*last), 0.0
    least_s, peak = 1e9, 0
    for attempt in range(4):
        if attempt < 3 and least_s < bound_s:
            continue
        partition = CheckedPartition(lambda _: False, folds=folds)
        try:
            for message in before:
                partition.take(InputMessage(*message))
            partition.write_views()
            if attempt == 3:
                tracemalloc.start()
            began = time.thread_time()
            partition.take(final)
            partition.write_views()
            if attempt < 3:
                least_s = min(least_s, time.thread_time() - began)
                bound_s = _most_us(last.size + partition.written_bytes) / 1e6
            else:
                peak = tracemalloc.get_traced_memory()[1]
        except Exception:  # noqa: BLE001 -- it is reported where it was first seen
            return None
        finally:
            tracemalloc.stop()
    return Cost(last.size + partition.written_bytes, least_s * 1e6, peak)


def _most_us(size: int) -> float:
    return CPU_US + CPU_US_PER_BYTE * size


def kind_of(error: BaseException) -> str:
    """Return what an error is, and where it was raised."""
    if isinstance(error, WrongError):
        return re.sub(r"[0-9a-f]*[0-9][0-9a-f-]*", "#", str(error))[:80]
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__} in {place}"


def failure_of(messages: Sequence[Input]) -> Failure | None:
    """Run some messages, everything of them looked at closely; return what is wrong."""
    partition = CheckedPartition(lambda _: True, folds=True)
    try:
        for message in messages:
            partition.take(InputMessage(*message))
        partition.restart()
        partition.finish()
    except Exception as error:  # noqa: BLE001 -- as above
        what = "".join(traceback.format_exception(error)[-6:])
        return Failure(kind_of(error), what, tuple(messages))
    return None


def shrink(failure: Failure) -> Failure:
    """Return the failure with as few messages as still show it."""
    messages, index = list(failure.inputs), 0
    if (first := failure_of(messages)) is None:
        return failure
    while index < len(messages):
        fewer = messages[:index] + messages[index + 1 :]
        again = failure_of(fewer)
        if again is not None and again.kind == first.kind:
            messages, first = fewer, again
        else:
            index += 1
    return first


_HINTS: Final = (
    "a-session", "a-session", "b", "", None, "main", "s" * 16_384, "s" * 16_385, "n" * 1_024,
    "\ud800", "a\x00b", "\u202e", "🦊", '"', "{", "%2F/..",
)  # fmt: skip
_RECEIVED: Final = (
    None,
    None,
    NOW_MS,
    0,
    -1,
    -(2**63),
    2**63 - 1,
    1_577_836_799_999,
    4_133_980_800_000,
)
