"""Queries come before the reading: it waits between two lines while one runs."""

import threading
from contextlib import suppress

from streams.edge.sqlite.turns import Turns


def test_the_reading_waits_while_a_query_runs() -> None:
    turns, steps = Turns(), []
    turns.give_way()
    started = threading.Event()

    def read() -> None:
        started.set()
        turns.give_way()
        steps.append("line")

    reading = threading.Thread(target=read)
    with turns.query():
        reading.start()
        started.wait()
        reading.join(timeout=0.05)
        steps.append("answer")
    reading.join()
    assert steps == ["answer", "line"]


def test_a_query_that_fails_does_not_stop_the_reading() -> None:
    turns = Turns()
    with suppress(ZeroDivisionError), turns.query():
        _ = 1 / 0
    turns.give_way()
