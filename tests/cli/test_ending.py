"""Signals end a command without a traceback, whenever they come."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from streams.cli.ending import Ending
from streams.cli.exits import by_signal

pytestmark = pytest.mark.usefixtures("hangup")


class _Loops(asyncio.DefaultEventLoopPolicy):
    """Sends this process a signal while a loop is made, or while it is closed."""

    def __init__(self, made: bool, number: signal.Signals) -> None:
        super().__init__()
        self._made, self._number = made, number

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        if self._made:
            signal.raise_signal(self._number)
        loop = super().new_event_loop()
        if not self._made:
            close = loop.close

            def interrupted() -> None:
                signal.raise_signal(self._number)
                close()

            loop.close = interrupted  # type: ignore[method-assign]
        return loop


@pytest.fixture
def _policy() -> Iterator[None]:
    former = asyncio.get_event_loop_policy()
    yield
    asyncio.set_event_loop_policy(former)


@pytest.mark.usefixtures("_policy")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("made", [True, False], ids=["is made", "is closed"])
def test_a_signal_waits_while_an_event_loop(made: bool, number: signal.Signals) -> None:
    begun: list[str] = []

    async def main() -> None:
        begun.append("work")

    asyncio.set_event_loop_policy(_Loops(made, number))
    ending = Ending()
    with pytest.raises(SystemExit) as ended, ending.by_signals():
        ending.run(main)
    assert ended.value.code == by_signal(number)
    assert begun == ([] if made else ["work"])


def test_a_signal_cancels_what_runs_and_its_finally_blocks_run() -> None:
    done: list[str] = []

    async def main() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("stopped")

    ending = Ending()
    with pytest.raises(SystemExit) as ended, ending.by_signals():
        ending.run(main)
    assert ended.value.code == by_signal(signal.SIGTERM)
    assert done == ["stopped"]


def test_a_second_signal_does_not_interrupt_what_the_first_one_ends() -> None:
    done: list[str] = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGTERM)
            done.append("stopped")

    with pytest.raises(SystemExit) as ended, Ending().by_signals():
        work()
    assert ended.value.code == by_signal(signal.SIGHUP)
    assert done == ["stopped"]


def test_a_closed_terminal_that_is_to_be_ignored_ends_nothing() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    with Ending().by_signals():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_signal_in_the_last_step_of_what_runs_is_not_lost() -> None:
    async def main() -> None:
        signal.raise_signal(signal.SIGTERM)  # and nothing is waited for any more

    ending = Ending()
    with pytest.raises(SystemExit) as ended, ending.by_signals():
        ending.run(main)
    assert ended.value.code == by_signal(signal.SIGTERM)


def test_a_signal_that_is_the_regular_end_is_none_of_the_command() -> None:
    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.Event().wait()

    former = signal.getsignal(signal.SIGTERM)
    ending = Ending()
    with ending.by_signals():
        ending.run(main)
    assert signal.getsignal(signal.SIGTERM) == former


def test_a_cancellation_that_no_signal_asked_for_is_not_hidden() -> None:
    async def main() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        Ending().run(main)
