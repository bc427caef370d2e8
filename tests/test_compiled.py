"""The compiled modules: which they are, and that a run of the tests runs what it says."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hatch_build
from streams import compiled
from streams.cli import build
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
COMPILED_RUN = bool(os.environ.get("CHECK_COMPILED"))
"""`make check-compiled` sets it: there the tests run on build/compiled."""


@pytest.mark.parametrize("path", hatch_build.MODULES)
def test_a_run_is_compiled_or_pure_as_a_whole(path: str) -> None:
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    file = importlib.import_module(name).__file__ or ""
    assert (not file.endswith(".py")) == COMPILED_RUN
    assert Path(file).is_relative_to(ROOT / "build") == COMPILED_RUN


def test_the_version_names_the_build() -> None:
    assert build.is_compiled() == COMPILED_RUN
    assert build.mark() == (" (compiled)" if COMPILED_RUN else "")


def test_both_modules_of_each_interface_have_what_it_says() -> None:
    for interface, module in (
        (compiled.Hashes, compiled.hashes()),
        (compiled.Messages, compiled.messages()),
        (compiled.Batches, compiled.batches()),
        (compiled.Events, compiled.events()),
    ):
        name = getattr(module, "__name__", "")
        assert name.startswith("streams.compiled.plain_") != COMPILED_RUN
        functions = {name for name in vars(interface) if not name.startswith("_")}
        assert {name for name in functions if not callable(getattr(module, name, None))} == set()


def test_no_compiled_library_is_next_to_the_sources() -> None:
    folders = [ROOT / name for name in ("contextgauge", "schemas", "streams")]
    beside = [path for folder in folders for path in folder.rglob("*.so")]
    assert [*beside, *ROOT.glob("*.so")] == []


_EXTENDED = """
import importlib, inspect, pkgutil, sys
ours = [importlib.import_module(name) for name in ("contextgauge", "schemas", "streams")]
for package in list(ours):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # Adapters and hooks need their frameworks, whose classes they extend.
        needs_more = {"__main__", "adapters", "hooks"}
        if needs_more.isdisjoint(found.name.split(".")):
            ours.append(importlib.import_module(found.name))
sources = {module.__name__: module.__file__ for module in ours}
classes = {one for module in ours for _, one in inspect.getmembers(module, inspect.isclass)}
for one in classes:
    if (sources.get(one.__module__) or "").endswith(".py"):
        for base in one.__mro__[1:]:
            is_compiled = (sources.get(base.__module__) or ".py").rpartition(".")[2] != "py"
            if is_compiled and hasattr(base, "__mypyc_attrs__"):
                print(one.__name__, "extends", base.__name__)
"""


@pytest.mark.extended
def test_no_class_of_python_extends_a_compiled_one() -> None:
    # It can be imported, and fails when one is made.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", _EXTENDED]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")


def _ask(folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Ask for a compiled wheel; it must fail before anything is compiled."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "CONTEXTGAUGE_COMPILE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_missing_compiler_is_one_clear_error(tmp_path: Path) -> None:
    asked = _ask(tmp_path, CC="no-such-compiler -O2")
    assert asked.returncode == 1
    (line,) = (asked.stdout + asked.stderr).splitlines()
    assert line.startswith("CONTEXTGAUGE_COMPILE: no C compiler `no-such-compiler`: install one")
    assert list(tmp_path.iterdir()) == []
