"""Whose session an alert is about: its agent, and its folder's name."""

import pytest

from streams.core.alerts.alert import Who
from streams.core.alerts.rules import Pressure
from streams.core.alerts.words import sentence
from tests.core.alerts.test_watch import Watched, at, rule
from tests.core.given import MODEL, SESSION, init


def test_alerts_name_the_agent_once_it_is_known() -> None:
    watched = Watched(rule(Pressure(50)))
    watched.take(init(at=0), agent_id="builder")
    (alert,) = watched.take(at(60, 1, "a"))
    assert alert.who == Who("builder", "repo")
    assert sentence(alert).startswith(f"agent builder, session {SESSION} in repo ({MODEL}): ")
    assert alert.of(Who("other", "elsewhere")).who == alert.who
    (unknown,) = Watched(rule(Pressure(50))).take(at(60, 1, "a"))
    assert unknown.who == Who()
    assert unknown.of(Who("other", "elsewhere")).who == Who("other", "elsewhere")


def test_the_agent_of_a_session_is_remembered() -> None:
    watched = Watched(rule(Pressure(50)))
    watched.take(init(at=0), agent_id="builder")
    watched.take(init(at=1) | {"cwd": "/src/other"})
    (alert,) = watched.take(at(60, 2, "a"))
    assert alert.who == Who("builder", "other")


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [
        ("/src/app", "app"),
        ("/src/app/", "app"),
        ("C:\\src\\app", "app"),
        ("app", "app"),
        ("/", None),
        (" ", None),
        (None, None),
    ],
)
def test_a_folder_is_called_by_its_own_name(cwd: str | None, folder: str | None) -> None:
    assert Who.of(None, cwd) == Who(None, folder)
