"""What the compaction engine leaves of a recorded conversation, asked by a replay."""

import pytest

from contextgauge.compaction.messages import Message
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.errors import ConfigError
from contextgauge.normalise.signals import InputMessage
from streams.core.whatif.replay import GrowthPath, replay
from streams.core.whatif.turns import ChainLog, read_logs
from streams.flow.derive.deriver import Deriver
from streams.flow.whatif.engine_after import EngineAfter, Strategy, answers_of
from tests import captures
from tests.captures import Recording
from tests.core.whatif.whatif_kit import RULES


def log_and_messages(lines: list[bytes]) -> tuple[ChainLog, list[Message]]:
    """Return a transcript's main chain, and all messages of its conversation."""
    deriver = Deriver(RULES)
    records = [
        record for line in lines for record in deriver.derive(InputMessage(line, "s")).records
    ]
    main = next(log for log in read_logs(records) if log.chain == "main")
    return main, list(read_conversation(b"\n".join(lines)).everything)


@pytest.fixture(scope="module")
def transcript() -> tuple[ChainLog, list[Message]]:
    return log_and_messages(captures.TRANSCRIPTS["auto_compaction"]())


def compacted(
    transcript: tuple[ChainLog, list[Message]], strategy: Strategy, trigger: int
) -> GrowthPath:
    log, everything = transcript
    after = EngineAfter(log, everything, strategy, window_tokens=200_000)
    return replay(log, [trigger] * len(log.between), after, replaces=True)


def test_each_response_is_found_among_the_messages(
    transcript: tuple[ChainLog, list[Message]],
) -> None:
    log, everything = transcript
    begins = answers_of(log, everything)
    assert None not in begins
    assert begins == sorted(set(begins), key=lambda each: each or 0)
    assert all(everything[each].role == "assistant" for each in begins if each is not None)
    other = log.turns[0]._replace(used=1)
    unknown = type(log)(log.session_id, "main", None, {}, (other,), log.between[:2])
    assert answers_of(unknown, everything) == [None]
    assert EngineAfter(unknown, everything, Strategy("default"))(0, 100_000) is None


@pytest.mark.parametrize("name", ["default", "prune", "seed-001", "seed-002", "seed-004"])
def test_a_strategy_makes_room_and_keeps_turns_of_the_user(
    transcript: tuple[ChainLog, list[Message]], name: str
) -> None:
    path = compacted(transcript, Strategy(name), 100_000)
    assert path.unknown_at is None
    assert path.compactions
    for each in path.compactions:
        assert each.kept is not None
        assert each.kept.tokens < each.before
        assert not each.kept.has_call
        assert each.kept.pins_kept is not None and each.kept.pins is not None  # noqa: PT018 -- for the types
        assert each.kept.pins_kept <= each.kept.pins
    if name == "default":
        assert all(each.kept and each.kept.pins_kept == each.kept.pins for each in path.compactions)


def test_a_lower_goal_leaves_less(transcript: tuple[ChainLog, list[Message]]) -> None:
    sizes = [
        compacted(transcript, Strategy("default", goal), 100_000).compactions[0].after
        for goal in (0.2, 0.4)
    ]
    assert sizes[0] is not None and sizes[1] is not None  # noqa: PT018 -- for the types
    assert sizes[0] < sizes[1]


@pytest.mark.extended
def test_a_goal_above_the_size_changes_nothing(
    transcript: tuple[ChainLog, list[Message]],
) -> None:
    path = compacted(transcript, Strategy("default", 0.9), 100_000)
    assert path.futile > 0


def test_what_was_cleared_is_gone() -> None:
    recording = Recording("claude-transcript", window=200_000).begin()
    for number in range(6):
        recording.prompt(f"question {number} " + "before " * 4_000).respond(20_000 + 9_000 * number)
    recording.reset()
    for number in range(6):
        recording.prompt(f"question {number} " + "after " * 4_000).respond(15_000 + 9_000 * number)
    log, everything = log_and_messages(recording.take())
    after = EngineAfter(log, everything, Strategy("seed-001"))
    reset = next(index for index, each in enumerate(log.between) if each.is_reset)
    kept = after(reset + 5, 60_000)
    assert kept is not None
    assert kept.pins is not None
    assert kept.pins < 12


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown profile"):
        Strategy("best").profile(0.8)
