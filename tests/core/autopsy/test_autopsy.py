"""What an autopsy says of a session's boundaries."""

import pytest

from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ContextCompaction, Message, Text
from contextgauge.records import Json
from streams.core.autopsy.autopsy import (
    AutopsyReading,
    SessionAutopsy,
    findings_around,
    totals,
)
from streams.core.autopsy.intervals import CaseShare
from streams.core.autopsy.items import ItemKind
from streams.core.autopsy.remains import Verdict
from streams.core.control.pins import boundaries
from streams.core.control.turn_overlap import GuardWork
from tests.core.conversation.fold_kit import boundary, said

PUSH = "Never push to main."
FIX = "Fix the importer of the orders."


def autopsy_of(*lines: dict[str, Json], known: set[str] | None = None) -> SessionAutopsy:
    session = AutopsyReading()
    for line in lines:
        session.add(line)
    return session.autopsy(set() if known is None else known)


def summarised(text: str, **more: Json) -> dict[str, Json]:
    return said("user", text, isCompactSummary=True, uuid="s", **more)


def called(id_: str, name: str, **arguments: Json) -> dict[str, Json]:
    call: Json = {"type": "tool_use", "id": id_, "name": name, "input": arguments}
    return said("assistant", [call], uuid=f"call-{id_}")


def answered(id_: str, text: str, *, is_error: bool = False) -> dict[str, Json]:
    result: Json = {
        "type": "tool_result",
        "tool_use_id": id_,
        "content": text,
        "is_error": is_error,
    }
    return said("user", [result], uuid=f"result-{id_}")


def found(result: SessionAutopsy) -> dict[str, tuple[ItemKind, Verdict, tuple[str, ...]]]:
    """Return the findings of the only boundary by their items' text."""
    (only,) = result.boundaries
    return {
        item.text: (item.kind, trace.verdict, trace.message_ids) for item, trace, _ in only.findings
    }


def test_evidence_names_the_messages() -> None:
    result = autopsy_of(
        said("user", PUSH, uuid="u1"),
        said("user", PUSH, uuid="u2"),
        said("user", FIX, uuid="u3"),
        boundary(),
        summarised("The user forbids pushing to main."),
    )
    (only,) = result.boundaries
    assert [(item.message_ids, trace.message_ids) for item, trace, _ in only.findings] == [
        (("u1", "u2"), ("s",)),
        (("u3",), ()),
    ]
    assert found(result)[FIX] == ("request", "LOST", ())
    counts = totals(only.findings)
    assert (counts["turn"]["PRESERVED"], counts["request"]["LOST"]) == (1, 1)


def test_what_cannot_be_read_is_unknown() -> None:
    ended = boundary(preserved_segment={"head_uuid": "x", "anchor_uuid": "s", "tail_uuid": "y"})
    start = (said("user", PUSH, uuid="u1"), said("user", FIX, uuid="u2"))
    missing = autopsy_of(*start, ended, summarised(FIX))
    assert {each[1] for each in found(missing).values()} == {"PRESERVED", "unknown"}
    without_text = summarised("…", contextgauge_no_text=True)
    assert {each[1] for each in found(autopsy_of(*start, boundary(), without_text)).values()} == {
        "unknown"
    }
    assert autopsy_of(*start, boundary()) == (autopsy_of()._replace(unseen=1)), (
        "no summary: nothing is said of its items"
    )


def test_a_line_that_cannot_be_read_leaves_the_next_boundary_readable() -> None:
    wrong: dict[str, Json] = {"type": "user", "session_id": "s", "message": {"role": "user"}}
    lines = (said("user", PUSH, uuid="u1"), wrong, boundary(), summarised("Orders."))
    assert found(autopsy_of(*lines))[PUSH][1] == "LOST"


def test_a_boundary_that_a_fork_copied_is_judged_once() -> None:
    lines = (said("user", PUSH, uuid="u1"), boundary(), summarised("Orders."))
    known: set[str] = set()
    assert len(autopsy_of(*lines, known=known).boundaries) == 1
    assert autopsy_of(*lines, known=known).boundaries == ()


INHERITED = (boundary(), said("user", "Orders.", isCompactSummary=True, uuid="copied"))
RESET = (said("user", "<command-name>/clear</command-name>", uuid="c"),)


