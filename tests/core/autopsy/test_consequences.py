"""What followed a boundary, against what the session did without one."""

from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ContextCompaction, Message, Text, ToolCall, ToolResult
from contextgauge.json_codec import dumps
from streams.core.autopsy.consequences import (
    CALLS,
    Consequences,
    Followed,
    FollowingCase,
    consequences,
)
from streams.core.autopsy.intervals import CaseShare, ShareComparison
from streams.core.autopsy.trail import Trail
from streams.core.control.turn_overlap import GuardWork

NONE = CaseShare(0, 0)


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

    def turn(self, *texts: str) -> None:
        for text in texts:
            self.history.append(Message("user", (Text(text),)))

    def compact(self) -> None:
        self.boundaries.append(len(self.history.entries))
        number = len(self.boundaries)
        self.history.append(Message("user", (ContextCompaction(number, 0, "Orders.", 1, 9),)))

    def followed(self) -> Consequences:
        return self.all_that_followed().compared

    def all_that_followed(self, most_work: int = 1_000_000) -> Followed:
        return consequences(Trail(self.history), self.boundaries, GuardWork(most_work))

    def violated(self) -> list[str]:
        """Return what actions after the only boundary touch that was left alone before it."""
        (cases,) = self.all_that_followed().cases
        return [each.text for each in cases.actions if each.former_id]


def test_files_read_again_have_the_calls_around_as_control() -> None:
    session = _Session()
    session.read("a.py", "b.py", "a.py", "c.py")
    session.compact()
    session.read("a.py", "x.py")
    session.read("a.py", "y.py")
    session.compact()
    compared = session.followed().files_read_again
    assert compared.after == CaseShare(1, 3), "four calls: a.py, x.py and y.py are read"
    assert compared.control == NONE, "no four calls without a boundary"

    session = _Session()
    session.read("a.py", "b.py", "a.py", "c.py")
    session.compact()
    session.read("a.py", "x.py")
    assert session.followed().files_read_again == ShareComparison(CaseShare(1, 2), CaseShare(1, 2))


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
    assert session.followed().files_read_again == ShareComparison(CaseShare(0, 1), CaseShare(1, 1))


def test_a_call_that_fails_again() -> None:
    session = _Session()
    session.call("Bash", "error: no such target", command="make")
    session.call("Bash", "error: no such target", command="make")
    session.compact()
    session.call("Bash", "error: no such target", command="make")
    followed = session.followed()
    assert followed.failing_calls_repeated == ShareComparison(CaseShare(1, 1), CaseShare(1, 1))
    twice = followed.plus(followed).failing_calls_repeated
    assert twice == ShareComparison(CaseShare(2, 2), CaseShare(2, 2)), "of two sessions"


def test_a_turn_that_repeats_an_earlier_one() -> None:
    session = _Session()
    session.turn("Never push to the main branch.")
    session.read("a.py")
    session.turn("Write a test for the orders.")
    session.read("b.py")
    session.compact()
    session.turn("I said it already: never push to main!")
    session.read("a.py")
    followed = session.all_that_followed()
    assert followed.compared.turns_restated == ShareComparison(CaseShare(1, 1), NONE)
    restated, first = session.history.everything[-3], session.history.everything[0]
    assert followed.cases[0].turns == (FollowingCase(restated.text, restated.id, first.id),)
    unknown = session.all_that_followed(most_work=1).compared
    assert unknown.turns_restated == ShareComparison(), "without the work to look for them"


def test_a_turn_on_the_subject_of_an_earlier_one_does_not_repeat_it() -> None:
    """An earlier turn has most of its words; none of that turn's clauses is in it."""
    session = _Session()
    session.turn(
        "Look at the output of the latest report now. Did you learn anything about how plans "
        "evolve that could make the section on plans more useful? It should show how much planning "
        "there was for each unit of work, and how much searching and editing."
    )
    session.read("a.py")
    session.compact()
    session.turn(
        "Is searching a unit of planning there?",
        "Look at the output of the latest report now.",
        "Something new entirely: rename that variable.",
    )
    session.read("a.py")
    (cases,) = session.all_that_followed().cases
    assert [bool(each.former_id) for each in cases.turns] == [False, True, False]


def test_boundaries_without_calls_on_both_sides_are_left_out() -> None:
    session = _Session()
    session.compact()
    session.read("a.py")
    session.compact()
    assert session.followed() == Consequences()


def test_the_first_action_on_what_a_turn_names_may_violate_a_constraint() -> None:
    session = _Session()
    session.turn("Do not change db/schema.sql, legacy/ or .env, and never run `make deploy`.")
    session.call("Read", file_path="/w/db/schema.sql")
    session.call("Bash", command="cat deploy.sh")
    session.turn("Rename the orders in orders.py, e.g. to purchases.")
    session.call("Edit", file_path="/w/orders.py", old_string="a", new_string="b")
    session.compact()
    session.call("Edit", file_path="/w/db/schema.sql", old_string="a", new_string="b")
    session.call("Edit", file_path="/w/db/schema.sql", old_string="b", new_string="c")
    session.call("Write", file_path="/w/legacy/x.py", content="x")
    session.call("Write", file_path=r"C:\w\.env", content="x")
    session.call("Bash", command="cd /w && make deploy")
    session.call("Bash", command="make deployment")
    session.call("Edit", file_path="/w/orders.py", old_string="a", new_string="b")
    assert session.violated() == ["db/schema.sql", "legacy", ".env", "make deploy"]
    compared = session.followed().constraints_possibly_violated
    assert compared == ShareComparison(CaseShare(4, 7), CaseShare(0, 0))


def test_an_action_that_a_later_turn_names_or_that_was_done_before_violates_none() -> None:
    session = _Session()
    session.turn("Keep schema.sql and api.py as they are.")
    session.call("Edit", file_path="/w/api.py", old_string="a", new_string="b")
    session.turn("Go on with the importer.", "Test the importer in test_importer.py.")
    session.compact()
    session.turn("Now change schema.sql, please.")
    session.call("Edit", file_path="/w/schema.sql", old_string="a", new_string="b")
    session.call("Edit", file_path="/w/api.py", old_string="a", new_string="b")
    session.call("Write", file_path="/w/test_importer.py", content="x")
    assert session.violated() == [], "named again; touched before; the open request"


def test_of_messages_without_text_nothing_is_compared() -> None:
    session = _Session()
    session.turn("Never push to the main branch.")
    session.read("a.py")
    session.compact()
    session.turn("Never push to the main branch.")
    session.call("Bash", "error: no such target", command="make")
    ids = {each.id for each in session.history.everything}
    trail = Trail(session.history, ids)
    assert consequences(trail, session.boundaries, GuardWork()).compared == Consequences()
