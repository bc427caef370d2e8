"""`contextgauge doctor`: looks into Kafka and Redis, read only, and says what to mend and how."""

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
from streams.cli.doctor.screen import show
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
        bool, typer.Option("--strict", help="Let a warning, too, end it with exit code 1.")
    ] = False,
    problems: Annotated[
        bool, typer.Option("--problems", help="Show only errors, warnings and notes.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document for programs.")
    ] = False,
) -> None:
    """Examine Kafka, the topics, publishers, workers and Redis; say what to mend, and how.

    It writes nothing anywhere. Ends with exit code 1 if there is an error. docs/DOCTOR.md
    explains each check.
    """
    chosen = wiring.settings()
    clock = SystemClock()
    expected = doctor_expected(chosen)
    facts = asyncio.run(flow.gather(doctor_services(chosen, clock), expected))
    findings = flow.judge(facts, expected)
    settings = told_settings(chosen)
    shown = [item for item in findings if not problems or item.severity not in _FINE]
    if as_json:
        write_json(document(findings, settings, facts.now_ms, shown))
    else:
        show(out, shown, findings, settings)
    raise typer.Exit(exit_code(findings, strict=strict))


_FINE = frozenset({"ok", "skipped"})


def exit_code(findings: Sequence[Finding], *, strict: bool) -> Exit:
    """Return 1 where there is an error, or a warning and `strict` is asked for."""
    wrong = {"error", "warning"} if strict else {"error"}
    return Exit.STOPPED if any(item.severity in wrong for item in findings) else Exit.DONE


def told_settings(chosen: Settings) -> dict[str, str]:
    """Return the settings that are not the defaults, by variable; secrets are not shown."""
    told: dict[str, str] = {}
    for name in sorted(chosen.model_fields_set):
        value = getattr(chosen, name)
        if name == "redis_url" and value is not None:
            value = wiring.redis_address(chosen)
        elif isinstance(value, SecretStr):
            value = _HIDDEN
        if value is not None:
            told[PREFIX + name.upper()] = str(value)
    return told


def document(
    findings: Sequence[Finding],
    settings: dict[str, str],
    now_ms: int,
    shown: Sequence[Finding] | None = None,
) -> dict[str, Any]:
    """Return the document for programs; it counts all findings and has those that are shown."""
    counts = Counter(item.severity for item in findings)
    return {
        "format": DOCUMENT_FORMAT,
        "contextgauge": version("contextgauge"),
        "at_ms": now_ms,
        "counts": {name: counts[name] for name in flow.SEVERITIES},
        "settings": settings,
        "checks": [
            {
                "id": item.check,
                "severity": item.severity,
                "subject": item.subject or None,
                "found": item.found,
                "why": item.why,
                "mend": item.mend or None,
                "figures": dict(item.figures),
            }
            for item in (findings if shown is None else shown)
        ],
    }
