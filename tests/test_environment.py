"""The environment of the tests has nothing of the one who runs them."""

from pathlib import Path

from tests.environment import settle

OF_A_DEVELOPER = {
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "CLAUDE_CONFIG_DIR": "/of/me/.claude",
    "CODEX_HOME": "/of/me/.codex",
    "CONTEXTGAUGE_DEFAULT_WINDOW": "5",
    "COLUMNS": "37",
    "FORCE_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
    "XDG_STATE_HOME": "/of/me/state",
    "http_proxy": "http://127.0.0.1:9",
}
KEPT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "Pacific/Apia", "CI": "1"}


def test_a_developers_variables_and_home_are_not_those_of_tests() -> None:
    environment = {**OF_A_DEVELOPER, **KEPT, "HOME": "/of/me", "TERM": "dumb"}
    settle(environment)
    home, cache = Path(environment.pop("HOME")), Path(environment.pop("XDG_CACHE_HOME"))
    assert list(home.iterdir()) == []
    assert cache.is_absolute()
    assert environment == {**KEPT, "TERM": "xterm"}
