"""`contextgauge doctor`: examines Kafka and Redis, read only, and says how to fix what is wrong."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from contextgauge.clock import SystemClock
from contextgauge.settings.forms import PREFIX
from streams import wiring
from streams.cli.doctor.report import show
from streams.cli.exits import Exit
from streams.cli.screen.output import out, write_json
from streams.flow import doctor as flow
from streams.flow.doctor import Finding
from streams.settings import Settings
from streams.wiring.doctor import doctor_expected, doctor_services

DOCUMENT_FORMAT = 1
"""Of the JSON document: raised where a reader of the former one would be misled."""

_HIDDEN = "(set, not shown)"


def doctor(
    *,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 for warnings as well.")
    ] = False,
    problems: Annotated[
        bool, typer.Option("--problems", help="Show only errors, warnings and notes.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document for programs.")
    ] = False,
) -> None:
    """Examine Kafka, topics, publishers, workers and Redis.

    Shows how to fix problems. Writes nothing anywhere. Exits with code 1 if there is an error.
    docs/DOCTOR.md explains each check.
    """
    settings = wiring.settings()
    clock = SystemClock()
    expected = doctor_expected(settings)
    facts = asyncio.run(flow.gather(doctor_services(settings, clock), expected))
    findings = flow.judge(facts, expected)
    shown = [item for item in findings if not problems or item.severity not in {"ok", "skipped"}]
    counts = Counter(item.severity for item in findings)
    changed = _changed_settings(settings)
    if as_json:
        write_json(_document(shown, counts, changed, facts.now_ms))
    else:
        show(out, shown, counts, changed)
    failed = counts["error"] or (strict and counts["warning"])
    raise typer.Exit(Exit.STOPPED if failed else Exit.DONE)


def _changed_settings(settings: Settings) -> dict[str, str]:
    """Return the settings that are not the defaults, by variable; secrets are not shown."""
    changed: dict[str, str] = {}
    for name in sorted(settings.model_fields_set):
        value = getattr(settings, name)
        if name == "redis_url" and value is not None:
            value = wiring.redis_address(settings)
        elif isinstance(value, SecretStr):
            value = _HIDDEN
        if value is not None:
            changed[PREFIX + name.upper()] = str(value)
    return changed


def _document(
    shown: Sequence[Finding], counts: Counter[flow.Severity], changed: dict[str, str], now_ms: int
) -> dict[str, Any]:
    return {
        "format": DOCUMENT_FORMAT,
        "contextgauge": version("contextgauge"),
        "at_ms": now_ms,
        "counts": {name: counts[name] for name in flow.SEVERITIES},
        "settings": changed,
        "checks": [
            {
                "id": item.check,
                "severity": item.severity,
                "subject": item.subject or None,
                "found": item.message,
                "why": item.why,
                "mend": item.remedy or None,
                "figures": dict(item.figures),
            }
            for item in shown
        ],
    }
