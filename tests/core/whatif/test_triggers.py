"""Which recorded compactions follow from a trigger, and why the others do not."""

from dataclasses import replace
from pathlib import Path

import pytest

from contextgauge.normalise.signals import InputMessage
from streams.core.whatif.compaction_facts import FactPool
from streams.core.whatif.replay import recorded_path, replay
from streams.core.whatif.triggers import (
    RecordedTrigger,
    Verdict,
    judge,
    recorded_triggers,
)
from streams.core.whatif.turns import ChainLog, read_logs
from streams.flow.derive.deriver import Deriver
from streams.flow.simulator import SimulationOptions
from tests.core.whatif.whatif_kit import (
    FAILED,
    MANUAL,
    RESET,
    RULES,
    compaction,
    derived,
    log_of,
)


def verdicts(log: ChainLog) -> list[Verdict]:
    return [each.verdict for each in judge(log)[0]]


def test_the_runtimes_own_threshold_is_the_trigger() -> None:
    log = log_of(150_000, compaction(168_000), 30_000, threshold=167_000)
    late = replace(log, turns=(log.turns[0]._replace(threshold=None), *log.turns[1:]))
    for each in (log, late):
        assert set(recorded_triggers(each)) == {RecordedTrigger(167_000, "reported")}
        assert verdicts(each) == ["reproduced"]


def test_settings_are_the_trigger_where_nothing_is_reported() -> None:
    log = log_of(100_000, compaction(118_000), 30_000)
    settings = {"window": {"value": 150_000, "source": "settings.json"}}
    known = replace(log, settings=settings)
    assert set(recorded_triggers(known)) == {RecordedTrigger(117_000, "settings")}
    doubtful = replace(log, settings=settings | {"percent": {"value": 70, "source": "env"}})
    assert set(recorded_triggers(doubtful)) == {RecordedTrigger(118_000, "learned")}
    off = replace(log, settings={"enabled": {"value": False, "source": "settings.json"}})
    assert set(recorded_triggers(off)) == {RecordedTrigger(118_000, "learned")}


def test_else_the_least_size_of_that_model_and_window_is_learned() -> None:
    log = log_of(
        *(150_000, compaction(162_000), 30_000, 150_000, compaction(160_000), 30_000),
        *(90_000, compaction(91_000, MANUAL), 20_000),
    )
    assert recorded_triggers(log)[-1] == RecordedTrigger(160_000, "learned")
    assert verdicts(log) == ["reproduced", "reproduced", "given"]
    other = replace(log, turns=(*log.turns[:-1], log.turns[-1]._replace(window=1_000_000)))
    assert recorded_triggers(other)[-1] is None


def test_what_does_not_follow_has_a_reason() -> None:
    begun_late = log_of(150_000, 168_000, 170_000, compaction(171_000), 30_000, threshold=167_000)
    assert verdicts(begun_late) == ["begun_late"]
    assert [(each.at, each.size) for each in judge(begun_late)[1]] == [(2, 168_100)]
    below = log_of(150_000, compaction(151_000), 30_000, threshold=167_000)
    assert verdicts(below) == ["begun_below"]
    failed = log_of(168_000, FAILED, 169_000, compaction(170_000), 30_000, threshold=167_000)
    assert verdicts(failed) == ["attempt_failed"]
    assert judge(failed)[1] == []
    twice = log_of(168_000, compaction(168_100), compaction(168_100), 30_000, threshold=167_000)
    assert verdicts(twice) == ["reproduced", "no_response_before"]
    first = log_of(compaction(168_000), 30_000, threshold=167_000)
    assert verdicts(first) == ["no_response_before"]


def test_a_reset_begins_again() -> None:
    log = log_of(168_000, 169_000, RESET, 20_000, threshold=167_000)
    judged, unrecorded = judge(log)
    assert judged == []
    assert [each.at for each in unrecorded] == [1]
    assert judge(log_of(168_000, threshold=167_000)) == ([], [])


@pytest.fixture(scope="module")
def simulated() -> list[ChainLog]:
    """Chains of simulated sessions with compactions of every outcome."""
    options = SimulationOptions(seed=1, sessions=4, turns=100, providers=("claude",))
    return read_logs(derived(options, 9_000))


@pytest.mark.extended
def test_simulated_compactions_are_reproduced_or_an_attempt_before_them_failed(
    simulated: list[ChainLog],
) -> None:
    own = [each for log in simulated for each in judge(log)[0] if not each.compaction.is_given]
    assert sum(each.verdict == "reproduced" for each in own) > 5
    for log in simulated:
        failed = [index for index, each in enumerate(log.between) if each.has_failed_attempt]
        begin = 0
        for each in judge(log)[0]:
            has_failed = any(begin < index <= each.at for index in failed)
            expected = {"attempt_failed", "reproduced"} if has_failed else {"reproduced"}
            assert each.compaction.is_given or each.verdict in expected
            begin = each.at


def test_simulated_chains_without_failures_are_replayed_as_they_were(
    simulated: list[ChainLog],
) -> None:
    whole = [log for log in simulated if not any(each.has_failed_attempt for each in log.between)]
    assert any(log.compactions for log in whole)
    for log in whole:
        triggers = [None if each is None else each.tokens for each in recorded_triggers(log)]
        assert replay(log, triggers, lambda _at, _size: None) == recorded_path(log)


@pytest.mark.shared
def test_real_boundaries_are_reproduced(shared: Path) -> None:
    judgements = {}
    for file in sorted((shared / "fixtures").glob("*/*.jsonl")):
        deriver = Deriver(RULES)
        lines = file.read_bytes().splitlines()
        records = [
            record
            for line in lines
            for record in deriver.derive(InputMessage(line, file.stem)).records
        ]
        for log in read_logs(records):
            own = [(each.size, each.earlier, each.verdict) for each in judge(log)[0]]
            if own:
                judgements[file.stem] = own
            assert judge(log)[1] == []
            assert FactPool([log]).of(log).prefix >= 0
    assert judgements == {
        "258c7280-ae70-4798-800f-63464d01a85d": [(167_094, 165_894, "reproduced")],
        "slopometry": [(155_317, 153_832, "reproduced")],
        "manual-compact": [(15_808, 0, "given")],
    }
