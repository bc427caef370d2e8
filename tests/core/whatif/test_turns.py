"""What a replay reads from records."""

from contextgauge.frozen import replace
from schemas.records import ContextReading, Record
from streams.core.whatif.turns import growths, known_growths, read_logs
from tests.core.history import History


def reading(history: History, used: int, number: int = 0, chain: str = "main") -> Record:
    """A response with an id of its own."""
    record = history.reading(used, chain=chain)
    assert isinstance(record.data, ContextReading)
    own = replace(record.data, response_id=f"r{history.sequence}" if not number else f"m{number}")
    return replace(record, data=own)


def test_a_chain_has_its_responses_and_what_came_between_them() -> None:
    history = History()
    boundary = history.boundary(pre=160_000)
    records = [
        history.info(runtime="claude-code"),
        history.limits(threshold=167_000),
        reading(history, 150_000),
        boundary,
        history.summary(boundary, "x" * 4_000),
        history.timing(boundary, 20_000),
        history.pins_checked(boundary, 3, ("tabs",)),
        reading(history, 30_000),
        history.complete(boundary, 30_000),
        history.failed(),
        reading(history, 40_000),
        history.reset(),
        reading(history, 5_000, chain="a1"),
        history.progress(history.start()),
    ]
    main, side = read_logs(records)
    assert (main.chain, main.runtime, main.model, side.chain) == (
        "main",
        "claude-code",
        "claude-sonnet-5",
        "a1",
    )
    assert [turn.used for turn in main.turns] == [150_000, 30_000, 40_000]
    assert {turn.threshold for turn in main.turns} == {167_000}
    (compaction,) = main.compactions
    assert main.between[1].compactions == (compaction,)
    assert (compaction.tokens_after, compaction.duration_ms, compaction.is_given) == (
        30_000,
        20_000,
        False,
    )
    assert (compaction.summary_tokens, compaction.pins_kept, compaction.pins_lost) == (1_000, 3, 1)
    assert main.between[2].has_failed_attempt
    assert main.between[3].is_reset
    assert growths(main) == [0, 10_000, 10_000, 0]


def test_a_response_that_comes_late_is_before_the_last_one() -> None:
    history = History()
    late = history.reading(70_000, late=True)
    assert [turn.used for turn in read_logs([late])[0].turns] == [70_000]
    boundary = history.boundary(pre=160_000)
    done = history.complete(boundary, 30_000)
    last = reading(history, 30_000)
    (log,) = read_logs([reading(history, 60_000), boundary, last, late, done])
    assert [turn.used for turn in log.turns] == [60_000, 70_000, 30_000]
    (compaction,) = log.between[2].compactions
    assert compaction.tokens_after == 30_000
    (log,) = read_logs([boundary, reading(history, 60_000), last, late, done])
    assert [turn.used for turn in log.turns] == [60_000, 70_000, 30_000]
    assert log.between[0].compactions[0].tokens_after == 30_000


def test_the_next_response_says_what_the_one_before_it_wrote() -> None:
    history = History()
    second = reading(history, 60_000)
    object.__setattr__(second.data, "previous_output_tokens", 700)
    (log,) = read_logs([reading(history, 50_000), second])
    assert [turn.output for turn in log.turns] == [700, 0]
    assert [turn.is_output_known for turn in log.turns] == [True, False]
    assert known_growths(log) == [0, 700, 0]


def test_what_a_boundary_does_not_report_is_what_the_response_wrote() -> None:
    history = History()
    boundary = history.boundary(pre=None)
    (log,) = read_logs([reading(history, 50_000), boundary, history.complete(boundary, None)])
    assert log.turns[0].output == 0
    assert growths(log) == known_growths(log) == [0, 0]
    assert log.compactions[0].tokens_after is None


def test_a_response_that_is_reported_again_is_one() -> None:
    history = History()
    records = [
        reading(history, 50_000, 1),
        reading(history, 51_000, 1),
        reading(history, 60_000, 2),
    ]
    (log,) = read_logs(records)
    assert [turn.used for turn in log.turns] == [51_000, 60_000]


def test_inherited_records_and_what_is_of_an_unknown_boundary_are_left_out() -> None:
    history = History()
    inherited = reading(history, 90_000)
    object.__setattr__(inherited.data, "inherited", True)
    other = history.boundary()
    settings = history.info(runtime=None)
    object.__setattr__(
        settings.data, "compaction_settings", {"window": {"value": 1, "source": "f"}}
    )
    (log,) = read_logs([inherited, reading(history, 10_000), history.timing(other), settings])
    assert [turn.used for turn in log.turns] == [10_000]
    assert log.runtime is None
    assert log.settings == {"window": {"value": 1, "source": "f"}}
    assert read_logs([history.limits()]) == []