@pytest.mark.parametrize("near", [INHERITED, RESET], ids=["inherited boundary", "reset"])
def test_control_points_are_away_from_all_boundaries(near: tuple[dict[str, Json], ...]) -> None:
    before, between, after = (
        [called(f"{part}{number}", "Read", file_path="a.py") for number in range(2)]
        for part in range(3)
    )
    own = (boundary() | {"uuid": "b-2"}, summarised("Orders."))
    result = autopsy_of(*before, *near, *between, *own, after[0], known={"copied"})
    assert [each.summary_id for each in result.boundaries] == ["s"]
    again = result.consequences.files_read_again
    assert (again.after, again.control) == (CaseShare(1, 1), CaseShare(0, 0))


def test_replies_are_decisions_and_steps_are_not() -> None:
    result = autopsy_of(
        said("user", FIX, uuid="u1"),
        said("assistant", "I will look at the orders first.", uuid="a1"),
        called("1", "Read", file_path="/w/orders.py"),
        answered("1", "x"),
        said("assistant", "The parser is rewritten in Rust.", uuid="a2"),
        said("user", "Good, carry on with the tests.", uuid="u2"),
        boundary(),
        summarised("Rust: the parser is rewritten in it."),
    )
    kinds = {text: kind for text, (kind, _, _) in found(result).items()}
    assert kinds == {
        FIX: "turn",
        "Good, carry on with the tests.": "request",
        "The parser is rewritten in Rust.": "decision",
        "/w/orders.py": "file",
    }


def test_a_file_is_known_by_its_path_and_not_by_one_that_ends_like_it() -> None:
    def verdict(path: str, summary: str) -> str:
        lines = (said("user", FIX, cwd="/w"), called("1", "Read", file_path=path))
        done = (*lines, answered("1", "x"), boundary(), summarised(summary, cwd="/w"))
        return found(autopsy_of(*done))[path][1]

    assert verdict("/w/a/b.py", "Read a/b.py.") == "PRESERVED"
    assert verdict("/w/a/b.py", "Read /w/a/b.py, and more") == "PRESERVED"
    assert verdict("/w/a/b.py", r"Read .\a\b.py") == "PRESERVED"
    assert verdict("/w/a/b.py", "Read a/{b,c}.py") == "PRESERVED"
    assert verdict("/w/a/b.py", "b.py was read, later a/b.py") == "PRESERVED"
    assert verdict("/w/a/b.py", "Read b.py.") == "DEGRADED"
    for other in ("Read c/b.py", "Read ab.py", "Read b.pyi", "Read b.py.bak", "Read b.py/x", "-"):
        assert verdict("/w/a/b.py", other) == "LOST", other
    assert verdict("b.py", "Read b.py.") == "PRESERVED"


def test_a_failure_is_known_by_what_it_says_and_not_by_its_status() -> None:
    def verdict(output: str, summary: str) -> str:
        lines = (said("user", FIX), called("1", "Bash", command="make"))
        failed = answered("1", output, is_error=True)
        done = autopsy_of(*lines, failed, boundary(), summarised(summary))
        return next(each[1] for each in found(done).values() if each[0] == "error")

    broken = "Exit code 2\nno rule to make target orders"
    assert verdict(broken, "make: no rule to make target orders.") == "PRESERVED"
    assert verdict(broken, "exit code 2") == "LOST"
    assert verdict("cannot find parseOrder\nlong trace of it", "parseOrder") == "DEGRADED"
    assert verdict("cannot find it\nlong trace of the parser", "long trace of the parser") == (
        "DEGRADED"
    )
    assert verdict("cannot find the parser\nexited with code 1", "It cannot find the parser.") == (
        "PRESERVED"
    )
    assert verdict("exit code 1", "exit code 1") == "unknown", "too short to be judged"


def test_what_an_earlier_boundary_lost_is_not_lost_again() -> None:
    again = boundary() | {"uuid": "b2"}
    result = autopsy_of(
        said("user", PUSH, uuid="u1"),
        boundary(),
        summarised("Orders."),
        said("user", FIX, uuid="u2"),
        said("assistant", "Ok.", uuid="a2"),
        again,
        summarised("Nothing.") | {"uuid": "s2"},
    )
    items = [[each.item.text for each in boundary.findings] for boundary in result.boundaries]
    assert items == [[PUSH], [FIX]], "and a reply too short to be judged is none"


