"""What messages contain (R35): a record for each call of a tool, each result, and each user's turn.

They say nothing of sizes or compactions, and nothing of a session depends on them: with them and
without, all other records are the same but for their sequence.
"""

from contextgauge.normalise.content_signals import ToolPart
from contextgauge.normalise.runtimes import OWN_CALL_PREFIXES
from contextgauge.normalise.signals import Normal
from schemas.records import MAIN_CHAIN, Record, ToolUse, UserTurn
from streams.core.derivation import inherited
from streams.core.derivation.state import NEW_CHAIN
from streams.core.derivation.step import Step


def measure(step: Step, normal: Normal, name: str) -> tuple[Record, ...]:
    """Return the records of a new message's content, which is of the chain of that name."""
    if name.startswith(OWN_CALL_PREFIXES):
        return ()
    chain = step.chains.get(name, NEW_CHAIN)
    step.normal = normal
    # A look alone: the chain's own is what `begin` notes.
    step.inherited = inherited.is_inherited(chain.copy(), normal) or None
    for place, fact in enumerate(normal.content):
        common = step.common(name, chain.model)
        if isinstance(fact, ToolPart):
            data: ToolUse | UserTurn = ToolUse(
                **common,
                part=fact.part,
                use_id=fact.use_id,
                tool=fact.tool,
                bytes=fact.bytes,
                tokens_estimated=fact.tokens,
                input_hash=fact.input_hash,
                path_hashes=fact.path_hashes,
                changes_files=fact.changes,
                is_error=fact.is_error,
            )
        elif name != MAIN_CHAIN:
            continue  # the prompt of a subagent, which a model wrote
        else:
            data = UserTurn(**common, characters=fact.characters, tokens_estimated=fact.tokens)
        step.emit(data, (place,))
    return step.records()
