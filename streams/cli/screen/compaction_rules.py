"""The compaction service's file on the screen."""

from pathlib import Path

from streams.cli.screen.figures import count
from streams.cli.screen.output import out, say
from streams.core.alerts.rules import Patterns
from streams.core.control.check import ServicePlan
from streams.core.control.service import SERVICE
from streams.core.control.thresholds import SessionRule, SessionThresholds, written


def show_service(path: Path, plan: ServicePlan) -> None:
    """Print what a file asks for."""
    say(
        f"{path.name}: {count(len(plan.rules), 'rule')}; summaries by {plan.summariser.name}, "
        f"{count(plan.calls, 'call')} at a time; no compaction by what is older than "
        f"{whole_time(plan.max_age_ms)}, or after {whole_time(plan.deadline_ms)}",
        to=out,
    )
    for rule in plan.rules:
        say(f"  {_names(rule)}: {_changes(rule)}", to=out)
    if not any(rule.automatic for rule in plan.rules):
        say("  nothing is compacted automatically: no rule has `automatic = true`", to=out)


def _names(rule: SessionRule) -> str:
    patterns: dict[str, Patterns] = {
        "sessions": rule.sessions,
        "projects": rule.projects,
        "agents": rule.agents,
        "models": rule.models,
    }
    named = [f"{name} {' '.join(item.texts)}" for name, item in patterns.items() if item.texts]
    return ", ".join(named) or "all sessions"


def _changes(rule: SessionRule) -> str:
    default = SessionThresholds()
    parts = []
    if rule.automatic is not None:
        parts.append("automatic" if rule.automatic else "not automatic")
    for name, size in (
        ("at", rule.compact_at or (default.compact_at if rule.automatic else None)),
        ("to", rule.compact_to),
        ("without a model at", rule.hard_at),
    ):
        if size is not None:
            parts.append(f"{name} {written(size)}")
    if rule.driver not in {None, SERVICE}:
        parts.append(f"by {rule.driver}")
    if rule.profile is not None:
        parts.append(f"profile {rule.profile}")
    return ", ".join(parts) or "nothing changed"


def whole_time(time_ms: int) -> str:
    """Return a time in its largest whole unit: 90 s, 10 min, 2 h."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if time_ms % size == 0:
            return f"{time_ms // size} {unit}"
    return f"{time_ms // 1_000} s"
