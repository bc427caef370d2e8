"""R33: what a publisher says of the runtime's settings is a fact of the session."""

import json
from typing import Any

import pytest

from schemas.records import SessionInfo
from schemas.views import SessionView
from streams.core.projection.project import project
from streams.core.session_status import status_of
from tests.core.derivation.state_kit import Store
from tests.core.given import SESSION, Given, assistant, every, init, side, user

FILE = "~/.claude/settings.json"
WINDOW: dict[str, Any] = {"window": {"value": 150_000, "source": FILE}}
HEADER = json.dumps(WINDOW).encode()


def view_of(given: Given) -> SessionView:
    view = None
    for position, record in enumerate(given.records):
        view = project(view, record, position)
    assert view is not None
    return view


def infos(given: Given) -> list[dict[str, Any] | None]:
    return [each.compaction_settings for each in every(given.records, SessionInfo)]


def test_r33_published_settings_say_where_the_next_compaction_comes() -> None:
    given = Given()
    given.take(init())
    given.take(assistant(read=100_000), settings=HEADER)
    assert infos(given) == [None, WINDOW]
    view = view_of(given)
    assert view.identity.compaction_settings == WINDOW
    until = status_of(view).until_compaction["main"]
    assert (until.threshold_tokens, until.source, until.setting) == (117_000, "settings", FILE)


def test_r33_settings_are_a_fact_once_and_again_where_they_change() -> None:
    given = Given()
    given.take(init(), settings=HEADER)
    given.take(user(), settings=HEADER)
    stored = Store()
    stored.put(None, given.session())
    given.sessions()[SESSION] = stored.get()
    given.take(user(), settings=HEADER)
    assert infos(given) == [WINDOW]
    given.take(user(), settings=b"{}")
    given.take(user(), settings=b"{}")
    assert infos(given) == [WINDOW, {}]
    view = view_of(given)
    assert view.identity.compaction_settings == {}
    assert status_of(view).until_compaction == {}


def test_r33_nothing_set_is_no_fact() -> None:
    given = Given()
    given.take(init(), user(), settings=b"{}")
    assert infos(given) == [None]


@pytest.mark.parametrize("header", [b"", b"nonsense", b"[1]", b'{"a":"%s"}' % (b"x" * 4_096)])
def test_r33_a_header_that_is_no_small_object_counts_as_not_there(header: bytes) -> None:
    given = Given()
    given.take(init(), settings=header)
    assert infos(given) == [None]


def test_r33_a_subagents_line_changes_no_settings() -> None:
    given = Given()
    given.take(init(), settings=HEADER)
    given.take(side(user(), "a1"), settings=b'{"percent":{"value":50,"source":"x"}}')
    assert infos(given) == [WINDOW]


def test_r33_settings_and_agent_of_one_message_are_one_record() -> None:
    given = Given()
    given.take(user(), settings=HEADER, agent_id="agent-1")
    (info,) = every(given.records, SessionInfo)
    assert (info.publisher_agent_id, info.compaction_settings) == ("agent-1", WINDOW)
