"""What each key changes in `contextgauge top`, and which bytes are which key."""

from dataclasses import replace

import pytest

from schemas.views import ChainView, Identity, SessionView
from streams.cli.top.keys import Keys
from streams.cli.top.state import COLUMNS, Chosen, matching, place_of, press, rows
from tests.cases.views import ATTEMPT, SESSION


def view(session_id: str, model: str = "m", cwd: str | None = None) -> SessionView:
    return replace(
        SESSION,
        session_id=session_id,
        identity=Identity(model=model, cwd=cwd, runtime="codex"),
        chains={"main": ChainView(chain="main", model=model)},
    )


NOW_MS = 1_800_000_000_000
VIEWS = [view(f"s{number}", f"model-{number % 2}", "/src/Ä") for number in range(30)]


def pressed(*keys: str, chosen: Chosen | None = None) -> Chosen:
    chosen = chosen or Chosen()
    for key in keys:
        chosen = press(chosen, key, matching(VIEWS, chosen.filter, NOW_MS))
    return chosen


def test_sorting_and_leaving() -> None:
    assert (pressed("r").ranking, pressed("r").sort) == ("recent", "Active")
    assert pressed("r", "p").ranking == "pressure"
    assert pressed("R").reverse
    assert not pressed("R", "r").reverse
    assert pressed("q").leaving
    assert pressed("enter", "q").leaving
    assert pressed("x", "é", "escape") == Chosen()


def test_the_selection_moves_and_stays_within_the_rows() -> None:
    assert pressed("down").selected == "s1"
    assert pressed("j", "j", "k").selected == "s1"
    assert pressed("up").selected == "s0"
    assert pressed("page down", "page down").selected == "s20"
    assert pressed("end").selected == "s29"
    assert pressed("end", "down").selected == "s29"
    assert pressed("end", "page up", "home").selected == "s0"


def test_a_selection_stays_with_its_session() -> None:
    chosen = pressed("down", "down")
    assert chosen.selected == "s2"
    assert place_of("s2", VIEWS[::-1]) == 27
    assert place_of("gone", VIEWS) == 0
    assert place_of(None, []) == 0


def test_enter_opens_and_escape_closes() -> None:
    opened = pressed("down", "enter")
    assert (opened.opened, opened.selected) == ("s1", "s1")
    assert pressed("enter").opened == "s0"
    assert pressed("down", "down", "up", chosen=opened).scroll == 1
    assert pressed("up", chosen=opened).scroll == 0
    assert pressed("page down", "home", chosen=opened).scroll == 0
    assert pressed("p", chosen=opened) == opened
    for key in ("escape", "enter", "backspace"):
        assert pressed(key, chosen=opened).opened is None
    assert press(Chosen(), "enter", []).opened is None
    assert press(Chosen(), "down", []).selected is None


def test_a_filter_is_typed_kept_and_dropped() -> None:
    typing = pressed("/", "q", "p", "é", "backspace")
    assert (typing.typing, typing.filter, typing.leaving) == (True, "qp", False)
    filtered = pressed("enter", chosen=typing)
    assert (filtered.typing, filtered.filter) == (False, "qp")
    assert pressed("escape", chosen=typing) == Chosen()
    assert pressed("escape", chosen=filtered) == Chosen()
    assert pressed("clear", chosen=typing).filter == ""
    assert pressed("up", chosen=typing) == typing


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 30),
        ("model-1", 15),
        ("MODEL-1 s2", 5),
        ("s2 ä", 11),
        ("codex", 30),
        ("unknown", 30),
        ("z", 0),
    ],
)
def test_a_filter_looks_for_all_of_its_words(text: str, number: int) -> None:
    assert len(matching(VIEWS, text, NOW_MS)) == number


def measured(session_id: str, percent: float, silent_ms: int | None) -> SessionView:
    chain = ChainView(
        chain="main", state="measured", used_tokens=int(percent * 1_000), used_percent=percent
    )
    last_ms = None if silent_ms is None else NOW_MS - silent_ms
    return replace(view(session_id), chains={"main": chain}, last_ms=last_ms)


HALF_AN_HOUR_MS = 30 * 60_000


