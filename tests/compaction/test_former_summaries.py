"""Summaries that a runtime wrote itself: all that is left of what came before them."""

from dataclasses import replace

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ContextCompaction, Message
from tests.compaction.conversations import said
from tests.compaction.test_compactor import talk


async def test_a_runtimes_own_summary_is_whole_where_half_of_the_goal_has_room_for_it() -> None:
    summary = "\n".join(f"Fact {number}: " + "of interest " * 8 for number in range(100))
    marker = ContextCompaction(1, 0, summary, 0, 0, prose=summary)
    history = History([Message("user", (marker,)), *talk(60)])
    receipt = await Compactor().compact(history, ModelCall(window_tokens=20_000))
    assert receipt is not None
    text = history.active[0].text
    assert all(f"> Fact {number}: " in text for number in range(100))


async def test_instructions_of_a_runtime_are_not_cut_while_all_fits_the_goal() -> None:
    rules = "Always use tabs. " * 400
    message = replace(said("user", rules), from_user=False)
    history = History([message, *talk(12, 100)])
    assert await Compactor().compact(history, ModelCall(window_tokens=200_000)) is None
    assert history.active[0].text == rules
