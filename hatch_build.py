"""Completes what is built: the page's chart library, the documents, the compiled hot modules.

The chart library is fetched with npm if it is not there (docs/adr/0030-*); a source distribution
has it, so that a wheel is made of it without. Documents that messages refer to are in the wheel.

The hot modules of the derive and project workers are compiled into the wheel where
CONTEXTGAUGE_COMPILE=1 asks for it. Without it the wheel is pure Python, needs no compiler and runs
everywhere. The sources are the same (docs/adr/0023-the-deriver-can-be-compiled.md), and no library
is ever put next to them in a working tree: it would hide what is edited there. Hatchling runs the
hook; by hand, from this folder:

    python hatch_build.py          # says what is missing for compiling, with exit code 1
    python hatch_build.py FOLDER   # compiles into a folder
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
ASKED = "CONTEXTGAUGE_COMPILE"
WITHOUT_CHARTS = "CONTEXTGAUGE_WITHOUT_CHARTS"
CHARTS = Path("streams/serve/page/vendor/uPlot.esm.js")

MODULES = (
    "contextgauge/containers.py",
    "contextgauge/json_codec.py",
    *(
        f"contextgauge/normalise/{name}.py"
        for name in (
            "__init__",
            "claude_code/conversation",
            "claude_code/messages",
            "claude_code/texts",
            "codex/lines",
            "fields",
            "limit_signals",
            "responses",
            "runtimes",
            "session_facts",
            "signals",
            "spellings",
            "usage",
            "usual",
        )
    ),
    "contextgauge/partitioner.py",
    "contextgauge/windows.py",
    "streams/codec/cloudevents.py",
    *(
        f"streams/core/derivation/{name}.py"
        for name in (
            "compact_boundaries",
            "compaction_attempts",
            "derive",
            "inherited",
            "known_causes",
            "limits",
            "own_calls",
            "readings",
            "record_ids",
            "responses",
            "rules_config",
            "state",
            "step",
            "stored_state",
        )
    ),
    *(
        f"streams/core/projection/{name}.py"
        for name in ("chain", "documents", "project", "receipt_views", "statistics")
    ),
    "streams/core/times.py",
    "streams/edge/redis/keys.py",
    "streams/flow/dead_letters/letters.py",
    *(
        f"streams/flow/derive/{name}.py"
        for name in (
            "deriver",
            "partition_state",
            "partition_time",
            "record_writer",
            "stored_sessions",
        )
    ),
    *(f"streams/flow/project/{name}.py" for name in ("fold", "sizes", "view_write")),
    "streams/flow/view/local_fold.py",
)
"""What is compiled: what every message passes, and every record on its way into Redis. One library
holds all of it, so that calls between them stay in C."""

CYTHON_MODULES = tuple(
    f"streams/compiled/{name}.pyx"
    for name in ("event_writer", "fast_hashes", "fast_path", "record_batches")
)
"""Written in Cython, and there only where they are compiled; see docs/adr/0023-*."""

NEEDED = ("mypy>=2.0", "cython>=3.1", "setuptools>=70.1", "orjson", "pydantic")
"""What compiling needs besides a C compiler; the last two for the types that the modules import."""


def missing() -> str | None:
    """Return what this machine lacks for compiling, and what to do; None where all is there."""
    lacking = [name for name in ("mypyc", "Cython", "setuptools") if find_spec(name) is None]
    if lacking:
        return f"no {' and no '.join(lacking)} in this Python: pip install 'mypy[mypyc]' cython"
    if sys.platform == "win32":
        return None  # where Microsoft's compiler is, setuptools finds out
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return f"no C compiler `{compiler}`: install one (Debian, Ubuntu: gcc libc6-dev)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "no headers of this Python: install them (Debian, Ubuntu: python3-dev)"
    return None


def compile_into(folder: Path) -> None:
    """Compile the modules of the current folder; the libraries go where their modules would be."""
    from setuptools import Distribution, Extension  # noqa: I001, PLC0415 -- before mypyc, which looks for it
    from Cython.Build import cythonize  # noqa: PLC0415
    from mypyc.build import mypycify  # noqa: PLC0415

    work = folder / ".work"
    options = [
        "--config-file=",
        f"--cache-dir={work / 'types'}",
        "--explicit-package-bases",
        "--ignore-missing-imports",
    ]
    extensions = mypycify(
        [*options, *MODULES],
        opt_level="3",
        debug_level="0",
        target_dir=str(work),
        group_name="contextgauge",
    )
    modules = [
        Extension(path.removesuffix(".pyx").replace("/", "."), [path], extra_compile_args=["-O3"])
        for path in CYTHON_MODULES
    ]
    extensions += cythonize(modules, build_dir=str(work), quiet=True)  # type: ignore[no-untyped-call]
    distribution = Distribution({"name": "contextgauge", "ext_modules": extensions})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(folder), str(work)
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
    shutil.rmtree(work)


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")


class CompletingHook(BuildHookInterface[Any]):
    """Adds to a source distribution or a wheel what is not in git, or not where it goes.

    Compiled modules go next to their sources in the wheel, which is then a platform's.
    """

    _folder: str | None = None

    def _is_asked(self) -> bool:
        return self.target_name == "wheel" and _is_set(ASKED)

    def dependencies(self) -> list[str]:
        """Return what a build environment of its own must have besides hatchling."""
        return list(NEEDED) if self._is_asked() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Complete the build, unless it is an editable install, which runs the sources."""
        if version != "editable":
            self._fetch_charts()
            if self.target_name == "wheel":
                self._add_documents(build_data)
        if not self._is_asked():
            return
        if version == "editable":
            self.app.display_warning(f"{ASKED}: an editable install runs the sources as they are")
            return
        lacking = missing()
        if lacking is not None:
            self.app.abort(f"{ASKED}: {lacking}; or build without it, in pure Python")
        self._folder = tempfile.mkdtemp(prefix="contextgauge-compiled-")
        folder = Path(self._folder)
        # In a process of its own: mypyc looks at what is imported, and ends the process on errors.
        done = subprocess.run(  # noqa: S603 -- this file
            [sys.executable, str(ROOT / "hatch_build.py"), self._folder],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            self.app.abort(f"{done.stdout}\n{ASKED}: the modules could not be compiled, see above")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for library in sorted(path for path in folder.rglob("*") if path.is_file()):
            build_data["force_include"][str(library)] = library.relative_to(folder).as_posix()

    def _fetch_charts(self) -> None:
        """See to it that the chart library is there; abort where it cannot be fetched."""
        root = Path(self.root)
        if (root / CHARTS).exists() or _is_set(WITHOUT_CHARTS):
            return
        subprocess.run(["sh", "tools/page.sh"], cwd=root, check=False)  # noqa: S607 -- the system's shell
        if not (root / CHARTS).exists():
            self.app.abort(
                "no chart library for the web page: install Node.js with npm and build again "
                f"(Debian, Ubuntu: nodejs npm), or set {WITHOUT_CHARTS}=1 for tables instead"
            )

    def _add_documents(self, build_data: dict[str, Any]) -> None:
        folder = Path(self.root, "docs")
        for path in sorted(folder.rglob("*.md")):
            inside = path.relative_to(folder).as_posix()
            build_data["force_include"][str(path)] = f"contextgauge/docs/{inside}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was compiled: it is in the wheel now."""
        del version, build_data, artifact_path
        if self._folder is not None:
            shutil.rmtree(self._folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        compile_into(Path(sys.argv[1]))
    else:
        sys.exit(missing())
