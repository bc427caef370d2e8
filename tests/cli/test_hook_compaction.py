"""`contextgauge hook compaction`: transcripts get the starts and ends that they do not have."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from streams.codec.cloudevents import rfc3339
from tests.commands import Command
from tests.patience import PATIENCE_S

SESSION = "258c7280-ae70-4798-800f-63464d01a85d"


class Runtime:
    """A runtime that writes a transcript, and calls its hooks when it compacts."""

    def __init__(self, command: Command, folder: Path) -> None:
        self._command, self.state = command, str(folder / "state")
        self.folder = folder / "projects"
        self.path = self.folder / "-srv" / f"{SESSION}.jsonl"
        self.path.parent.mkdir(parents=True)
        self._lines = 0

    def respond(self, tokens: int) -> None:
        """Write a response."""
        usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 10}
        message = {"id": f"msg_{self._lines}", "model": "claude-sonnet-4-5", "usage": usage}
        self._write({"type": "assistant", "isSidechain": False, "message": message})

    def boundary(self) -> None:
        """Write that everything before was compacted."""
        metadata = {"trigger": "auto", "preTokens": 160_000}
        line = {"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}
        self._write(line)

    def hook(self, event: str, *options: str, **settings: str) -> str:
        """Call the hook; return what it reported."""
        given = {"session_id": SESSION, "transcript_path": str(self.path), "trigger": "auto"}
        given |= {"hook_event_name": event, "compact_summary": "Secret."}
        settings = {"STATE_FOLDER": self.state, **settings}
        done = self._command("hook", "compaction", *options, stdin=json.dumps(given), **settings)
        assert (done.returncode, done.stdout) == (0, "")
        return done.stderr

    def shown(self, command: str, *options: str) -> Any:
        """Return what a command shows of the transcript, as JSON."""
        done = self._command(command, str(self.path), "--json", *options, STATE_FOLDER=self.state)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        return json.loads(lines[0]) if command != "events" else list(map(json.loads, lines))

    def _write(self, line: dict[str, Any]) -> None:
        self._lines += 1
        now = rfc3339(time.time_ns() // 1_000_000)
        own = {"sessionId": SESSION, "uuid": f"u{self._lines}", "timestamp": now}
        with self.path.open("a") as file:
            file.write(f"{json.dumps(line | own)}\n")


def kind_of(event: dict[str, Any]) -> str:
    """Return the kind of a record that is a CloudEvent."""
    return str(event["type"].split(".")[1])


@pytest.fixture
def runtime(command: Command, tmp_path: Path) -> Runtime:
    return Runtime(command, tmp_path)


@pytest.mark.extended
def test_a_compaction_under_way_is_shown_and_then_how_long_it_took(runtime: Runtime) -> None:
    runtime.respond(160_000)
    assert runtime.shown("status")["status"]["state"] == "measured"
    assert runtime.hook("PreCompact") == ""
    assert runtime.shown("status")["status"]["state"] == "compacting"
    runtime.boundary()
    assert runtime.hook("PostCompact") == ""
    runtime.respond(20_000)
    document = runtime.shown("status")
    assert document["status"]["state"] == "measured"
    (compaction,) = document["compactions"]["last"]
    assert compaction["duration_source"] == "paired"
    assert 0 <= compaction["duration_ms"] < PATIENCE_S * 1_000
    records = runtime.shown("events")
    (start,) = [each["data"] for each in records if kind_of(each) == "compaction_start"]
    assert start["trigger_reason"] == "threshold_exceeded"


def test_a_compaction_that_did_not_end_has_failed_for_an_unknown_reason(runtime: Runtime) -> None:
    runtime.respond(160_000)
    runtime.hook("PreCompact")
    runtime.respond(165_000)
    kinds = {kind_of(each): each["data"] for each in runtime.shown("events")}
    assert kinds["compaction_failed"]["outcome"] == "unknown"


@pytest.mark.extended
def test_the_view_shows_it_live_and_after_a_new_start(runtime: Runtime, command: Command) -> None:
    runtime.respond(160_000)

    def started() -> tuple[Any, str]:
        view = command.start("view", str(runtime.folder), "--port", "0", STATE_FOLDER=runtime.state)
        assert view.stdout is not None
        return view, view.stdout.readline().split(" at ")[1].split()[0].rstrip("/")

    def until(url: str, is_so: Callable[[Any], bool]) -> Any:
        ends_s = time.monotonic() + PATIENCE_S
        while True:
            with urllib.request.urlopen(f"{url}/v1/sessions", timeout=PATIENCE_S) as answer:
                sessions = json.loads(answer.read())["sessions"]
            if sessions and is_so(sessions[0]):
                return sessions[0]
            assert time.monotonic() < ends_s, sessions
            time.sleep(0.05)

    view, url = started()
    until(url, lambda session: session["status"]["state"] == "measured")
    runtime.hook("PreCompact")
    until(url, lambda session: session["status"]["state"] == "compacting")
    view.terminate()
    view.wait(PATIENCE_S)
    view, url = started()
    until(url, lambda session: session["status"]["state"] == "compacting")
    runtime.boundary()
    runtime.hook("PostCompact")
    runtime.respond(20_000)
    live = until(url, lambda session: session["chains"]["main"]["used_tokens"] == 20_000)
    (compaction,) = live["compactions"]["last"]
    assert compaction["duration_source"] == "paired"
    shown = runtime.shown("status")
    assert shown["compactions"] == live["compactions"]
    assert shown["sequence"] == live["sequence"]


class Ingest:
    """A service that takes messages."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, str], list[dict[str, Any]]]] = []
        ingest = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                lines = list(map(json.loads, body.splitlines()))
                ingest.taken.append((self.path, dict(self.headers), lines))
                self.send_response(202)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def ingest() -> Iterator[Ingest]:
    ingest = Ingest()
    serving = threading.Thread(target=ingest.server.serve_forever, args=(0.01,))
    serving.start()
    yield ingest
    ingest.server.shutdown()
    serving.join()
    ingest.server.server_close()


