"""One process of a run, and the wire between it and a server.

A request takes time, by the seed. It may be lost on its way, or its reply may be: then the client
gives up after `REQUEST_S` with a RetryError. A request that the client gave up may still arrive
late, and one whose reply was lost may be repeated by the client's library, so that it is served
twice. A killed process hears of nothing more; what it had sent still arrives.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from contextgauge.errors import RetryError
from tests.simulation.virtual_loop import ProcessLoop, Scheduler, VirtualClock

REQUEST_S = 1.5
"""When a client gives a request up."""

LATE_S = 4.0
"""How much later than that a request may arrive."""

Answer = Callable[[Any], None]


class Rates(NamedTuple):
    """How likely each fault of the wire is, and how long a request may take."""

    delay_s: float = 0.004
    lost_request: float = 0.0
    lost_reply: float = 0.0
    late: float = 0.0
    twice: float = 0.0


QUIET = Rates()


class DeadProcessError(Exception):
    """A killed process asks for something: its frames are being collected."""


class Wire:
    """Between all processes and one server; `rates` change with the schedule."""

    def __init__(self, scheduler: Scheduler, what: str) -> None:
        self.scheduler, self._what = scheduler, what
        self.rates = QUIET
        self.away_until_s = 0.0
        """Until then the server answers nothing, and what is sent to it waits."""

    def send(self, process: "Process", serve: Callable[[Answer], None], reply: Answer) -> bool:
        """Bring a request to the server and its answer back; return whether that will happen."""
        if process.loop.is_dead:
            raise DeadProcessError
        scheduler, chance = self.scheduler, process.chance
        most_s, lost_request, lost_reply, late, twice = self.rates
        delay_s = chance.random() * most_s
        waits_s = self.away_until_s - scheduler.now_s
        if waits_s > 0:
            delay_s += waits_s
        if lost_request + lost_reply + late + twice:
            roll = chance.random()
            for rate, fault in (
                (lost_request, self._lose),
                (lost_reply, self._lose_reply),
                (late, self._bring_late),
                (twice, self._bring_twice),
            ):
                if roll < rate:
                    return fault(process, serve, reply, delay_s)
                roll -= rate
        scheduler.after(delay_s, serve, partial(self._back, process, reply))
        return waits_s < REQUEST_S

    def _back(self, process: "Process", reply: Answer, result: Any) -> None:
        if not process.loop.is_dead:
            # Half of the replies take their time, which lets others go first.
            delay_s = (process.chance.random() * 2 - 1) * self.rates.delay_s
            if delay_s > 0:
                self.scheduler.after(delay_s, process.loop.call_soon, reply, result)
            else:
                process.loop.call_soon(reply, result)

    def _lose(self, *_request: Any) -> bool:
        return False

    def _lose_reply(self, _process: "Process", serve: Any, _reply: Any, delay_s: float) -> bool:
        self.scheduler.after(delay_s, serve, _nobody)
        return False

    def _bring_late(self, process: "Process", serve: Any, _reply: Any, delay_s: float) -> bool:
        late_s = REQUEST_S + delay_s + process.chance.random() * LATE_S
        self.scheduler.after(late_s, serve, _nobody)
        return False

    def _bring_twice(self, process: "Process", serve: Any, reply: Any, delay_s: float) -> bool:
        self.scheduler.after(delay_s, serve, _nobody)
        again_s = delay_s + process.chance.random() * REQUEST_S / 2
        self.scheduler.after(again_s, serve, partial(self._back, process, reply))
        return True

    async def ask(
        self, process: "Process", serve: Callable[[Answer], None], patience_s: float = REQUEST_S
    ) -> Any:
        """Return the server's answer, or raise it where it is an error. Raises RetryError."""
        loop = process.loop
        reply: asyncio.Future[Any] = loop.create_future()
        timer = None
        if not self.send(process, serve, partial(_set, reply)) or patience_s != REQUEST_S:
            timer = loop.call_later(patience_s, _set, reply, _no_answer(self._what))
        try:
            return await reply
        finally:
            if timer is not None:
                timer.cancel()

    def call(
        self, process: "Process", serve: Callable[..., Any], *args: Any
    ) -> Coroutine[Any, Any, Any]:
        """Ask for what a function of the server returns or raises at once."""
        return self.ask(process, partial(at_once, serve, args))


def _no_answer(what: str) -> RetryError:
    return RetryError(f"{what} does not answer")


def _nobody(_result: Any) -> None:
    """Take an answer that no one waits for."""


def at_once(serve: Callable[..., Any], args: Any, answer: Answer) -> None:
    """Answer with what a function returns or raises."""
    try:
        result = serve(*args)
    except Exception as error:  # noqa: BLE001 -- the answer is the error
        result = error
    answer(result)


def _set(reply: asyncio.Future[Any], result: Any) -> None:
    if reply.done():
        return
    if isinstance(result, Exception):
        reply.set_exception(result)
    else:
        reply.set_result(result)


class Process:
    """A process: a loop, a clock and chances of its own, which no other process changes."""

    def __init__(self, scheduler: Scheduler, name: str, kind: str, seed: int) -> None:
        self.name, self.kind = name, kind
        self.loop = ProcessLoop(scheduler, name)
        self.clock = VirtualClock()
        self.chance = random.Random(f"{seed} {name}")
        self.main: asyncio.Task[None] | None = None
        self.stop: asyncio.Event | None = None
        self.producers = 0

    def start(self, work: Coroutine[Any, Any, None], on_end: Callable[["Process"], None]) -> None:
        """Begin its work."""
        self.main = self.loop.create_task(work)
        self.main.add_done_callback(lambda _task: on_end(self))


def set_stop(stop: asyncio.Event | None) -> None:
    """Ask a worker to end."""
    if stop is not None:
        stop.set()
