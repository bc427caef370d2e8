"""`contextgauge control`: alerts by webhook, and compactions, by the rules of TOML files."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from contextgauge.clock import SystemClock
from contextgauge.documents import document
from contextgauge.errors import ConfigError
from contextgauge.kafka.connection import bootstrap_servers
from contextgauge.settings.forms import PREFIX
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.screen.compaction_rules import show_service, whole_time
from streams.cli.screen.figures import count, safe
from streams.cli.screen.output import out, say
from streams.cli.workers.run import run
from streams.core.alerts.rules import (
    AlertPlan,
    Exhaustion,
    Failed,
    LostRules,
    Patterns,
    Pressure,
    Rule,
    Stalled,
    Thrashing,
)
from streams.edge.alerts.rules_file import ALERT_RULES, addresses, check_plan_file, read_plan
from streams.edge.control.service_file import (
    COMPACTION_SERVICE,
    check_service_file,
    is_service_file,
    read_service,
    summariser_of,
)
from streams.edge.files.toml_file import digest_of
from streams.wiring.context import WorkerContext
from streams.wiring.deployment import as_deployment


def control(
    *,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="FILE",
            show_default="CONTEXTGAUGE_ALERTS_FILE",
            help="TOML file with the rules and the targets that alerts are sent to.",
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Validate this file of alert rules, or of the compaction service, and the secrets "
            "that it names; list its rules, and exit. Nothing is sent.",
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            metavar="FILE",
            help="Send one test alert to each target of this file, show the answers, and exit: "
            "with 1 if any target did not accept it. Needs neither Kafka nor Redis.",
        ),
    ] = None,
) -> None:
    """Send alerts and compact sessions, until stopped.

    Rules in a file select what to alert on: a window near its limit, a compaction that failed or
    stalled. The file of CONTEXTGAUGE_COMPACTION_FILE selects the sessions to compact. Reads
    context.events and retries what could not be sent. Run up to one worker per partition; any of
    them may be killed at any time.
    """
    if check is not None and test is not None:
        raise ConfigError("--check and --test: choose one of the two; --test checks as well")
    if test is not None:
        _test(test)
    elif check is not None:
        _check(check)
    else:
        settings = wiring.settings()
        path = rules or settings.alerts_file
        if path is None and settings.compaction_file is None:
            raise ConfigError(
                f"No alert rules: pass --rules FILE, or set {PREFIX}ALERTS_FILE; "
                f"{document('ALERTS.md')} has examples. To compact sessions, set "
                f"{PREFIX}COMPACTION_FILE; see {document('CONTROL.md')}"
            )
        _run(path, settings.compaction_file)


def _check(path: Path) -> None:
    if is_service_file(path):
        show_service(path, *check_service_file(path))
    else:
        _show(path, check_plan_file(path))


def _run(rules: Path | None, compaction: Path | None) -> None:
    plan = None if rules is None else read_plan(rules)
    targets = {} if plan is None else addresses(plan)
    rules_digest = None if rules is None else digest_of(rules, ALERT_RULES)
    service = None if compaction is None else read_service(compaction)
    service_digest = None if compaction is None else digest_of(compaction, COMPACTION_SERVICE)
    if service is not None:
        summariser_of(service.summariser)  # fails now and not at the first compaction

    async def work(worker: WorkerContext) -> None:
        from streams.wiring import control  # noqa: PLC0415 -- Faust takes a second

        alerts = compactions = None
        if plan is not None and rules_digest is not None:
            alerts = control.AlertRole(plan=plan, addresses=targets, digest=rules_digest)
        if service is not None and service_digest is not None:
            compactions = control.ServiceRole(plan=service, digest=service_digest)
        work = partial(control.control, worker, alerts, compactions)
        await (work() if compactions is None else as_deployment(worker, work))

    run("control", work, bootstrap_servers)


def _test(path: Path) -> None:
    """Send test alerts. Raises ConfigError, and Exit where a target did not accept its alert."""
    from streams.wiring import control as worker  # noqa: PLC0415 -- as above

    plan = read_plan(path)
    answers = asyncio.run(worker.try_targets(plan, addresses(plan), SystemClock()))
    for name, answer in answers.items():
        delivered = answer.outcome == "delivered"
        line = Text("✓ " if delivered else "✗ ", style="green" if delivered else "red")
        out.print(line.append(safe(f"{name}: {answer.reason}"), style=""), soft_wrap=True)
    if any(answer.outcome != "delivered" for answer in answers.values()):
        raise typer.Exit(Exit.STOPPED)


def _show(path: Path, plan: AlertPlan) -> None:
    out.print(
        f"{safe(path.name)}: {count(len(plan.rules), 'rule')}, "
        f"{count(len(plan.targets), 'target')}; no alerts on what is older than "
        f"{whole_time(plan.max_age_ms)}",
        markup=False,
    )
    for rule in plan.rules:
        line = f"  {rule.name}: {_condition(rule)}{_filters(rule)} → {', '.join(rule.targets)}"
        say(line, to=out)


def _condition(rule: Rule) -> str:
    match rule.condition:
        case Pressure(at_percent):
            return f"{at_percent}% of a window used"
        case Failed(outcomes):
            return f"a compaction {' or '.join(sorted(outcomes))}"
        case Stalled(after_ms):
            return f"a compaction silent for {whole_time(after_ms)}"
        case Thrashing(number, within_ms):
            return f"{number} compactions within {whole_time(within_ms)}"
        case Exhaustion(reasons):
            return f"no room left ({', '.join(sorted(reasons))})"
        case LostRules(at_least):
            return f"{count(at_least, 'rule')} of the user lost at a compaction"


def _filters(rule: Rule) -> str:
    patterns: dict[str, Patterns] = {
        "models": rule.models,
        "sessions": rule.sessions,
        "agents": rule.agents,
        "chains": rule.chains,
    }
    filters = [f"{name} {' '.join(item.texts)}" for name, item in patterns.items() if item.texts]
    return f", {', '.join(filters)}" if filters else ""
