"""How large the text of a compaction becomes with each message that it has to say more."""

from contextgauge.compaction.carried.digest import PlacedEntry
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.tail_growth import TextTokens, text_size
from contextgauge.compaction.messages import Carried, DigestEntry


def test_a_text_that_comes_again_behind_a_cut_takes_its_room_before_it() -> None:
    said_twice = DigestEntry(1, "m", "agent", "Let me look into src/app.py. " * 10)
    todos = [DigestEntry(1, "m", "todos", "x" * size) for size in (300, 900)]
    turn = PlacedEntry(2, DigestEntry(2, "u", "user", "Go on. " * 20))
    entries = [*map(PlacedEntry, (0, 6), [said_twice] * 2), *map(PlacedEntry, (1, 7), todos), turn]
    entries.sort(key=lambda each: each.position)
    before = text_size(Carried(), entries, (), 8, TextTokens(0, 0, 0), ESTIMATE).before
    once = text_size(Carried(), entries[:3], (), 8, TextTokens(0, 0, 0), ESTIMATE).before
    assert before[6] == once[6] > 100
    assert before[7] == before[6]
    assert before[8] > before[7]