def test_results_that_are_gone_stood_before_though_all_turns_stayed() -> None:
    segment: Json = {"head_uuid": "u1", "anchor_uuid": "s", "tail_uuid": "u1"}
    result = autopsy_of(
        said("user", FIX, uuid="u1"),
        called("1", "Read", file_path="/w/orders.py"),
        answered("1", "x"),
        boundary(preserved_segment=segment),
        summarised("Nothing yet."),
    )
    verdicts = {text: (verdict, ids) for text, (_, verdict, ids) in found(result).items()}
    assert verdicts == {FIX: ("PRESERVED", ("u1",)), "/w/orders.py": ("LOST", ())}


def test_a_summary_without_what_was_before_it_is_only_counted() -> None:
    result = autopsy_of(boundary(), summarised("Orders."), said("user", FIX, uuid="u1"))
    assert (result.boundaries, result.unseen) == ((), 1)


def test_what_followed_is_with_the_item_that_it_goes_back_to() -> None:
    deploy = "Never run `make deploy`."
    fails = ("make orders", "no rule to make target orders")
    result = autopsy_of(
        said("user", deploy, uuid="u1"),
        called("1", "Read", file_path="/w/orders.py"),
        answered("1", "x"),
        said("user", FIX, uuid="u2"),
        called("2", "Bash", command=fails[0]),
        answered("2", fails[1], is_error=True),
        boundary(),
        summarised("Nothing yet."),
        called("3", "Read", file_path="/w/orders.py"),
        answered("3", "x"),
        called("4", "Bash", command=fails[0]),
        answered("4", fails[1], is_error=True),
        called("5", "Bash", command="make deploy"),
        said("user", f"I told you already. {deploy}", uuid="u3"),
    )
    (only,) = result.boundaries
    assert {each.item.text: [tuple(own) for own in each.sequels] for each in only.findings} == {
        deploy: [("turns_restated", "u3"), ("constraints_possibly_violated", "call-5")],
        FIX: [],
        fails[1]: [("failing_calls_repeated", "call-4")],
        "/w/orders.py": [("files_read_again", "call-3")],
    }


def test_a_part_comes_with_what_is_missing() -> None:
    repeated, gone = "Rows with a quoted break are dropped", "the budget is 500 dollars."
    result = autopsy_of(
        said("user", f"{repeated}, {gone}", uuid="u1"),
        called("1", "Bash", command="make"),
        answered("1", "the linker is missing\nparseOrder", is_error=True),
        called("2", "Read", file_path="/w/a/b.py"),
        answered("2", "x"),
        boundary(),
        summarised(f"{repeated}. b.py was read, and parseOrder failed."),
    )
    (only,) = result.boundaries
    assert [(each.trace.verdict, each.trace.missing) for each in only.findings] == [
        ("DEGRADED", (gone,)),
        ("DEGRADED", ("the linker is missing",)),
        ("DEGRADED", ("/w/a/",)),
    ]


def test_a_turn_that_was_published_without_text_is_unknown() -> None:
    result = autopsy_of(
        said(
            "user", "[contextgauge: 12 characters left out]", uuid="u1", contextgauge_no_text=True
        ),
        said("user", FIX, uuid="u2"),
        boundary(),
        summarised("[contextgauge: 12 characters left out] Fix the importer of the orders."),
    )
    assert [each[1] for each in found(result).values()] == ["unknown", "PRESERVED"]


@pytest.mark.parametrize(("most_work", "kinds"), [(0, {"turn"}), (150, {"turn", "request"})])
def test_words_are_unknown_where_there_is_no_work_left(most_work: int, kinds: set[str]) -> None:
    texts = (PUSH * 200, "Go on.", FIX)
    messages = [Message("user", (Text(each),), f"u{index}") for index, each in enumerate(texts)]
    summary = Message("user", (ContextCompaction(1, 0, "Orders. " * 1_000, 2, 9),), "s")
    (around,) = [each for _, each in boundaries(History([*messages, summary]))]
    findings = list(findings_around(around, None, GuardWork(most_work)))
    assert {each.item.kind for each in findings} == kinds
    assert {each.trace.verdict for each in findings} == {"unknown"}
