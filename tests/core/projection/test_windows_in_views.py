"""What a view keeps of windows: the one that a size passed, and that of each compaction."""

from tests.core.history import History, view_of
from tests.core.projection.test_project import main


def test_the_assumed_window_that_a_size_passed_is_remembered_until_one_is_known() -> None:
    history = History()
    before, after = history.reading(150_000), history.reading(250_000, window=None)
    assert main(view_of(before, after)).passed_window == 200_000
    void = history.limits(window=None)
    assert (
        main(view_of(before, after, void, history.reading(9, window=None))).passed_window == 200_000
    )
    assert main(view_of(before, after, history.limits())).passed_window is None
    assert main(view_of(before, after, history.reading(260_000))).passed_window is None
    assert main(view_of(after)).passed_window is None


def test_a_compaction_in_short_has_the_model_and_window_it_began_under() -> None:
    history = History()
    view = view_of(history.reading(9, window=500_000), history.boundary("auto"))
    brief = view.compactions.last[-1]
    assert (brief.model, brief.window) == ("claude-sonnet-5", 500_000)
