"""Cline's messages as those of a conversation."""

from contextgauge.normalise.cline.sessions import conversation


def test_an_answer_without_counts_has_no_usage() -> None:
    answer = conversation({"role": "assistant", "content": "Done.", "id": "a1"})
    assert answer["message"] == {"role": "assistant", "content": "Done.", "id": "a1"}
