"""Looks the locked versions up in the published advisories: `make audit`.

Python packages by pip-audit, which uv runs outside of the environment, and the page's packages by
npm. A known vulnerability fails it. What cannot be looked up is counted; where that is everything,
as without a network, it says so, and fails only with `--strict`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PIP_AUDIT: Final = "pip-audit==2.10.1"
LOCK: Final = "requirements-dev.lock"
_LIMIT_S: Final = 300


class Audited(NamedTuple):
    """What came of the packages of one lock file."""

    looked_up: int
    unknown: int
    vulnerable: tuple[str, ...]


def python_packages(report: dict[str, Any]) -> Audited:
    """Read pip-audit's report."""
    packages = report["dependencies"]
    known = [each for each in packages if "skip_reason" not in each]
    vulnerable = tuple(
        f"{each['name']} {each['version']}: {vulnerability['id']}"
        + (
            f", fixed in {', '.join(vulnerability['fix_versions'])}"
            if vulnerability["fix_versions"]
            else ""
        )
        for each in known
        for vulnerability in each["vulns"]
    )
    return Audited(len(known), len(packages) - len(known), vulnerable)


def page_packages(report: dict[str, Any]) -> Audited | None:
    """Read npm's report; None where npm could not ask."""
    if "vulnerabilities" not in report or "metadata" not in report:
        return None
    vulnerabilities = report["vulnerabilities"]
    vulnerable = tuple(
        f"{name}: {each['severity']}" for name, each in sorted(vulnerabilities.items())
    )
    return Audited(report["metadata"]["dependencies"]["total"], 0, vulnerable)


def _output(command: list[str], folder: Path = ROOT) -> dict[str, Any]:
    try:
        done = subprocess.run(  # noqa: S603 -- a list of arguments, no shell
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
        report: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    return report


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> int:
    """Audit both lock files; return the exit code."""
    uv = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", PIP_AUDIT]
    options = ["-r", LOCK, "--require-hashes", "--disable-pip", "--progress-spinner", "off"]
    report = _output([*uv, *options, "-f", "json"])
    python = python_packages(report) if "dependencies" in report else None
    npm = _output(["npm", "audit", "--package-lock-only", "--json"], ROOT / "tools" / "page")
    failed = "--strict" in sys.argv[1:]
    is_failed = False
    for name, audited in ((LOCK, python), ("package-lock.json", page_packages(npm))):
        if audited is None or not audited.looked_up:
            _say(f"audit: {name}: the advisories cannot be reached, so nothing is known")
            is_failed |= failed
            continue
        unknown = f", {audited.unknown} not known to the service" if audited.unknown else ""
        count = len(audited.vulnerable)
        _say(f"audit: {name}: {audited.looked_up} looked up{unknown}, {count} vulnerable")
        for line in audited.vulnerable:
            _say(f"  {line}")
        is_failed |= bool(audited.vulnerable)
    return 1 if is_failed else 0


if __name__ == "__main__":
    sys.exit(main())