def test_the_filter_finds_a_session_by_its_state() -> None:
    old = measured("s", 80.0, 10 * HALF_AN_HOUR_MS)
    assert matching([old], "quiet", NOW_MS) == [old]
    assert matching([old], "measured", NOW_MS) == []
    stalled = replace(old, attempt=replace(ATTEMPT, started_ms=NOW_MS - 10 * HALF_AN_HOUR_MS))
    assert matching([stalled], "compacting stalled", NOW_MS) == [stalled]


def test_live_sessions_come_before_stale_ones_in_every_order() -> None:
    old, fuller = measured("old", 75.0, HALF_AN_HOUR_MS), measured("fuller", 80.0, 10**10)
    live, less = measured("live", 75.0, 1_000), measured("less", 10.0, 2_000)
    views = [fuller, old, less, live]

    def order(chosen: Chosen) -> list[str]:
        return [each.session_id for each in rows(views, chosen, NOW_MS)]

    assert order(Chosen()) == ["live", "less", "fuller", "old"]
    assert order(Chosen(reverse=True)) == ["less", "live", "old", "fuller"]
    assert order(pressed("r")) == ["live", "less", "old", "fuller"]


def test_an_abandoned_compaction_does_not_keep_a_session_among_the_live_ones() -> None:
    attempt = replace(ATTEMPT, started_ms=NOW_MS - 10**10)
    abandoned = replace(measured("abandoned", 90.0, 10**10), attempt=attempt)
    working = replace(abandoned, session_id="working", last_ms=NOW_MS)
    live = measured("live", 10.0, 1_000)
    shown = rows([abandoned, live, working], Chosen(), NOW_MS)
    assert [each.session_id for each in shown] == ["working", "live", "abandoned"]


def test_any_column_can_be_sorted_by() -> None:
    chosen = Chosen()
    seen = [chosen.sort]
    while (chosen := pressed(">", chosen=chosen)).sort != "Context":
        assert len(rows(VIEWS, chosen, NOW_MS)) == len(VIEWS)
        seen.append(chosen.sort)
    assert sorted(seen) == sorted(COLUMNS)
    assert pressed("right", "left", ">", "<") == Chosen()
    first, second = view("a", "z"), view("b", "y")
    by_model = Chosen(sort="Model")
    assert rows([first, second], by_model, NOW_MS) == [second, first]
    assert rows([first, second], replace(by_model, reverse=True), NOW_MS) == [first, second]


def test_unknown_values_come_last_in_both_directions() -> None:
    known, unknown = measured("known", 10.0, 1_000), replace(view("unknown"), last_ms=NOW_MS)
    for reverse in (False, True):
        shown = rows([unknown, known], Chosen(reverse=reverse), NOW_MS)
        assert [each.session_id for each in shown] == ["known", "unknown"]


def test_help_is_opened_and_closed() -> None:
    helping = pressed("?")
    assert helping.helping
    assert pressed("down", chosen=helping) == Chosen()
    assert pressed("?", chosen=helping) == Chosen()
    assert pressed("q", chosen=helping).leaving
    opened = pressed("enter")
    assert pressed("?", "?", chosen=opened) == opened


def test_the_filter_finds_a_session_by_its_title() -> None:
    views = [view("one"), view("two")]
    assert matching(views, "parser", NOW_MS, {"two": "Fix the Parser"}) == [views[1]]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b[5~\x1b[6~", ["page up", "page down"]),
        (b"\x1b[H\x1b[F\x1b[1~\x1b[4~", ["home", "end", "home", "end"]),
        (b"\r\n", ["enter", "enter"]),
        (b"\x1b", ["escape"]),
        (b"\x1bq", ["escape", "q"]),
        (b"\x7f\x08\x15", ["backspace", "backspace", "clear"]),
        (b"\x1b[1;5C\x1b[200~a", ["a"]),
        ("aÄ/".encode(), ["a", "Ä", "/"]),
        (b"\x00\x01\xff", ["\ufffd"]),
    ],
)
def test_bytes_are_keys(data: bytes, keys: list[str]) -> None:
    assert list(Keys().read(data)) == keys


def test_split_key_sequences_are_joined() -> None:
    keys = Keys()
    assert list(keys.read(b"\x1b[")) == []
    assert list(keys.read(b"6~x")) == ["page down", "x"]
    assert list(keys.read(b"\xc3")) == []
    assert list(keys.read(b"\x84")) == ["Ä"]
