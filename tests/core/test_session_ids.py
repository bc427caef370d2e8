"""Beginnings of sessions' ids: an error names what they fit."""

from streams.core.session_ids import several_begin_with


def test_a_beginning_that_fits_several_sessions_names_the_first_of_them() -> None:
    assert several_begin_with("a", ["ab", "aa"]) == (
        "2 sessions begin with 'a': give more of the id (aa, ab)"
    )
    assert several_begin_with("a", map(str, range(9))).endswith("(0, 1, 2, 3, 4, …)")
