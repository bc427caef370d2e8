"""What is fetched with npm for the tests; and what to do where something is missing."""

import os
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT: Final = Path(__file__).parents[1]


def missing(what: str) -> NoReturn:
    """Fail where CI is set, and skip with the reason elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} (CI is set: nothing may be skipped)")
    pytest.skip(what)


def fetched(path: Path, by: str = "make page") -> Path:
    """Return the path of what a command fetches."""
    if not path.exists():
        missing(f"{path.relative_to(ROOT)} is not there: {by}")
    return path


def npm_file(name: str) -> Path:
    """Return the path of a file of a package."""
    return fetched(ROOT / "tools/page/node_modules" / name)
