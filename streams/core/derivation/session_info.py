"""Facts of the session: emitted once, and again when one changes (records.md, `session_info`)."""

from typing import Any, Final, cast

from contextgauge.normalise.signals import SessionFacts
from schemas.records import MAIN_CHAIN, Runtime, SessionInfo
from streams.core.derivation.step import Step

_FACTS: Final = (
    "runtime",
    "runtime_version",
    "model",
    "cwd",
    "forked_from",
    "publisher_agent_id",
)


def apply_facts(step: Step, message: SessionFacts) -> None:
    """Take facts of the session; emit them if one is new or changed.

    A subagent's line fills what is not known yet but changes nothing: its folder is its own.
    """
    facts = step.facts
    changed: dict[str, Any] = {}
    for name in _FACTS:
        new, old = getattr(message, name), getattr(facts, name)
        if new is not None and new != old and (old is None or not message.only_new):
            changed[name] = new
    if not changed:
        return
    facts = step.facts = facts._replace(**changed)
    step.emit(
        SessionInfo(
            **step.common(MAIN_CHAIN, facts.model),
            runtime=cast("Runtime | None", facts.runtime),
            runtime_version=facts.runtime_version,
            cwd=facts.cwd,
            forked_from=facts.forked_from,
            publisher_agent_id=facts.publisher_agent_id,
        )
    )
