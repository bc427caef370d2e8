"""The commands in the documents work: each is run as it stands, against services of the test's own.

A block of `console` has commands after `$ ` and what they print; one of `sh` has nothing but
commands. A command that ends in `&` runs until the document ends. What a reader replaces is
replaced here: `session.jsonl`, `~/.claude/projects` and SESSION are simulated ones.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from streams.cli.app import app
from streams.cli.lazy import LazyCommand
from streams.edge.files.folders import write_folder
from streams.edge.telemetry.server import listening, port_of
from streams.flow.simulator import SimulationOptions, simulate
from tests.commands import command_environment
from tests.docs.test_docs import DOCUMENTS, ROOT, _blocks, _name, _prose
from tests.patience import PATIENCE_S

_TRIED_AGAIN = ("sessions", "status", "events", "rebuild")
"""Commands that read views: right after a publication there may be none yet."""

_OPTIONS = SimulationOptions(sessions=2, turns=2, providers=("claude",))
"""The reader's own transcripts: a few are enough."""

_WRONG_USE = 2
"""Exit code of wrong arguments: waiting does not mend them."""

_NOT_HERE = ("stack", "demo")
"""They start services that are this machine's, not the test's: tests of their own run them, and
that they are there is tested below."""

_PLACEHOLDERS = re.compile(r"\b(?:SESSION|COMMAND|PATH|ID)\b")


def commands_of(text: str) -> list[str]:
    """Return a document's commands, in order, without comments and prompts."""
    blocks = [
        (text.index(block), block, info)
        for info in ("console", "sh")
        for block in _blocks(text, info)
    ]
    commands = []
    for _, block, info in sorted(blocks):
        for line in block.replace("\\\n", " ").splitlines():
            if info == "console" and not line.startswith("$ "):
                continue
            command = re.sub(r"(?:^|\s)#.*$", "", line.removeprefix("$ ")).strip()
            commands += [command] if command else []
    return commands


WITH_COMMANDS = [path for path in DOCUMENTS if commands_of(path.read_text(encoding="utf-8"))]


