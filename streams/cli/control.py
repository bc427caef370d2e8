"""`contextgauge control`: alerts by webhook, for rules that people set in a file."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from contextgauge.kafka.connection import bootstrap_servers
from contextgauge.settings.forms import PREFIX
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.screen.output import out, safe
from streams.cli.workers import commands as workers
from streams.core.alerts.rules import (
    AlertPlan,
    Exhausted,
    Failed,
    Patterns,
    Pressure,
    Rule,
    Stalled,
    Thrash,
)
from streams.edge.alerts.rules_file import addresses, read_plan
from streams.edge.telemetry.health import HealthBoard
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.settings import Settings

Rules = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        show_default="CONTEXTGAUGE_ALERTS_FILE",
        help="TOML file of the rules and of where alerts are sent.",
    ),
]
Check = Annotated[
    Path | None,
    typer.Option(
        "--check",
        metavar="FILE",
        help="Only read this file and the secrets that it names, say what it asks for, and end. "
        "Nothing is sent.",
    ),
]


Test = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Send one test alert to each target of this file, say what each answered, and end: "
        "with exit code 1 if one did not take it. Needs neither Kafka nor Redis.",
    ),
]


def control(*, rules: Rules = None, check: Check = None, test: Test = None) -> None:
    """Alert people by webhook: a session near its limit, a compaction that failed or stalled.

    Reads context.events and sends what the rules ask for; what could not be sent is tried again.
    Any number may run, up to the number of partitions, and any of them may be killed at any time.
    """
    if check is not None and test is not None:
        raise ConfigError("--check and --test: choose one of the two; --test checks as well")
    if test is not None:
        _try(test)
        return
    if check is not None:
        plan = read_plan(check)
        addresses(plan)
        _show(check, plan)
        return
    plan = read_plan(_file(wiring.settings(), rules))
    found = addresses(plan)

    async def work(
        chosen: Settings,
        telemetry: PrometheusTelemetry,
        health: HealthBoard,
        stop: asyncio.Event,
    ) -> None:
        # Faust takes a second to import, which no other command shall wait for.
        from streams.wiring import control as wiring_control  # noqa: PLC0415 -- as said

        await wiring_control.control(
            chosen,
            plan,
            found,
            telemetry=telemetry,
            health=health,
            clock=SystemClock(),
            stop=stop,
        )

    workers.run("control", work, bootstrap_servers)


def _try(path: Path) -> None:
    """Send test alerts. Raises ConfigError, and Exit where a target did not take its own."""
    plan = read_plan(path)
    found = addresses(plan)
    from streams.wiring import control as wiring_control  # noqa: PLC0415 -- as above

    answers = asyncio.run(wiring_control.try_targets(plan, found, SystemClock()))
    for name, answer in answers.items():
        taken = answer.outcome == "delivered"
        line = Text("✓ " if taken else "✗ ", style="green" if taken else "red")
        out.print(line.append(safe(f"{name}: {answer.said}"), style=""), soft_wrap=True)
    if any(answer.outcome != "delivered" for answer in answers.values()):
        raise typer.Exit(Exit.STOPPED)


def _file(chosen: Settings, named: Path | None) -> Path:
    path = named or chosen.alerts_file
    if path is None:
        raise ConfigError(
            f"no alert rules are named: give --rules FILE, or set {PREFIX}ALERTS_FILE; "
            "docs/ALERTS.md has some to begin with"
        )
    return path


def _show(path: Path, plan: AlertPlan) -> None:
    out.print(
        f"{safe(path.name)}: {_counted(len(plan.rules), 'rule')}, "
        f"{_counted(len(plan.targets), 'target')}; nothing older than {_time(plan.max_age_ms)} "
        "is alerted on",
        markup=False,
    )
    for rule in plan.rules:
        told = f"  {rule.name}: {_condition(rule)}{_filters(rule)} → {', '.join(rule.targets)}"
        out.print(safe(told), markup=False, highlight=False, soft_wrap=True)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _condition(rule: Rule) -> str:
    match rule.condition:
        case Pressure(at_percent):
            return f"{at_percent} % of a window used"
        case Failed(outcomes):
            return f"a compaction {' or '.join(sorted(outcomes))}"
        case Stalled(after_ms):
            return f"a compaction silent for {_time(after_ms)}"
        case Thrash(count, within_ms):
            return f"{count} compactions within {_time(within_ms)}"
        case Exhausted(reasons):
            return f"no room left ({', '.join(sorted(reasons))})"


def _filters(rule: Rule) -> str:
    named: dict[str, Patterns] = {
        "models": rule.models,
        "sessions": rule.sessions,
        "agents": rule.agents,
        "chains": rule.chains,
    }
    told = [f"{name} {' '.join(item.texts)}" for name, item in named.items() if item.texts]
    return f", {', '.join(told)}" if told else ""


def _time(time_ms: int) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if time_ms % size == 0:
            return f"{time_ms // size} {unit}"
    return f"{time_ms // 1_000} s"
