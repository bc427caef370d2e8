"""`contextgauge mcp`, driven by the official client: over stdio, HTTP, and against a service."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.commands import Command, command_environment
from tests.patience import PATIENCE_S
from tests.runtimes.opencode_database import OpencodeDatabase

READING = ["compactions", "context", "recall", "sessions"]


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transcripts with compactions."""
    folder: Path = tmp_path_factory.mktemp("projects")
    simulated = sample_sessions(SimulationOptions(providers=("claude",)))
    write_folder(folder, ((each.file, each.value) for each in simulated))
    return folder


@asynccontextmanager
async def stdio(folder: Path, *arguments: str, **environment: str) -> AsyncIterator[Client]:
    """Start the server as a runtime does, in the folder in which the agent works."""
    root = Path(__file__).parents[2]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "streams", "mcp", *arguments],
        cwd=folder,
        env=command_environment({}) | {"PYTHONPATH": str(root), **environment},
    )
    async with Client(stdio_client(parameters)) as client:
        yield client


async def answer_of(client: Client, tool: str, **arguments: Any) -> Any:
    """Return what a tool answers, which must be no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content or result.content[0].text  # type: ignore[union-attr]  # a text


async def error_of(client: Client, tool: str, **arguments: Any) -> str:
    """Return the error that a tool answers."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]  # a text


def shown(command: Command, path: Path) -> dict[str, Any]:
    """Return what `status --json` shows of a session."""
    done = command("status", str(path), "--json")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def main_file(projects: Path) -> Path:
    """Return a transcript whose session was compacted."""
    files = (path for path in sorted(projects.rglob("*.jsonl")) if "subagents" not in path.parts)
    marks = ("compact_boundary", "parentUuid", "isCompactSummary")
    return next(path for path in files if all(mark in path.read_text() for mark in marks))


@pytest.mark.extended
async def test_over_stdio_an_agent_sees_what_status_shows(projects: Path, command: Command) -> None:
    path = main_file(projects)
    document = shown(command, path)
    chain = document["chains"]["main"]
    async with stdio(projects, str(projects)) as client:
        assert sorted(tool.name for tool in (await client.list_tools()).tools) == READING
        context = await answer_of(client, "context", session=path.stem)
        assert context["session_id"] == path.stem
        assert context["used_tokens"] == chain["used_tokens"]
        assert context["window_tokens"] == chain["window"]
        assert context["used_percent"] == chain["used_percent"]
        kinds = {part["kind"]: part["tokens"] for part in document["filling"] if part["tokens"]}
        assert {part["kind"]: part["tokens"] for part in context["filled_by"]} == kinds
        by_prefix = await answer_of(client, "context", session=path.stem[:10])
        assert by_prefix == context


async def test_a_session_of_a_runtimes_database_is_found_by_id_and_by_folder(
    tmp_path: Path,
) -> None:
    written = OpencodeDatabase(tmp_path / "opencode.db")
    for number, session in enumerate(("ses_a1", "ses_b2"), 1):
        written.session(session, directory=str(tmp_path))
        written.answer(session, fresh=1_000 * number)
    written.close()
    async with stdio(tmp_path, str(tmp_path / "opencode.db")) as client:
        by_id = await answer_of(client, "context", session="ses_a")
        assert (by_id["session_id"], by_id["used_tokens"]) == ("ses_a1", 1_000)
        newest = await answer_of(client, "context")
        assert (newest["session_id"], newest["used_tokens"]) == ("ses_b2", 2_000)
        assert "2 sessions begin with" in await error_of(client, "context", session="ses_")


def _joined(projects: Path, file: Path) -> Path:
    """Write two sessions into one file."""
    transcripts = sorted(path for path in projects.rglob("*.jsonl") if "agent-" not in path.name)
    file.write_bytes(b"".join(path.read_bytes() for path in transcripts[:2]))
    return file


@pytest.mark.extended
async def test_a_file_that_is_named_may_have_several_sessions(
    projects: Path, tmp_path: Path
) -> None:
    file = _joined(projects, tmp_path / "sessions.jsonl")
    async with stdio(tmp_path, str(file)) as client:
        listed = (await answer_of(client, "sessions"))["sessions"]
        assert len(listed) == 2
        for session in listed:
            name = session["session_id"]
            answer = await answer_of(client, "context", session=name)
            assert answer["used_tokens"] == session["used_tokens"], answer
            assert (await answer_of(client, "compactions", session=name))["session_id"] == name


