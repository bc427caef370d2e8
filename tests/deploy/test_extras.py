"""Each extra has what its commands import: here all others' packages are hidden."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docs.test_docs import ROOT
from tests.flow.local_view_kit import write_sample
from tests.patience import PATIENCE_S

HIDING = """
import json, sys
hidden = set(json.loads(sys.argv.pop(1)))

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hiding())
from streams.__main__ import main
main()
"""


def packages_of(extras: Sequence[str]) -> set[str]:
    """Return the distributions that `contextgauge[extras]` installs, itself included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    required = [*project["dependencies"], *(each for extra in extras for each in optional[extra])]
    waiting, names = list(map(Requirement, required)), {"contextgauge"}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name in names and not requirement.extras) or not _is_meant(requirement, [""]):
            continue
        names.add(name)
        with suppress(PackageNotFoundError):
            own = map(Requirement, distribution(requirement.name).requires or ())
            waiting += [each for each in own if _is_meant(each, [*requirement.extras, ""])]
    return names


def _is_meant(requirement: Requirement, extras: Sequence[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


@pytest.mark.parametrize(
    ("extras", "command"),
    [
        (("pipeline",), ("sessions", "{projects}")),
        (("pipeline",), ("what-if", "{projects}")),
        (("pipeline", "analysis"), ("query", "cost-by-day", "{projects}")),
        (("pipeline", "analysis"), ("export", "{projects}", "--to", "{folder}/tables")),
        (("pipeline", "analysis"), ("report", "{projects}", "--out", "{folder}/report.html")),
    ],
    ids=lambda value: value[0],
)
def test_a_command_needs_no_more_than_its_extra(
    tmp_path: Path, extras: Sequence[str], command: Sequence[str]
) -> None:
    installed = packages_of(extras)
    hidden = [
        module
        for module, names in packages_distributions().items()
        if installed.isdisjoint(map(canonicalize_name, names))
    ]
    assert "pytest" in hidden
    assert "typer" not in hidden
    projects = write_sample(tmp_path / "projects")
    arguments = [each.format(projects=projects, folder=tmp_path) for each in command]
    done = subprocess.run(
        [sys.executable, "-c", HIDING, json.dumps(hidden), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
