"""`tools/setup.sh`: the environment by pip, and what it shows meanwhile."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TOOLS = ("sh", "awk", "cat", "chmod", "dirname", "grep", "mktemp", "rm", "sleep", "cp", "mkdir")
"""What the script may use; there is no uv."""

PYTHON = """#!/bin/sh
case "$*" in
*-m\\ venv*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*--require-hashes*)
    printf 'Collecting a==1\\n  Downloading a\\nIgnoring c: markers\\nCollecting b==2\\n'
    read -r result < gate
    [ "$result" = 0 ] || echo "ERROR: b has another hash"
    exit "$result" ;;
esac
"""
"""Stands for Python and its pip: fetches two packages, and waits then until it may end."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, a lock file of three packages, and the programs that there are."""
    for name in ("tools", "bin"):
        (tmp_path / name).mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", tmp_path / "tools")
    (tmp_path / "a.lock").write_text("a==1 \\\n    --hash=x\nb==2\nc==3 ; x\n")
    for name in TOOLS:
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    python = tmp_path / "bin" / "python3"
    python.write_text(PYTHON)
    python.chmod(0o755)
    os.mkfifo(tmp_path / "gate")
    return tmp_path


@pytest.fixture
def setup(checkout: Path) -> Iterator["subprocess.Popen[str]"]:
    """The script, which has begun."""
    command = ["sh", "tools/setup.sh", "a.lock"]
    with subprocess.Popen(
        command,
        cwd=checkout,
        env={"PATH": str(checkout / "bin")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield process
        process.kill()


@pytest.mark.extended
@pytest.mark.parametrize("result", [0, 1])
def test_pip_shows_which_package_it_is_at(
    checkout: Path, setup: "subprocess.Popen[str]", result: int
) -> None:
    assert setup.stdout is not None
    assert "creating .venv with pip" in setup.stdout.readline()
    assert "setup: fetching: 2 of 2 packages\n" in iter(setup.stdout.readline, "")
    (checkout / "gate").write_text(f"{result}\n")
    _, errors = setup.communicate()
    assert setup.returncode == result
    if result:
        assert errors == (
            "Ignoring c: markers\nERROR: b has another hash\n"
            "setup: pip could not install a.lock: see above\n"
        )


@pytest.mark.parametrize("result", [0, 1])
def test_a_lock_file_with_uv_is_installed_by_it_and_by_pip_where_it_fails(
    checkout: Path, result: int
) -> None:
    (checkout / "a.lock").write_text("a==1\nuv==2 \\\n    --hash=x\nb==2\n")
    (checkout / "bin" / "python3").write_text(
        f"""#!/bin/sh
echo "pip $*" >> calls
case "$*" in
*-m\\ venv*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*--require-hashes*)
    for last; do :; done
    cat "$last" >> installed
    printf '#!/bin/sh\\necho "uv $*" >> calls; exit {result}\\n' > .venv/bin/uv
    chmod +x .venv/bin/uv ;;
esac
"""
    )
    done = subprocess.run(
        ["sh", "tools/setup.sh", "a.lock"],
        cwd=checkout,
        env={"PATH": str(checkout / "bin")},
        capture_output=True,
        text=True,
        check=True,
    )
    by_uv = "uv pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes"
    assert f"{by_uv} -r a.lock\n" in (checkout / "calls").read_text()
    installed = (checkout / "installed").read_text()
    assert installed.startswith("uv==2 \\\n    --hash=x\n")
    assert ("b==2" in installed) == ("going on with pip" in done.stdout) == bool(result)