class Shell:
    """Runs a document's commands in a folder of its own."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        bin_folder = str(Path(sys.executable).parent)
        self.environment = command_environment(settings) | {"HOME": str(folder)}
        self.environment["PATH"] = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
        self._background: list[tuple[str, subprocess.Popen[str]]] = []
        projects = folder / ".claude" / "projects"
        write_folder(projects, ((each.file, each.value) for each in simulate(_OPTIONS)))
        transcript = next(path for path in projects.rglob("*.jsonl") if "agent-" not in path.name)
        (folder / "session.jsonl").write_bytes(transcript.read_bytes())
        self.session = transcript.stem

    def run(self, command: str) -> None:
        """Run one command as a reader would."""
        command = re.sub(r"\bSESSION\b", self.session, command)
        command = command.replace(".venv/bin/", "")
        words = [word for word in shlex.split(command) if "=" not in word.split("/")[0]]
        if words[0] == "make":
            if shutil.which("make") is None:
                pytest.skip("no make on this machine")
            self._done(f"make -n -C {ROOT} {' '.join(words[1:])}")
        elif words[0] == "kill":
            assert words[1:] == [f"%{number + 1}" for number in range(len(self._background))]
            self.end()
        elif command.endswith("&"):
            self._start(command.removesuffix("&").strip())
        elif words[:2] == ["contextgauge", "view"]:
            self._view(command.replace("PATH", "session.jsonl"))
        elif words[0] not in ("cd", "git") and not (
            words[0] == "contextgauge" and words[1] in _NOT_HERE
        ):
            is_reading = len(words) > 1 and words[1] in _TRIED_AGAIN
            self._done(command, again=is_reading or words[0] == "curl")

    def _view(self, command: str) -> None:
        """Start the view, and press Ctrl-C once it serves the page."""
        self._start(command)
        _, process = self._background.pop()
        assert process.stdout is not None
        assert "The page is at http://" in process.stdout.readline(), command
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, f"{command}: {output}"

    def end(self) -> None:
        """End what runs in the background; it must end in good order."""
        for _, process in self._background:
            _wait_until_it_heeds_sigterm(process)
            process.send_signal(signal.SIGTERM)
        for command, process in self._background:
            _, output = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, f"{command}: {output}"
        self._background.clear()

    def kill(self) -> None:
        """End what a failed test left."""
        for _, process in self._background:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def _start(self, command: str) -> None:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._background.append((command, process))

    def _done(self, command: str, *, again: bool = False) -> None:
        until = time.monotonic() + (PATIENCE_S if again else 0)
        while True:
            ended = subprocess.run(
                ["bash", "-c", f"set -o pipefail; {command}"],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            if ended.returncode in (0, _WRONG_USE) or time.monotonic() >= until:
                break
            time.sleep(0.25)
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"


def _wait_until_it_heeds_sigterm(process: subprocess.Popen[str]) -> None:
    """Wait for a program that has just been started: until then the signal kills it.

    It has a handler, or blocks the signal and waits for it in a thread, as workers do.
    """
    status = Path(f"/proc/{process.pid}/status")
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and status.exists() and time.monotonic() < until:
        masks = re.findall(r"^Sig(?:Cgt|Blk):\s*([0-9a-f]+)", status.read_text(), re.MULTILINE)
        if any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks):
            return
        time.sleep(0.05)
    assert process.poll() is not None, f"{process.args!r}: SIGTERM would kill it, it has no handler"


@pytest.mark.service
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path == ROOT / "README.md" else pytest.mark.extended)
        for path in WITH_COMMANDS
    ],
    ids=_name,
)
def test_the_commands_of_a_document_work_one_after_the_other(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest, prefix: str
) -> None:
    commands = commands_of(path.read_text(encoding="utf-8"))
    settings = {"TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix, "KEY_PREFIX": prefix.rstrip("-")}
    settings["SERVE_PORT"] = "0"  # the usual one may be a developer's
    with listening("127.0.0.1", 0) as listener:
        settings["INGEST_PORT"] = str(port_of(listener))
    commands = [command.replace(":8643", f":{settings['INGEST_PORT']}") for command in commands]
    if any(" topics " in command for command in commands):
        settings["BOOTSTRAP_SERVERS"] = request.getfixturevalue("kafka")
        settings["REDIS_URL"] = request.getfixturevalue("redis_url")
    elif any(" top " in command for command in commands):
        settings["REDIS_URL"] = request.getfixturevalue("redis_url")
    shell = Shell(tmp_path, settings)
    try:
        for command in commands:
            shell.run(command)
        shell.end()
    finally:
        shell.kill()


def test_the_documents_have_commands() -> None:
    names = {_name(path) for path in WITH_COMMANDS}
    assert {"README.md", "docs/PUBLISHING.md", "docs/REPLAY.md"} <= names


def test_commands_are_found_in_both_kinds_of_blocks() -> None:
    text = "```console\n$ a --b  # why\nprinted\n$ c \\\n  d\n```\n```sh\n# none\ne | f\n```\n"
    assert commands_of(text) == ["a --b", "c    d", "e | f"]


def _spoken(text: str) -> Iterator[list[str]]:
    """Yield the words after `contextgauge` in code, in prose as in blocks."""
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", _prose(text))
    for code in [*spans, *commands_of(text)]:
        match = re.search(r"(?:^|[\s/])contextgauge ([a-z-].*)", code.replace("\n", " "))
        if match is not None:
            yield re.split(r"\s[|>&]", match[1])[0].split()


def _unknown(words: list[str]) -> str | None:
    """Return the first word that is no command or no option of it."""
    command: object = typer.main.get_command(app)
    for word in words:
        if isinstance(command, TyperGroup) and not word.startswith("-"):
            if _PLACEHOLDERS.fullmatch(word):
                return None
            if word not in command.commands:
                return word
            command = command.commands[word]
            if isinstance(command, LazyCommand):
                command = command.load()
        elif isinstance(command, TyperGroup | TyperCommand) and word.startswith("--"):
            known = {name for item in command.params for name in (*item.opts, *item.secondary_opts)}
            if word.split("=")[0] not in known | {"--help"}:
                return word
    return None


def test_documented_commands_and_options_exist() -> None:
    wrong = [
        f"{_name(path)}: {' '.join(words)}: {unknown}"
        for path in DOCUMENTS
        for words in _spoken(path.read_text(encoding="utf-8"))
        if (unknown := _unknown(words)) is not None
    ]
    assert wrong == []


def test_an_unknown_command_and_option_are_detected() -> None:
    assert _unknown(["replay", "--view", "x.jsonl"]) is None
    assert _unknown(["topics", "create"]) is None
    assert _unknown(["topics", "forget"]) == "forget"
    assert _unknown(["replay", "--vieww", "x.jsonl"]) == "--vieww"
