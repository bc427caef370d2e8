"""A publisher without an event loop, where it must say no instead of waiting for ever."""

import os
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from contextgauge import BlockingPublisher, ClosedError, Publisher
from tests.patience import PATIENCE_S

NOWHERE = "127.0.0.1:1"
MESSAGE = {"type": "user", "session_id": "s", "message": "hi"}


def opened_in(seconds: float = 0, **options: object) -> Publisher:
    """Return a publisher whose broker is nowhere."""
    options = {"when_full": "wait", "on_problem": lambda _: None} | options
    return Publisher(bootstrap_servers=NOWHERE, close_timeout_s=seconds, **options)  # type: ignore[arg-type]


def _in_child(publisher: BlockingPublisher, made: Publisher) -> int:
    """Use the parent's publisher as a forked process may: 0 where it reports so, and may end."""
    try:
        publisher.publish(MESSAGE)
    except ClosedError as error:
        made.__exit__(None, None, None)
        return 0 if "forked" in str(error) else 3
    return 4


def test_a_forked_process_gets_an_error_and_can_exit() -> None:
    made = opened_in()
    with made as publisher:
        child = os.fork()
        if child == 0:
            code = 5
            try:
                signal.alarm(int(PATIENCE_S))
                code = _in_child(publisher, made)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert (os.WIFSIGNALED(status), os.waitstatus_to_exitcode(status)) == (False, 0)
        assert publisher.publish(MESSAGE) == "queued"


def test_publishing_from_on_problem_raises_an_error() -> None:
    future: Future[str] = Future()
    entered = threading.Event()

    def problem(_: str) -> None:
        entered.wait(PATIENCE_S)
        if not future.done():
            try:
                future.set_result(publisher.publish(MESSAGE))
            except ClosedError as error:
                future.set_result(str(error))

    with opened_in(on_problem=problem) as publisher:
        entered.set()
        publisher.publish(MESSAGE)
        assert "cannot wait for itself" in future.result(PATIENCE_S)


def test_close_raises_in_threads_waiting_for_room() -> None:
    with ThreadPoolExecutor(4) as pool:
        with opened_in(max_messages=1) as publisher:
            assert publisher.publish(MESSAGE) == "queued"
            waiting = [pool.submit(publisher.publish, MESSAGE) for _ in range(4)]
            assert publisher.stats.waiting == 1
        for each in waiting:
            with pytest.raises(ClosedError):
                each.result(PATIENCE_S)


def test_publishing_during_close_raises_in_every_thread() -> None:
    """Threads that keep publishing each get an error, whenever the publisher closes."""
    for _ in range(20):
        begun = threading.Barrier(4)

        def go_on(publisher: BlockingPublisher, begun: threading.Barrier) -> str:
            begun.wait()
            while True:
                try:
                    publisher.publish(MESSAGE)
                except ClosedError as error:
                    return str(error)

        with ThreadPoolExecutor(3) as pool:
            with opened_in(when_full="drop_oldest") as publisher:
                ends = [pool.submit(go_on, publisher, begun) for _ in range(3)]
                begun.wait()
            assert all("publisher" in each.result(PATIENCE_S) for each in ends)
