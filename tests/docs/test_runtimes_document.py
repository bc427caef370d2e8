"""The table of runtimes is the code's, and has all that are read."""

from contextgauge.normalise.runtimes import RUNTIMES
from tools.list_runtimes import DOCUMENT, document


def test_the_table_of_runtimes_is_current() -> None:
    shown = DOCUMENT.read_text(encoding="utf-8")
    assert shown == document(), "run `python -m tools.list_runtimes`"


def test_every_runtime_that_is_read_says_what_its_files_show() -> None:
    assert [each.label for each in RUNTIMES if each.is_read and each.tells is None] == []
    assert [each.label for each in RUNTIMES if not each.is_read and each.tells is not None] == []
    assert [each.label for each in RUNTIMES if each.tells is not None and not each.folders] == []