def test_messages_are_sent_with_the_token_and_without_text(
    runtime: Runtime, ingest: Ingest, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret\n")
    options = ("--url", ingest.url, "--token-file", str(tmp_path / "token"))
    assert runtime.hook("PreCompact", *options) == ""
    assert runtime.hook("PostCompact", *options) == ""
    (path, headers, start), (_, _, end) = ingest.taken
    assert path == "/v1/messages"
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Content-Type"] == "application/x-ndjson"
    assert headers["Idempotency-Key"] == start[-1]["uuid"]
    assert [each.get("trigger") for each in start] == ["auto", None]
    assert start[1]["status"] == "compacting"
    assert (end[0]["status"], end[0]["compact_result"]) == (None, "success")
    assert {each["session_id"] for each in start + end} == {SESSION}
    assert "Secret" not in json.dumps([start, end])


def test_a_service_that_is_away_is_reported_and_this_machine_knows(runtime: Runtime) -> None:
    runtime.respond(160_000)
    error = runtime.hook("PreCompact", "--url", "http://127.0.0.1:1")
    assert error.startswith("contextgauge hook compaction: http://127.0.0.1:1 cannot be reached")
    assert len(error.splitlines()) == 1
    assert runtime.shown("status")["status"]["state"] == "compacting"


@pytest.mark.extended
def test_messages_are_published_to_kafka(
    runtime: Runtime, command: Command, settings: dict[str, str]
) -> None:
    assert command("topics", "create", **settings).returncode == 0
    assert runtime.hook("PreCompact", "--kafka", **settings) == ""
    done = command("replay", "--topic", "messages", **settings)
    kinds = [kind_of(json.loads(line)) for line in done.stdout.splitlines()]
    assert kinds == ["compaction_start"]
    away = runtime.hook("PreCompact", "--kafka")
    assert away.startswith("contextgauge hook compaction: ")
    assert "127.0.0.1:1" in away


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "it is no JSON object"),
        ('{"hook_event_name": "PreCompact"}', "it has no session_id"),
        ('{"session_id": "s", "hook_event_name": "Stop"}', "Stop is no hook of a compaction"),
    ],
)
def test_wrong_input_is_reported_and_is_harmless(command: Command, given: str, why: str) -> None:
    done = command("hook", "compaction", stdin=given)
    assert (done.returncode, done.stdout) == (0, "")
    assert why in done.stderr
