"""What followed a boundary, against what the session did without one."""

from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ContextCompaction, Message, Text, ToolCall, ToolResult
from contextgauge.json_codec import dumps
from streams.core.autopsy.consequences import CALLS, Consequences, consequences
from streams.core.autopsy.intervals import Comparison, Share

NONE = Share(0, 0)


class _Session:
    """Writes a history."""

    def __init__(self) -> None:
        self.history = History()
        self.boundaries: list[int] = []
        self._calls = 0

    def call(self, name: str, failure: str = "", **arguments: str) -> None:
        self._calls += 1
        id_ = f"c{self._calls}"
        self.history.append(Message("assistant", (ToolCall(id_, name, dumps(arguments).decode()),)))
        result = ToolResult(id_, (Text(failure or "ok"),), is_error=bool(failure))
        self.history.append(Message("tool", (result,)))

    def read(self, *names: str) -> None:
        for name in names:
            self.call("Read", file_path=name)

    def turn(self, text: str) -> None:
        self.history.append(Message("user", (Text(text),)))

    def compact(self) -> None:
        self.boundaries.append(len(self.history.entries))
        number = len(self.boundaries)
        self.history.append(Message("user", (ContextCompaction(number, 0, "Orders.", 1, 9),)))

    def followed(self) -> Consequences:
        return consequences(self.history, self.boundaries)


def test_files_read_again_have_the_calls_around_as_control() -> None:
    session = _Session()
    session.read("a.py", "b.py", "a.py", "c.py")
    session.compact()
    session.read("a.py", "x.py")
    session.read("a.py", "y.py")
    session.compact()
    compared = session.followed().files_read_again
    assert compared.after == Share(1, 3), "four calls: a.py, x.py and y.py are read"
    assert compared.control == NONE, "no four calls without a boundary"

    session = _Session()
    session.read("a.py", "b.py", "a.py", "c.py")
    session.compact()
    session.read("a.py", "x.py")
    assert session.followed().files_read_again == Comparison(Share(1, 2), Share(1, 2))


def test_what_is_written_first_is_not_read_again() -> None:
    session = _Session()
    session.read("a.py", "b.py", "c.py")
    session.compact()
    session.call("Write", file_path="a.py", content="x")
    session.read("a.py")
    assert session.followed().files_read_again.after == NONE


def test_the_calls_after_those_of_a_boundary_are_a_control_too() -> None:
    session = _Session()
    session.read("a.py")
    session.compact()
    session.read(*["b.py"] * CALLS)
    session.read(*["b.py"] * CALLS)
    assert session.followed().files_read_again == Comparison(Share(0, 1), Share(1, 1))


def test_a_call_that_fails_again() -> None:
    session = _Session()
    session.call("Bash", "error: no such target", command="make")
    session.call("Bash", "error: no such target", command="make")
    session.compact()
    session.call("Bash", "error: no such target", command="make")
    followed = session.followed()
    assert followed.failing_calls_repeated == Comparison(Share(1, 1), Share(1, 1))
    twice = followed.plus(followed).failing_calls_repeated
    assert twice == Comparison(Share(2, 2), Share(2, 2)), "of two sessions"


def test_a_turn_that_repeats_an_earlier_one() -> None:
    session = _Session()
    session.turn("Never push to the main branch.")
    session.read("a.py")
    session.turn("Write a test for the orders.")
    session.read("b.py")
    session.compact()
    session.turn("I said it already: never push to main!")
    session.read("a.py")
    assert session.followed().turns_restated == Comparison(Share(1, 1), NONE)


def test_boundaries_without_calls_on_both_sides_are_left_out() -> None:
    session = _Session()
    session.compact()
    session.read("a.py")
    session.compact()
    assert session.followed() == Consequences()
