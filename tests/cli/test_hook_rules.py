"""`contextgauge hook`: lost turns go back to the runtime, and nothing else happens to it."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streams.cli import hook_rules
from streams.cli.hook import app
from streams.cli.hook_rules import MOST_CHARACTERS, context_of

SESSION = "5b1f 0c/2e"


def lost(**changes: Any) -> dict[str, Any]:
    """Return the check of a compaction a moment ago."""
    return {
        "boundary_id": "b-1",
        "number": 1,
        "time_ms": int(time.time() * 1_000),
        "pins_kept": 2,
        "pins_lost": 1,
        "lost_pins": ["Never push\nto main."],
    } | changes


class Api:
    """The rules as a server tells them: one answer after the other, the last one stays."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any] | int | None] = [lost()]
        self.asked: list[tuple[str, str | None]] = []
        self.as_of: dict[str, Any] = {"stale": False, "lag_records": 0}
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/v1/projection":
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(json.dumps({"as_of": api.as_of}).encode())
                    return
                api.asked.append((self.path, self.headers["Authorization"]))
                answer = api.answers.pop(0) if len(api.answers) > 1 else api.answers[0]
                status = answer if isinstance(answer, int) else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{api.url}/elsewhere")
                self.end_headers()
                self.wfile.write(json.dumps({"rules": answer}).encode())

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    api = Api()
    serving = threading.Thread(target=api.server.serve_forever, args=(0.01,))
    serving.start()
    yield api
    api.server.shutdown()
    serving.join()
    api.server.server_close()


def run(api: Api, command: str, *options: str, given: object = None) -> tuple[Any, str]:
    """Run a hook; return what it printed as JSON, and what it reported."""
    body = {"session_id": SESSION, "source": "compact"} if given is None else given
    value = body if isinstance(body, str) else json.dumps(body)
    done = CliRunner().invoke(app, [command, "--url", api.url, *options], input=value)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout) if done.stdout else None, done.stderr


def test_lost_turns_are_handed_back_after_a_compaction(api: Api) -> None:
    output, _ = run(api, "session-start")
    specific = output["hookSpecificOutput"]
    assert specific["hookEventName"] == "SessionStart"
    assert specific["additionalContext"].endswith("left it out:\n- Never push to main.")
    assert api.asked == [("/v1/sessions/5b1f%200c%2F2e/rules", None)]


def test_each_compaction_is_handed_back_once(api: Api) -> None:
    assert run(api, "user-prompt-submit")[0]["hookSpecificOutput"]["additionalContext"]
    assert run(api, "user-prompt-submit") == (None, "")
    api.answers = [lost(boundary_id="b-2")]
    assert run(api, "user-prompt-submit")[0] is not None


def test_what_could_not_be_written_is_handed_back_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Sequence[bytes]) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as on_a_full_disk:
        on_a_full_disk.setattr(hook_rules, "write_lines", full)
        assert "No space left" in run(api, "user-prompt-submit")[1]
    assert run(api, "user-prompt-submit")[0] is not None


def test_it_waits_for_the_check_of_a_new_boundary(api: Api) -> None:
    old = lost(boundary_id="b-0", time_ms=1_000)
    unchecked = lost(pins_kept=None, pins_lost=None, lost_pins=None)
    api.as_of = {"stale": False, "lag_records": 3}
    api.answers = [404, None, old, unchecked, lost()]
    assert run(api, "session-start", "--wait", "60")[0] is not None
    assert len(api.asked) == 5


def test_a_session_that_is_not_published_is_not_waited_for(api: Api) -> None:
    api.answers = [404]
    assert run(api, "session-start", "--wait", "60") == (None, "")
    assert len(api.asked) == 1


@pytest.mark.parametrize("as_of", [{"stale": True}, {"stale": False, "lag_records": 1}])
def test_a_session_that_the_views_may_not_have_yet_is_waited_for(
    api: Api, as_of: dict[str, Any]
) -> None:
    api.as_of, api.answers = as_of, [404, lost()]
    assert run(api, "session-start", "--wait", "60")[0] is not None


def test_it_does_not_wait_for_ever(api: Api) -> None:
    api.answers = [None]
    assert run(api, "session-start", "--wait", "0.1") == (None, "")


def test_nothing_lost_gives_nothing(api: Api) -> None:
    api.answers = [lost(pins_lost=0, lost_pins=[])]
    assert run(api, "session-start") == (None, "")


@pytest.mark.parametrize("source", ["startup", "resume", "clear", None])
def test_other_session_starts_do_nothing(api: Api, source: str | None) -> None:
    given = {"session_id": SESSION, "source": source}
    assert run(api, "session-start", given=given) == (None, "")
    assert not api.asked


@pytest.mark.parametrize("given", ["", "no json", "[]", "{}", '{"session_id": 7}'])
def test_wrong_input_is_reported_and_is_harmless(api: Api, given: str) -> None:
    output, error = run(api, "session-start", given=given)
    assert output is None
    assert error.startswith("contextgauge hook session-start: ")


def test_an_api_that_fails_or_is_away_is_harmless(api: Api) -> None:
    api.answers = [500]
    assert "500" in run(api, "session-start")[1]
    output, error = run(api, "session-start", "--url", "http://127.0.0.1:1")
    assert (output, error[:31]) == (None, "contextgauge hook session-start")
    assert "begin it with" in run(api, "session-start", "--url", "file:///etc/passwd")[1]


def test_the_token_is_sent(api: Api, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    run(api, "session-start", "--token-file", str(token))
    assert api.asked[0][1] == "Bearer secret"


def test_the_token_goes_to_the_named_server_only(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    api.answers = [302]
    error = run(api, "session-start", "--token-file", str(token))[1]
    assert "302" in error
    assert len(api.asked) == 1
    monkeypatch.setenv("http_proxy", api.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    other = "http://127.0.0.1:1"
    assert run(api, "session-start", "--token-file", str(token), "--url", other)[0] is None
    assert len(api.asked) == 1


def test_what_has_no_room_is_counted() -> None:
    text = context_of(["x" * 200] * 20, 30)
    assert len(text) <= MOST_CHARACTERS + 40
    assert text.count("\n- ") == 8
    assert text.endswith("(22 more: ask the user)")
