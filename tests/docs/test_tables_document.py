"""The list of tables and their columns is the code's."""

from tools.list_tables import DOCUMENT, document


def test_the_list_of_columns_is_current() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == document(), "run `python -m tools.list_tables`"
