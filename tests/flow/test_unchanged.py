"""Which sessions of a local file are as deriving their files anew would leave them."""

from streams.flow.view.unchanged import Unchanged, unchanged
from streams.ports import Visits


def _unchanged(
    order: str, as_left: str, *members: tuple[str, str, int, int], without: str = ""
) -> tuple[str, str]:
    """Return files and sessions, each of which is one letter."""
    result: Unchanged = unchanged(
        order,
        as_left,
        [(path, session.encode(), Visits(*visited)) for path, session, *visited in members],
        [session.encode() for session in without],
    )
    sessions = (session.decode() for session in result.sessions)
    return "".join(sorted(result.files)), "".join(sorted(sessions))


def test_a_session_holds_whose_only_file_is_as_it_was_read() -> None:
    members = ("a", "S", 1, 4), ("b", "T", 2, 2)
    assert _unchanged("ab", "ab", *members) == ("ab", "ST")
    assert _unchanged("ab", "b", *members) == ("b", "T")
    assert _unchanged("ab", "ab", *members, without="S") == ("b", "T")


def test_a_file_without_a_session_is_not_read_again() -> None:
    assert _unchanged("ab", "ab", ("a", "S", 1, 1)) == ("ab", "S")


def test_a_session_of_several_files_holds_if_they_were_read_in_this_order() -> None:
    members = ("a", "S", 1, 1), ("b", "S", 2, 3)
    assert _unchanged("ab", "ab", *members) == ("ab", "S")
    assert _unchanged("ba", "ab", *members) == ("", "")


def test_a_session_whose_files_grew_in_turn_is_derived_again() -> None:
    assert _unchanged("ab", "ab", ("a", "S", 1, 3), ("b", "S", 2, 2)) == ("", "")
    assert _unchanged("ab", "ab", ("a", "S", 1, 2), ("b", "S", 2, 4)) == ("", "")


def test_a_session_with_a_file_that_is_gone_or_was_not_asked_for_is_derived_again() -> None:
    assert _unchanged("a", "a", ("a", "S", 1, 1), ("b", "S", 2, 2)) == ("", "")
    assert _unchanged("a", "ab", ("a", "S", 1, 1), ("b", "S", 2, 2)) == ("", "")


def test_what_shares_a_file_with_such_a_session_is_derived_again_too() -> None:
    members = (
        *(("a", "S", 1, 1), ("b", "S", 2, 2), ("b", "T", 2, 2)),
        *(("c", "T", 3, 3), ("d", "U", 4, 4)),
    )
    assert _unchanged("abcd", "abcd", *members) == ("abcd", "STU")
    assert _unchanged("abcd", "bcd", *members) == ("d", "U")
    assert _unchanged("abcd", "abcd", *members, without="ST") == ("d", "U")
