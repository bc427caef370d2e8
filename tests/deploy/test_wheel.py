"""The wheel is whole: installed into an empty environment, every command works in an empty folder.

The packages that the wheel depends on are the test environment's; nothing of the checkout is on
the path of what is installed.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from streams.cli.app import Commands, app
from tests.docs.test_docs import ROOT
from tests.e2e.test_demo import path_without
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.extended, pytest.mark.service]

NOT_INSTALLED = re.compile(
    r"\bmake (?:[a-z-]*demo|page|setup|schemas|test|check|compile)\b|\.venv|pip install -e"
    r"|\b(?:docs|deploy|tools|tests|bench)/"
)
"""What a checkout has and an installation has not."""

_JSON = {"Content-Type": "application/json"}

_MESSAGE = (
    b"""{"session_id":"over-http","type":"assistant","message":{"usage":{"input_tokens":9}}}"""
)

COMMANDS = {name for section in Commands.sections.values() for name in section}

RULES = """
[[targets]]
name = "team"
url = "http://127.0.0.1:1/hook"

[[rules]]
name = "nearly full"
when = "pressure"
at_percent = 85
targets = ["team"]
"""


def build(target: str, source: Path, folder: Path) -> Path:
    """Build a wheel or a source distribution."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if "no chart library" in done.stderr + done.stdout and not os.environ.get("CI"):
        pytest.skip("no npm on this machine")
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


class Installation:
    """An environment with the wheel in it, and an empty folder in which its command runs."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder / "venv")
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        install = ["-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
        subprocess.run(
            [sys.executable, *install, "--python", str(self.bin / "python"), str(wheel)],
            check=True,
        )
        (self.packages,) = (folder / "venv").rglob("site-packages")
        # Paths in a .pth file are not searched for .pth files themselves: not for the checkout's.
        (self.packages / "others.pth").write_text(sysconfig.get_path("purelib"))
        self.folder, home = folder / "empty", folder / "home"
        self.folder.mkdir()
        home.mkdir()
        inherited = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
        self.environment = inherited | {
            "HOME": str(home),
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "120",
        }
        self.started: dict[str, subprocess.Popen[str]] = {}
        self.used: set[str] = set()

    def run(self, *arguments: str, stdin: str = "", codes: Sequence[int] = (0,)) -> str:
        """Run the command to its end; return its standard output."""
        self.used.add(arguments[0])
        done = subprocess.run(
            ["contextgauge", *arguments],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode in codes, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *arguments: str) -> None:
        """Start a command that runs until it is stopped; its log is `<command>.log`."""
        self.used.add(arguments[0])
        with (self.folder.parent / f"{arguments[0]}.log").open("w") as log:
            self.started[arguments[0]] = subprocess.Popen(
                ["contextgauge", *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                text=True,
            )

    def log(self, name: str) -> str:
        """Return what a started command wrote."""
        return (self.folder.parent / f"{name}.log").read_text()

    def stop(self) -> dict[str, int]:
        """Stop what was started; return the exit codes."""
        for process in self.started.values():
            process.terminate()
        codes = {name: process.wait(timeout=PATIENCE_S) for name, process in self.started.items()}
        self.started.clear()
        return codes


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The wheel, installed."""
    installed = Installation(tmp_path_factory.mktemp("installed"), wheel)
    yield installed
    for process in installed.started.values():
        process.kill()
        process.wait()
    installed.run("stack", "down", "--delete")


def test_a_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "wheel")
    first, second = (
        {name: archive.read(name) for name in archive.namelist()}
        for archive in (zipfile.ZipFile(wheel), zipfile.ZipFile(again))
    )
    assert first.keys() == second.keys()
    assert [name for name, content in first.items() if second[name] != content] == []


