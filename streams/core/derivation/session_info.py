"""Facts of the session: emitted once, and again when one changes (records.md, `session_info`)."""

from typing import cast

from contextgauge.normalise.signals import SessionFacts
from schemas.records import MAIN_CHAIN, Runtime, SessionInfo
from streams.core.derivation.step import Step


def apply_facts(step: Step, message: SessionFacts) -> None:
    """Take facts of the session; emit them if one is new or changed.

    A subagent's line fills what is not known yet but changes nothing: its folder is its own.
    """
    facts = step.facts
    known = (
        facts.runtime,
        facts.runtime_version,
        facts.model,
        facts.cwd,
        facts.forked_from,
        facts.publisher_agent_id,
    )
    merged = tuple(
        old if new is None or (message.only_new and old is not None) else new
        for new, old in zip((*message[:5], message.publisher_agent_id), known, strict=True)
    )
    if merged == known:
        return
    runtime, version, model, cwd, forked_from, agent_id = merged
    step.facts = facts._replace(
        runtime=runtime,
        runtime_version=version,
        model=model,
        cwd=cwd,
        forked_from=forked_from,
        publisher_agent_id=agent_id,
    )
    step.emit(
        SessionInfo(
            **step.common(MAIN_CHAIN, model),
            runtime=cast("Runtime | None", runtime),
            runtime_version=version,
            cwd=cwd,
            forked_from=forked_from,
            publisher_agent_id=agent_id,
        )
    )
