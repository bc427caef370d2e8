"""What is said of many sessions at once, given real messages."""

from schemas.views import SessionView
from streams.core.projection.project import project
from streams.core.session_status import AT_WORK_MS, BANDS, session_figures
from tests.core.given import (
    AUTO,
    START_MS,
    Body,
    Given,
    assistant,
    boundary,
    compacting,
    failed,
    init,
)

NOW_MS = START_MS + 600_000


def view(*bodies: Body, session: str = "s") -> SessionView:
    """Return the view that a session's messages fold into."""
    found: SessionView | None = None
    for offset, record in enumerate(
        Given().take(*({**body, "session_id": session} for body in bodies))
    ):
        found = project(found, record, offset + 1)
    assert found is not None
    return found


def full(percent: float, at: float = 500) -> Body:
    return assistant(f"r{percent}", read=int(2_000 * percent), at=at)


def test_sessions_are_counted_by_how_full_they_are() -> None:
    views = [view(full(percent)) for percent in (0.5, 49.9, 50, 79.9, 80, 90, 99.9, 100)]
    views.append(view(compacting(at=500)))
    bands = session_figures(views, NOW_MS).bands
    assert bands == {
        "unknown": 1,
        "below_50": 2,
        "50_to_80": 2,
        "80_to_90": 1,
        "90_to_100": 2,
        "over_100": 1,
    }
    assert list(bands) == list(BANDS)


def test_the_fullest_chain_counts() -> None:
    subagent = {**full(95), "parent_tool_use_id": "toolu_1"}
    assert session_figures([view(full(20), subagent)], NOW_MS).bands["90_to_100"] == 1


def test_sessions_that_are_not_at_work_do_not_count() -> None:
    views = [view(full(90)), view(full(90, at=0)), view(assistant("a", read=100))]
    found = session_figures(views, START_MS + 500_000 + AT_WORK_MS)
    assert sum(found.bands.values()) == 1


def test_attempts_and_the_silence_of_the_quietest() -> None:
    views = [
        view(compacting(at=100), compacting(at=130)),
        view(compacting(at=200)),
        view(compacting(at=50), failed(at=60)),
    ]
    found = session_figures(views, NOW_MS)
    assert (found.attempts, found.silent_ms) == (2, 470_000)
    untold = view(compacting(), init(at=400))
    assert session_figures([untold], NOW_MS).silent_ms == 200_000
    assert session_figures([], NOW_MS).silent_ms == 0


def test_a_chain_that_is_compacted_again_and_again_thrashes() -> None:
    def compacted(*seconds: float) -> SessionView:
        return view(*(body for at in seconds for body in (full(50, at), boundary(AUTO, at=at))))

    assert session_figures([compacted(100, 200, 300)], NOW_MS).thrashing == 1
    assert session_figures([compacted(100, 200)], NOW_MS).thrashing == 0
    assert session_figures([compacted(100, 200, 300)], NOW_MS + 700_000).thrashing == 0
    none_told = view(*[boundary(AUTO) for _ in range(4)], full(1))
    assert session_figures([none_told], NOW_MS).thrashing == 0
    failing = view(*[body for _ in range(4) for body in (compacting(at=400), failed(at=401))])
    assert session_figures([failing], NOW_MS).thrashing == 0
