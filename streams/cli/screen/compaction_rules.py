"""The compaction service's file on the screen."""

from pathlib import Path

from contextgauge.compaction.profiles import DEFAULT, profile_named
from contextgauge.normalise.runtimes import RUNTIMES
from streams.cli.screen.figures import count, exact
from streams.cli.screen.output import out, say
from streams.core.alerts.rules import Patterns
from streams.core.control.check import ServicePlan
from streams.core.control.service import SERVICE
from streams.core.control.thresholds import SessionRule, reserve_of, written
from streams.core.conversation.opt_in import KeptConversations


def show_service(path: Path, plan: ServicePlan, kept: KeptConversations | None) -> None:
    """Print what a file asks for."""
    say(
        f"{path.name}: {count(len(plan.rules), 'rule')}; summariser: {plan.summariser.name}, "
        f"{count(plan.calls, 'call')} at a time; no compaction by what is older than "
        f"{whole_time(plan.max_age_ms)}, or after {whole_time(plan.deadline_ms)}",
        to=out,
    )
    for rule in plan.rules:
        named = _names(rule.sessions, rule.projects, rule.agents, rule.models)
        say(f"  {named}: {_changes(rule)}", to=out)
    if not any(rule.automatic for rule in plan.rules):
        say("  nothing is compacted automatically: no rule has `automatic = true`", to=out)
    if any(rule.driver in (None, SERVICE) for rule in plan.rules):
        labels = sorted(each.label for each in RUNTIMES if each.compacts_itself)
        say(
            f"  {', '.join(labels[:-1])} and {labels[-1]} compact themselves: the service compacts "
            "their sessions only if the agent asks for its context; else name their driver",
            to=out,
        )
    if kept is not None:
        named = _names(kept.sessions, kept.projects, kept.agents)
        say(f"  text is kept of {named}, for {whole_time(kept.idle_ms)}", to=out)
    elif not plan.rules or any(rule.driver in (None, SERVICE) for rule in plan.rules):
        say(
            "  the service compacts no session: it needs the section [conversations] "
            "and `contextgauge conversations`",
            "yellow",
            to=out,
        )


def _names(*patterns: Patterns) -> str:
    kinds = zip(("sessions", "projects", "agents", "models"), patterns, strict=False)
    named = [f"{name} {' '.join(item.texts)}" for name, item in kinds if item.texts]
    return ", ".join(named) or "all sessions"


def _changes(rule: SessionRule) -> str:
    parts = []
    if rule.automatic is not None:
        parts.append("automatic" if rule.automatic else "not automatic")
    if rule.compact_at is None and (rule.automatic or rule.profile):
        parts.append(f"at {_own_size(rule.profile or DEFAULT.name)}")
    for name, size in (
        ("at", rule.compact_at),
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


def _own_size(name: str) -> str:
    """Return when a profile compacts where no rule says it: 90%, 80% of all but 11,000 tokens."""
    profile = profile_named(name)
    reserve = reserve_of(profile)
    return f"{profile.compact_at:.0%}" + (f" of all but {exact(reserve)} tokens" if reserve else "")


def whole_time(time_ms: int) -> str:
    """Return a time in its largest whole unit: 90 s, 10 min, 2 h."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if time_ms % size == 0:
            return f"{time_ms // size} {unit}"
    return f"{time_ms // 1_000} s"
