"""The start of the command: what is imported when, help without imports, a missing extra."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.core import TyperGroup

from streams.__main__ import EXTRA_PACKAGES, main
from streams.cli.app import app
from streams.cli.lazy import LazyCommand

ROOT = Path(__file__).parents[2]
ROOT_COMMAND = typer.main.get_command(app)
assert isinstance(ROOT_COMMAND, TyperGroup)
COMMANDS = dict(ROOT_COMMAND.commands)

CLIENTS = frozenset({"aiohttp", "aiokafka", "faust", "redis", "starlette", "uvicorn"})

PAGE = frozenset({"starlette", "uvicorn"})

_SCRIPT = """
import contextlib, io, json, sys
from streams.__main__ import main

imported = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["contextgauge", *arguments]
    output = io.TextIOWrapper(io.BytesIO())
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(output):
        main()
    imported.append(sorted({name.partition(".")[0] for name in sys.modules}))
print(json.dumps(imported))
"""


def _imported(*commands: list[str]) -> list[set[str]]:
    """Run commands one after the other in one process; return what is imported after each."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(commands)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [set(names) for names in json.loads(done.stdout)]


def test_version_and_help_import_no_library_but_typer() -> None:
    for names in _imported(["--version"], ["--help"]):
        assert names.isdisjoint({*CLIENTS, "orjson", "pydantic", "rich", "structlog"})


def test_a_command_imports_no_client_that_it_does_not_need(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text('{"type":"user","sessionId":"s","message":{"content":"text"}}\n')
    replay, simulate, sessions, topics, publish, derive, serve, ingest = _imported(
        ["replay", str(file)],
        ["simulate", "--sample"],
        ["sessions", "--help"],
        ["topics", "--help"],
        ["publish", "--help"],
        ["derive", "--help"],
        ["serve", "--help"],
        ["ingest", "--help"],
    )
    assert replay.isdisjoint({*CLIENTS, "rich", "structlog"})
    for names in (simulate, sessions, topics):
        assert names.isdisjoint({*CLIENTS, "structlog"})
    for names in (publish, derive):
        assert names.isdisjoint(CLIENTS)
    assert serve & CLIENTS == ingest & CLIENTS == PAGE


@pytest.mark.extended
@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("replay", {"contextgauge.compaction"}),
        ("view", {"contextgauge.compaction.compactor", "structlog", *CLIENTS} - PAGE),
    ],
)
def test_a_command_for_a_moment_does_without(command: str, unneeded: set[str]) -> None:
    script = f"import streams.cli.{command}, sys; print(*sys.modules)"
    imported = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(imported.stdout.split()) & unneeded == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    item = COMMANDS[name]
    assert isinstance(item, LazyCommand)
    assert (item.load().help or "").split("\n")[0] == item.help


def _complete(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "from streams.cli.app import app; app(prog_name='contextgauge')"],
        cwd=ROOT,
        env=os.environ
        | {
            "_CONTEXTGAUGE_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["contextgauge", *words]),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.extended
def test_a_shell_completes_commands_and_their_options() -> None:
    assert _complete("st") == ["status", "statusline", "stack"]
    assert _complete("dead", "re") == ["redrive"]
    assert _complete("replay", "--s") == ["--session", "--strict"]


@pytest.mark.parametrize(("package", "command"), [("typer", "--help"), ("rich", "sessions")])
def test_a_missing_extra_is_one_line_and_exit_2(package: str, command: str) -> None:
    script = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        f"sys.argv = ['contextgauge', {command!r}]\n"
        "from streams.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        (
            "contextgauge: this is the library alone; the command is in its extra `pipeline`. "
            "Install 'contextgauge[pipeline]' in place of 'contextgauge', the same way\n"
        ),
    )


def test_on_windows_the_command_says_where_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "install and run it in WSL 2" in capsys.readouterr().err


def test_the_packages_of_the_extra_are_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = {
        canonicalize_name(Requirement(text).name)
        for name in ("kafka", "pipeline")
        for text in project["optional-dependencies"][name]
        if not text.startswith("contextgauge")
    }
    installed = {
        package
        for package, distributions in packages_distributions().items()
        if extra & {canonicalize_name(name) for name in distributions}
    }
    assert installed - EXTRA_PACKAGES <= {name for name in installed if name.startswith("_")}
    assert installed >= EXTRA_PACKAGES


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sources alone."""
    folder: Path = tmp_path_factory.mktemp("sources")
    for name in ("contextgauge", "schemas", "streams"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def _bytecode(folder: Path, tmp_path: Path, *options: str, **environment: str) -> tuple[int, int]:
    """Return how many modules are compiled next to their sources, and in the cache's folder."""
    subprocess.run(
        [sys.executable, *options, "-m", "streams", "--version"],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            **environment,
            "XDG_CACHE_HOME": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        check=True,
    )
    cached = list((tmp_path / "contextgauge" / "bytecode").rglob("streams/cli/*.pyc"))
    return len(list(folder.rglob("*.pyc"))), len(cached)


def test_compiled_modules_are_kept_where_none_may_be_next_to_sources(
    uncompiled: Path, tmp_path: Path
) -> None:
    """At each start, all that is imported would be compiled: three times the time."""
    next_to, cached = _bytecode(uncompiled, tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert next_to == 0
    assert cached >= 3


@pytest.mark.extended
def test_other_settings_of_compiled_modules_are_heeded(uncompiled: Path, tmp_path: Path) -> None:
    assert _bytecode(uncompiled, tmp_path, "-B") == (0, 0)
    named = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(tmp_path / "named")}
    assert _bytecode(uncompiled, tmp_path, **named) == (0, 0)
    assert not (tmp_path / "named").exists()
    next_to, cached = _bytecode(uncompiled, tmp_path)
    assert next_to > 0
    assert cached == 0
    # An installation that is compiled is used as it is.
    assert _bytecode(uncompiled, tmp_path, PYTHONDONTWRITEBYTECODE="1") == (next_to, 0)
