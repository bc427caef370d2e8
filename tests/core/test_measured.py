"""The measured modules: what pyproject.toml lists is there, and counts where no test calls it."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_COVERAGE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]


@pytest.mark.parametrize("pattern", _COVERAGE["run"]["include"])
def test_each_measured_module_is_there_and_is_imported(pattern: str) -> None:
    folder, is_all = pattern.removesuffix("/*"), pattern.endswith("/*")
    paths = list((ROOT / folder).rglob("*.py")) if is_all else [ROOT / pattern]
    assert paths
    for path in paths:
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
