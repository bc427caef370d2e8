"""How a passage of the digest is cut: what of it goes first."""

from contextgauge.compaction.carried.digest_groups import cut, size_of
from contextgauge.compaction.carried.digest_room import within
from contextgauge.compaction.messages import DigestEntry


def test_of_an_agents_text_the_longest_lines_are_cut() -> None:
    text = f"{'I read the parser. ' * 20}\nMay I drop the table?\n\n{'All tests pass. ' * 20}"
    entry = DigestEntry(1, "m1", "agent", text)
    shorter = cut(entry, 400, 1 / 3)
    first, question, last = shorter.text.split("\n")
    assert question == "May I drop the table?"
    assert first.startswith("I read the parser. ")
    assert first.endswith("…")
    assert last.startswith("All tests pass. ")
    assert (shorter.end, shorter.omitted) == ("", len(text) - len(shorter.text))
    assert size_of(shorter) <= 400
    again = cut(shorter, 300, 1 / 3)
    assert question in again.text
    assert again.omitted == len(text) - len(again.text)


def test_where_no_line_would_say_anything_the_longest_are_left_out() -> None:
    text = f"{'I read the parser. ' * 50}\nMay I drop the table?\n{'All tests pass. ' * 40}"
    shorter = cut(DigestEntry(1, "m1", "agent", text), 120, 1 / 3)
    assert shorter.text == "…\nMay I drop the table?\n…"
    assert size_of(shorter) <= 120
    assert shorter.omitted == len(text) - len(shorter.text)


def test_where_there_is_no_room_for_a_line_the_ends_are_left_out() -> None:
    entry = DigestEntry(1, "m1", "agent", "First line.\n\nLast line." * 20)
    shorter = cut(entry, 10, 1 / 3)
    assert (shorter.text, shorter.end) == ("", "")
    assert shorter.omitted == len(entry.text)


def test_what_is_pasted_in_a_fence_gives_way_before_what_a_turn_says() -> None:
    pasted = "Never log names.\n```\n" + "log line\n" * 300 + "```\nNor mail addresses."
    listed = "\n".join(f"{number}. requirement {number}" for number in range(150))
    entries = [DigestEntry(1, "u", "user", pasted), DigestEntry(2, "u", "user", listed)]
    first, second = within(entries, 4_500, turns=4_500)
    assert second == entries[1]
    assert first.text.startswith("Never log names.\n```\nlog line\n")
    assert first.end.endswith("log line\n```\nNor mail addresses.")
    assert len(first.text) + first.omitted + len(first.end) == len(pasted)
    assert pasted.startswith(first.text)
    assert pasted.endswith(first.end)
    shorter, _ = within(entries, 1_500)
    assert (shorter.text[:5], shorter.end[-5:]) == ("Never", "sses.")