def test_without_npm_a_wheel_without_charts_must_be_asked_for(tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(source / "streams/serve/page/vendor")
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("sh", "dirname"):
        (programs / program).symlink_to(str(shutil.which(program)))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    for setting, code in ({}, 1), ({"CONTEXTGAUGE_WITHOUT_CHARTS": "1"}, 0):
        done = subprocess.run(
            command,
            cwd=source,
            env={"PATH": str(programs), **setting},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert ("install Node.js with npm" in done.stdout + done.stderr) == (code == 1)


def test_what_the_commands_need_is_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    config = ("pom.xml", "server.properties", "log4j2.properties", "redis.conf")
    assert {f"streams/edge/local_stack/config/{name}" for name in config} <= names
    vendor = {path.name for path in (ROOT / "streams/serve/page/vendor").iterdir()}
    assert {f"streams/serve/page/vendor/{name}" for name in vendor} <= names
    assert {f"contextgauge/docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= names
    assert {name.split("/")[0] for name in names} == {
        *("contextgauge", "schemas", "streams", "contextgauge-0.1.0.dist-info")
    }


def test_no_message_recommends_what_only_a_checkout_has(installation: Installation) -> None:
    wrong = [
        f"{path.relative_to(installation.packages)}:{line}: {text}"
        for package in ("contextgauge", "schemas", "streams")
        for path in (installation.packages / package).rglob("*.py")
        for line, text in _texts(path)
        if NOT_INSTALLED.search(text)
    ]
    wrong += [
        f"{name} --help: {match.group()}"
        for name in sorted(COMMANDS)
        if (match := NOT_INSTALLED.search(CliRunner().invoke(app, [name, "--help"]).output))
    ]
    assert wrong == []


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module with their lines, all but the docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and id(node) not in documented
        if is_text and isinstance(node.value, str):  # type: ignore[attr-defined]  # a constant
            yield node.lineno, node.value  # type: ignore[attr-defined]


def until(done: Callable[[], object], what: Callable[[], str]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, what()
        time.sleep(0.5)


@pytest.mark.usefixtures("stack_parts")
def test_every_command_works_in_an_empty_folder(installation: Installation) -> None:
    here = installation
    without_services(here)
    here.run("stack", "up", "--heap-mib", "256")
    home = Path(here.environment["HOME"])
    assert (home / ".local/state/contextgauge/stack/stack.json").exists()
    here.run("stack", "status")
    here.run("topics", "create")
    here.environment["CONTEXTGAUGE_SERVE_PORT"] = "0"
    here.environment["CONTEXTGAUGE_INGEST_PORT"] = "0"
    viewed = ["view", "projects", "--port", "0"]
    alerting = ["control", "--rules", "rules.toml"]
    compaction_file = Path(here.folder) / "compaction.toml"
    compaction_file.write_text('[conversations]\nsessions = ["*"]\n')
    here.environment["CONTEXTGAUGE_COMPACTION_FILE"] = str(compaction_file)
    serving = (["serve"], ["ingest"], viewed)
    for worker in (["derive"], ["project"], ["conversations"], ["otel"], *serving, alerting):
        here.start(*worker)
    here.run("publish", "projects")
    taken(here)
    serve = address_of(here, "serve")
    # By HTTP: each look of a command would be a process, while seven others start.
    until(lambda: len(listed(serve)) > 3, lambda: here.log("project"))
    assert len(json.loads(here.run("sessions", "--json"))) > 3
    session = json.loads(here.run("replay", "--topic", "records").splitlines()[0])
    name = session["data"]["session_id"]
    for command in ("status", "events"):
        assert here.run(command, name)
    until(
        lambda: json.loads(here.run("context", "--json", name))["total"] > 0,
        lambda: here.log("conversations"),
    )
    assert name in here.run("compact", name, "--json")
    here.run("thresholds", name, "--automatic")
    here.run("forget", name, "--yes")
    assert json.loads(here.run("why", name, "--json"))["session_id"] == name
    assert here.run("top", "--once")
    here.run("dead", "list")
    here.run("rebuild")
    served(serve)
    assert "no errors" in here.run("doctor")
    assert here.stop() == dict.fromkeys(
        ("derive", "project", "conversations", "otel", "serve", "ingest", "control", "view"), 0
    )
    here.run("stack", "down")
    assert here.used == COMMANDS, "a command is not tried here"


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
"""How a client of the Model Context Protocol begins."""


def without_services(here: Installation) -> None:
    """Run what needs no broker, and the demo without one: it would start what `stack up` does."""
    (here.folder / "rules.toml").write_text(RULES)
    assert here.run("--version").startswith("contextgauge ")
    here.used.clear()
    here.run("schemas")
    here.run("runtimes")
    assert {path.name for path in (here.folder / "schemas" / "json").iterdir()} == {
        path.name for path in (ROOT / "schemas" / "json").glob("*.json")
    }
    here.run("simulate", "--sample", "--out", "projects")
    assert here.run("replay", "projects")
    transcript = next(
        path for path in (here.folder / "projects").rglob("*.jsonl") if "agent-" not in path.name
    )
    here.run("export", "projects", "--to", "tables")
    question = "FROM sessions ORDER BY session_id"
    assert here.run("query", question, "tables") == here.run("query", question, "projects")
    assert "compaction" in here.run("autopsy", "projects")
    here.run("report", "tables", "--out", "report.html")
    here.run("share", str(transcript), "--out", "shared.html", "--yes")
    for file in ("report.html", "shared.html"):
        assert (here.folder / file).read_bytes().endswith(b"</html>\n")
    assert "reproduced" in here.run("what-if", "projects")
    here.run("compact", str(transcript), "--keep", "1", "--output", "compacted.json")
    assert json.loads((here.folder / "compacted.json").read_bytes())
    forkable = next((here.folder / "projects" / "-srv-repo").glob("*.jsonl"))
    assert json.loads(here.run("checkpoints", str(forkable), "--json"))["checkpoints"]
    assert here.run("fork", str(forkable), "1", "--to", "messages").startswith("[")
    given = {"session_id": transcript.stem, "transcript_path": str(transcript)}
    assert "contextgauge:" not in here.run("statusline", stdin=json.dumps(given))
    assert ":" in here.run("token", "reader")
    here.run("hook", "pre-compact", stdin=json.dumps(given))
    here.run("install", "claude-code", "--yes", "--only", "hooks")
    here.run("install", "claude-code", "--yes", "--undo")
    assert '"serverInfo"' in here.run("mcp", "projects", stdin=json.dumps(INITIALIZE) + "\n")
    path = here.environment["PATH"]
    without_java = path_without(here.folder.parent / "programs", "java")
    here.environment["PATH"] = f"{here.bin}{os.pathsep}{without_java}"
    assert "running embedded" in here.run("demo", "projects")
    here.environment["PATH"] = path


def taken(here: Installation) -> None:
    """A message that is sent over HTTP is in Kafka."""
    url = address_of(here, "ingest")
    until(lambda: _is_ready(url), lambda: here.log("ingest"))
    sent = Request(f"{url}/v1/messages", _MESSAGE, _JSON)
    with urlopen(sent, timeout=10) as answer:
        assert json.loads(answer.read())["accepted"] == 1
    assert "over-http" in here.run("replay", "--topic", "messages")


def _is_ready(url: str) -> bool:
    try:
        return bool(json.loads(fetched(f"{url}/readyz"))["ready"])
    except HTTPError:
        return False


def address_of(here: Installation, name: str) -> str:
    """Wait until a command serves; return where."""
    serving = re.compile(r'"address": "(http://[\d.:]+)"')
    until(lambda: serving.search(here.log(name)), lambda: here.log(name))
    (address,) = serving.findall(here.log(name))
    return str(address)


def listed(address: str) -> list[object]:
    """Return the sessions that are served; none as long as the views are not there."""
    try:
        return list(json.loads(fetched(f"{address}/v1/sessions"))["sessions"])
    except HTTPError:
        return []


def served(address: str) -> None:
    """The page is served with its chart library."""
    page = fetched(f"{address}/")
    (folder,) = set(re.findall(r"page/[0-9a-f]+", page))
    for path in (f"{folder}/vendor/uPlot.esm.js", f"{folder}/vendor/uPlot.min.css"):
        assert "uplot" in fetched(f"{address}/{path}").lower()
    assert listed(address)


def fetched(address: str) -> str:
    """Return what an address answers."""
    with urlopen(address, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode("utf-8"))