@pytest.mark.extended
async def test_of_several_sessions_that_work_in_a_folder_none_is_guessed(tmp_path: Path) -> None:
    written = OpencodeDatabase(tmp_path / "opencode.db", begin_ms=time.time_ns() // 1_000_000)
    for session in ("ses_a1", "ses_b2"):
        written.session(session, directory=str(tmp_path))
        written.answer(session, fresh=1_000)
    written.close()
    async with stdio(tmp_path, str(tmp_path / "opencode.db")) as client:
        newest = await answer_of(client, "context")
        assert newest["also_active_in_this_folder"] == ["ses_a1"]
        for tool, arguments in (("compactions", {}), ("recall", {"text": "word"})):
            error = await error_of(client, tool, **arguments)
            assert "several sessions work in this folder" in error
            assert "ses_b2, ses_a1" in error


@pytest.mark.extended
async def test_compactions_and_what_left_the_context_are_found(
    projects: Path, command: Command
) -> None:
    path = main_file(projects)
    document = shown(command, path)
    async with stdio(projects, str(projects)) as client:
        listed = await answer_of(client, "compactions", session=path.stem, limit=1)
        own = document["compactions"]
        assert listed["total"] == own["manual"] + own["automatic"]
        assert listed["compactions"][0]["tokens_before"] == own["last"][0]["tokens_before"]
        assert "summary" not in listed["compactions"][0]
        whole = await answer_of(client, "compactions", session=path.stem, summaries=True)
        assert whole["compactions"][0]["summary"]
        first = next(
            body["message"]["content"]
            for body in map(json.loads, path.read_text().splitlines())
            if body["type"] == "user" and isinstance(body["message"]["content"], str)
        )
        recalled = await answer_of(client, "recall", session=path.stem, text=first[:60])
        assert first[:60] in recalled
        assert "give `id`, `file` or `text`" in await answer_of(client, "recall", session=path.stem)


@pytest.mark.extended
async def test_without_a_session_it_is_the_last_active_one_of_the_folder(tmp_path: Path) -> None:
    work, projects = tmp_path / "work", tmp_path / "projects"
    work.mkdir()
    (projects / "p").mkdir(parents=True)
    for name, folder in (("other", tmp_path), ("before", work), ("own", work)):
        usage = {"input_tokens": len(name), "cache_read_input_tokens": 50_000}
        message = {"id": f"msg_{name}", "model": "claude-sonnet-4-5", "usage": usage}
        line = {"type": "assistant", "sessionId": name, "cwd": str(folder), "message": message}
        (projects / "p" / f"{name}.jsonl").write_text(f"{json.dumps(line)}\n")
    async with stdio(work, str(projects)) as client:
        context = await answer_of(client, "context")
        assert (context["session_id"], context["used_tokens"]) == ("own", 50_003)
        assert context["also_active_in_this_folder"] == ["before"]
        other = await answer_of(client, "context", folder=str(tmp_path))
        assert other["session_id"] == "other"
        listed = await answer_of(client, "sessions", limit=2)
        assert len(listed["sessions"]) == 2
        # It reads on: the next answer has what was written since.
        with (projects / "p" / "own.jsonl").open("a") as file:
            line["message"] = message | {"id": "msg_2", "usage": {"input_tokens": 61_000}}
            file.write(f"{json.dumps(line)}\n")
        assert (await answer_of(client, "context"))["used_tokens"] == 61_000


@pytest.mark.extended
async def test_what_does_not_exist_is_an_error_that_says_what_to_do(
    projects: Path, tmp_path: Path
) -> None:
    async with stdio(tmp_path, str(projects)) as client:
        assert "`sessions` lists" in await error_of(client, "context")
        assert "begins with 'nowhere'" in await error_of(client, "context", session="nowhere")
        assert "limit" in await error_of(client, "sessions", limit=0)


@pytest.mark.extended
async def test_over_http_a_session_must_be_named(projects: Path, command: Command) -> None:
    path = main_file(projects)
    process = command.start("mcp", str(projects), "--http", "--port", "0")
    assert process.stdout is not None
    address = process.stdout.readline().split(" at ")[1].split()[0]
    async with Client(address) as client:
        context = await answer_of(client, "context", session=path.stem)
        assert context["used_tokens"] == shown(command, path)["chains"]["main"]["used_tokens"]
        assert "give `session` or `folder`" in await error_of(client, "context")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.extended
async def test_against_a_service_it_shows_what_the_service_has(
    projects: Path, command: Command, tmp_path: Path
) -> None:
    path = main_file(projects)
    page = command.start("view", str(projects), "--port", "0", STATE_FOLDER=str(tmp_path))
    assert page.stdout is not None
    url = page.stdout.readline().split(" at ")[1].split()[0].rstrip("/")
    chain = shown(command, path)["chains"]["main"]
    async with stdio(tmp_path, "--url", url, "--write") as client:
        names = sorted(tool.name for tool in (await client.list_tools()).tools)
        assert names == sorted([*READING, "compact"])
        for name in (path.stem, path.stem[:10]):
            context = await answer_of(client, "context", session=name)
            assert context["used_tokens"] == chain["used_tokens"]
            assert "machine of the agent" in context["filled_by_is_unknown"]
        by_folder = await answer_of(client, "context", folder=context["folder"])
        assert by_folder["found_by"] == "folder"
        assert (await answer_of(client, "compactions", session=path.stem))["compactions"]
        assert len((await answer_of(client, "sessions", limit=1))["sessions"]) == 1
        assert "only reads" in await error_of(client, "compact", session=path.stem)
        assert "not kept" in await error_of(client, "recall", session=path.stem, text="a")


class Service:
    """A server with one session that is kept, and that may be compacted."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, Any]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                document = {"session": {"session_id": "s", "status": {"leading_chain": None}}}
                document["session"] |= {"chains": {}}
                self._answer(None, {"answer": "quoted"} if "/recall" in self.path else document)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(body, {"command_id": "c-1", "follow": "/v1/sessions/s/control"})

            def _answer(self, body: Any, document: dict[str, Any]) -> None:
                service.asked.append((self.path, self.headers["Authorization"], body))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(document).encode())

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    serving = threading.Thread(target=service.server.serve_forever, args=(0.01,))
    serving.start()
    yield service
    service.server.shutdown()
    serving.join()
    service.server.server_close()


async def test_a_compaction_is_requested_with_the_token(service: Service, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    options = ("--url", service.url, "--token-file", str(tmp_path / "token"), "--write")
    async with stdio(tmp_path, *options) as client:
        answer = await answer_of(client, "compact", session="s", instructions="Keep the plan.")
        assert answer["command_id"] == "c-1"
        assert await answer_of(client, "recall", session="s", text="a b", offset=2) == "quoted"
    body = {"instructions": "Keep the plan.", "urgent": False}
    assert service.asked[1] == ("/v1/sessions/s/compact", "Bearer secret", body)
    assert service.asked[-1][0] == "/v1/sessions/s/recall?query=a+b&offset=2"
    assert {token for _, token, _ in service.asked} == {"Bearer secret"}


async def test_a_service_that_is_away_is_an_error_of_the_tool(tmp_path: Path) -> None:
    async with stdio(tmp_path, "--url", "http://127.0.0.1:1") as client:
        assert "is the server running?" in await error_of(client, "sessions")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--write"], "--write needs --url"),
        (["--token-file", "x"], "--token-file is for --url"),
        (["--port", "1"], "--port is for --http"),
        (["a.jsonl", "--url", "http://x"], "exclude each other"),
        (["--url", "x"], "begin it with http://"),
        (["--url", "http://x", "--token-file", "nowhere"], "nowhere: No such file"),
        (["nowhere/at/all.jsonl"], "nowhere/at/all.jsonl: no such file or folder"),
    ],
)
def test_options_that_do_not_fit_are_named(
    command: Command, options: list[str], problem: str
) -> None:
    done = command("mcp", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_a_missing_sdk_is_named_with_its_extra() -> None:
    script = (
        "import sys\n"
        "sys.modules['mcp'] = None\n"
        "sys.argv = ['contextgauge', 'mcp']\n"
        "from streams.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "install 'contextgauge[pipeline,mcp]'" in done.stderr.replace("\n", " ")
