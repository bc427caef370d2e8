"""The table of settings is the code's."""

from tools.list_settings import DOCUMENT, document


def test_the_table_of_settings_is_current() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == document(), "run `python -m tools.list_settings`"
