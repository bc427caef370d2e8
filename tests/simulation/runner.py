"""Runs seeds, and finds the smallest schedule that still shows what one of them found."""

import asyncio
import contextlib
import gc
import multiprocessing
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import pytest
import structlog

from streams import codec
from streams.flow.common import membership
from streams.flow.derive import deriver, group_offsets
from streams.flow.derive.deriver import Deriver
from streams.flow.derive.partition_state import PartitionState
from streams.flow.project import fold
from tests.simulation import memory
from tests.simulation.control import Control
from tests.simulation.inputs import INPUTS, prepare
from tests.simulation.pipeline import Pipeline
from tests.simulation.process import QUIET
from tests.simulation.schedule import Schedule

_MOST_TRIES = 600
"""Runs that shrinking one schedule may take."""

_FORK = multiprocessing.get_context("fork")

Trace = Callable[[str], None]


@contextlib.contextmanager
def simulating() -> Iterator[None]:
    """Take what costs time and shows nothing out of the product, as long as the context lasts.

    Its logs, its own collections of garbage, asyncio's list of all tasks, and nine of ten commits
    of group offsets, from which nothing is ever read. The frames of killed processes complain
    when they are collected: no one hears that.
    """
    all_tasks: Any = asyncio.tasks._all_tasks  # type: ignore[attr-defined]  # noqa: SLF001 -- no other way
    if "add" in vars(all_tasks):
        yield  # inside of another one
        return
    was_on = gc.isenabled()
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            patch.setattr(sys, "unraisablehook", lambda _what: None)
            patch.setattr(type(structlog.get_logger()), "__getattr__", lambda *_name: _log_nothing)
            patch.setattr(membership, "gc", types.SimpleNamespace(collect=lambda: 0))
            patch.setattr(group_offsets, "COMMIT_EVERY_S", 1.0)
            patch.setattr(all_tasks, "add", lambda _task: None)
            patch.setattr(Deriver, "_read", memory.read)
            patch.setattr(PartitionState, "finish", memory.finish_and_rest)
            patch.setattr(deriver, "Step", memory.RememberedStep)
            patch.setattr(deriver, "derive_in", memory.RememberedStep.derive)
            patch.setattr(codec, "from_binary", memory.from_binary)
            patch.setattr(codec, "to_structured", memory.to_structured)
            patch.setattr(fold, "project", memory.project)
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
            gc.collect()
    finally:
        if was_on:
            gc.enable()


def _log_nothing(*_args: Any, **_context: Any) -> None: ...


def prepare_inputs() -> None:
    """Work out what all runs share, inside `simulating`, once for the processes forked after it."""
    for number in range(INPUTS):
        prepare(number)
    gc.collect()
    gc.freeze()


def result_of(schedule: Schedule, trace: Trace | None = None) -> str | None:
    """Run a schedule, inside `simulating`; return what was wrong.

    Its garbage is collected at once: later it would be in no cache of the processor.
    """
    world = Control if schedule.stage == "control" else Pipeline
    result = world(schedule, trace).run()
    gc.collect(0)  # ends the frames of its processes, whose last words keep some of them alive
    gc.collect(1)
    return result


def kind_of(violation: str) -> str:
    """Return what a violation is about, without its numbers and names."""
    text = re.sub(r"[0-9]+", "#", violation.split(";", 1)[0])
    for part in ("again", "is due", "stands for", "views of partition", "not everything arrived",
                 "never waits", "ended with", "written by", "activated", "dropped"):  # fmt: skip
        if part in text:
            return part
    return text


def shrink(schedule: Schedule, violation: str) -> tuple[Schedule, str]:
    """Return the smallest schedule found that shows the same kind of violation, and what it says.

    First without halves, quarters and single acts, then with fewer workers, a quiet wire and acts
    of no length, until nothing more can be left out.
    """
    kind, tries = kind_of(violation), 0

    def fails(smaller: Schedule) -> bool:
        nonlocal tries, violation, schedule
        tries += 1
        if tries > _MOST_TRIES:
            return False
        result = result_of(smaller)
        if result is None or kind_of(result) != kind:
            return False
        schedule, violation = smaller, result
        return True

    while any(fails(smaller) for smaller in _smaller(schedule)):
        pass
    return schedule, violation


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    acts = schedule.acts
    size = len(acts)
    while size:
        for begin in range(0, len(acts), size):
            yield schedule.without(frozenset(range(begin, min(begin + size, len(acts)))))
        size //= 2
    if schedule.rates != QUIET:
        yield replace(schedule, rates=QUIET)
    if schedule.derivers > 1:
        yield replace(schedule, derivers=schedule.derivers - 1)
    if schedule.projectors > 1:
        yield replace(schedule, projectors=schedule.projectors - 1)
    if schedule.stage == "both":
        yield replace(schedule, stage="derive", projectors=0)
        yield replace(schedule, stage="project", derivers=0)
    for place, act in enumerate(acts):
        for simpler in {act._replace(at_s=float(int(act.at_s))), act._replace(number=0)}:
            if simpler != act:
                changed = (*acts[:place], simpler, *acts[place + 1 :])
                yield replace(schedule, acts=tuple(sorted(changed)))


def in_processes(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int) -> Iterator[Any]:
    """Yield what `work` returns for each task, in order; each task has a process of its own.

    Forked from the only thread: the pools of the standard library fork from others, and stand still
    where one of them held a lock.
    """
    running: dict[int, tuple[Any, Connection]] = {}
    started = 0
    for number in range(len(tasks)):
        while started < len(tasks) and len(running) < jobs:
            ours, theirs = _FORK.Pipe(duplex=False)
            process = _FORK.Process(target=_send_result, args=(theirs, work, tasks[started]))
            process.start()
            theirs.close()
            running[started] = (process, ours)
            started += 1
        process, ours = running.pop(number)
        yield ours.recv()
        process.join()


def _send_result(to: Connection, work: Callable[[Any], Any], task: Any) -> None:
    to.send(work(task))
