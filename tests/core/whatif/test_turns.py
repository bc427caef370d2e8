"""What a replay reads from records."""

from contextgauge.frozen import replace
from schemas.records import ContextReading, Record
from streams.core.whatif.turns import growths, known_growths, read_logs
from tests.core.history import History


def reading(told: History, used: int, number: int = 0, chain: str = "main") -> Record:
    """A response with an id of its own."""
    record = told.reading(used, chain=chain)
    assert isinstance(record.data, ContextReading)
    own = replace(record.data, response_id=f"r{told.sequence}" if not number else f"m{number}")
    return replace(record, data=own)


def test_a_chain_has_its_responses_and_what_came_between_them() -> None:
    told = History()
    boundary = told.boundary(pre=160_000)
    records = [
        told.info(runtime="claude-code"),
        told.limits(threshold=167_000),
        reading(told, 150_000),
        boundary,
        told.summary(boundary, "x" * 4_000),
        told.timing(boundary, 20_000),
        told.pins_checked(boundary, 3, ("tabs",)),
        reading(told, 30_000),
        told.complete(boundary, 30_000),
        told.failed(),
        reading(told, 40_000),
        told.reset(),
        reading(told, 5_000, chain="a1"),
        told.progress(told.start()),
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
    told = History()
    late = told.reading(70_000, late=True)
    assert [turn.used for turn in read_logs([late])[0].turns] == [70_000]
    boundary = told.boundary(pre=160_000)
    done = told.complete(boundary, 30_000)
    last = reading(told, 30_000)
    (log,) = read_logs([reading(told, 60_000), boundary, last, late, done])
    assert [turn.used for turn in log.turns] == [60_000, 70_000, 30_000]
    (compaction,) = log.between[2].compactions
    assert compaction.tokens_after == 30_000
    (log,) = read_logs([boundary, reading(told, 60_000), last, late, done])
    assert [turn.used for turn in log.turns] == [60_000, 70_000, 30_000]
    assert log.between[0].compactions[0].tokens_after == 30_000


def test_the_next_response_says_what_the_one_before_it_wrote() -> None:
    told = History()
    second = reading(told, 60_000)
    object.__setattr__(second.data, "previous_output_tokens", 700)
    (log,) = read_logs([reading(told, 50_000), second])
    assert [turn.output for turn in log.turns] == [700, 0]
    assert known_growths(log) == [0, 700, 0]


def test_what_a_boundary_does_not_report_is_what_the_response_wrote() -> None:
    told = History()
    boundary = told.boundary(pre=None)
    (log,) = read_logs([reading(told, 50_000), boundary, told.complete(boundary, None)])
    assert log.turns[0].output == 0
    assert growths(log) == known_growths(log) == [0, 0]
    assert log.compactions[0].tokens_after is None


def test_a_response_that_is_reported_again_is_one() -> None:
    told = History()
    records = [reading(told, 50_000, 1), reading(told, 51_000, 1), reading(told, 60_000, 2)]
    (log,) = read_logs(records)
    assert [turn.used for turn in log.turns] == [51_000, 60_000]


def test_inherited_records_and_what_is_of_an_unknown_boundary_are_left_out() -> None:
    told = History()
    inherited = reading(told, 90_000)
    object.__setattr__(inherited.data, "inherited", True)
    other = told.boundary()
    settings = told.info(runtime=None)
    object.__setattr__(
        settings.data, "compaction_settings", {"window": {"value": 1, "source": "f"}}
    )
    (log,) = read_logs([inherited, reading(told, 10_000), told.timing(other), settings])
    assert [turn.used for turn in log.turns] == [10_000]
    assert log.runtime is None
    assert log.settings == {"window": {"value": 1, "source": "f"}}
    assert read_logs([told.limits()]) == []
