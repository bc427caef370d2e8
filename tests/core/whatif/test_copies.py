"""What a fork copied without saying so counts for the session that it is of."""

from dataclasses import replace

from streams.core.whatif.copies import without_copies
from streams.core.whatif.turns import Between, ChainLog, RecordedCompaction
from tests.core.whatif.whatif_kit import MANUAL, compaction, log_of

SHARED = (80_000, 90_000, compaction(90_000, MANUAL)._replace(time_ms=2_500))


def session(name: str, *steps: int | RecordedCompaction, shared: int = 2) -> ChainLog:
    """Return a session's chain; its first responses have the ids of all others'."""
    log = log_of(*SHARED, *steps, session=name)
    turns = (
        turn._replace(response_id=f"r{number}" if number < shared else f"{name}-{number}")
        for number, turn in enumerate(log.turns)
    )
    return replace(log, turns=tuple(turns))


def later(log: ChainLog, ms: int) -> ChainLog:
    """Return a chain whose own responses came later."""
    return replace(
        log,
        turns=tuple(
            turn if turn.response_id in ("r0", "r1") else turn._replace(time_ms=ms)
            for turn in log.turns
        ),
    )


def figures(logs: list[ChainLog]) -> dict[str, tuple[list[int], int]]:
    return {
        log.session_id: ([turn.used for turn in log.turns], len(log.compactions)) for log in logs
    }


def test_the_origin_has_what_forks_copied_with_the_compaction_after_it() -> None:
    origin, fork = session("z", 20_000, 21_000), later(session("a", 30_000), 10**9)
    assert figures(without_copies([fork, origin])) == {
        "z": ([80_000, 90_000, 20_000, 21_000], 1),
        "a": ([30_000], 0),
    }


def test_a_session_that_was_left_for_its_fork_is_the_origin() -> None:
    left, fork = session("z"), session("a", 30_000)
    assert figures(without_copies([fork, left])) == {"z": ([80_000, 90_000], 1), "a": ([30_000], 0)}


def test_a_copy_without_anything_of_its_own_is_left_out() -> None:
    logs = [session("a"), session("b")]
    assert figures(without_copies(logs)) == {"a": ([80_000, 90_000], 1)}


def test_other_responses_under_the_same_ids_are_no_copies() -> None:
    one, other = session("a", 20_000), session("b", 20_000)
    longer = tuple(turn._replace(used=turn.used + 1) for turn in other.turns)
    logs = [one, replace(other, turns=longer)]
    assert without_copies(logs) == logs


def test_responses_without_a_time_are_no_copies_of_those_with_one() -> None:
    untimed = session("b", 20_000)
    turns = tuple(turn._replace(time_ms=None, response_id="r0") for turn in untimed.turns)
    logs = [session("a", 20_000), session("c"), replace(untimed, turns=turns)]
    assert figures(without_copies(logs)) == {
        "c": ([80_000, 90_000], 1),
        "a": ([20_000], 0),
        "b": ([80_000, 90_000, 20_000], 1),
    }


def test_a_response_is_of_one_chain_of_a_session_too() -> None:
    log = session("a", 20_000)
    logs = [log, replace(log, chain="agent:x")]
    assert without_copies(logs) == [log]


def test_a_compaction_at_the_time_of_an_unrelated_one_stays() -> None:
    origin, fork = session("a", 20_000), later(session("b", 30_000), 10**9)
    own = fork.between[2].compactions[0]._replace(time_ms=9_000)
    fork = replace(fork, between=(*fork.between[:2], Between((own,)), *fork.between[3:]))
    other = session("c", shared=0)
    others = replace(other, between=(*other.between[:2], Between((own,))))
    assert figures(without_copies([origin, fork, others]))["b"] == ([30_000], 1)
