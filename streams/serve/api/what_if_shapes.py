"""The shape of the answer about other triggers and windows.

Amounts are US dollars as decimal text. Positions count a chain's responses from 0.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from streams.core.whatif.advice import AdviceVerdict
from streams.core.whatif.compaction_facts import Group
from streams.core.whatif.triggers import TriggerSource, Verdict
from streams.serve.api.shapes import BaseAnswer, BaseShape

Amount: TypeAlias = Annotated[str, Field(description="US dollars as decimal text.")]

KnownAmount: TypeAlias = Annotated[
    str | None, Field(description="US dollars as decimal text; null: a price is unknown.")
]


class RecordedTriggerShape(BaseShape):
    """A recorded trigger: as the runtime reports, as its settings say, or as its sizes show."""

    tokens: int
    source: TriggerSource


class SettingShape(BaseShape):
    """A setting that is compared; null: as recorded."""

    name: str
    trigger_tokens: int | None
    trigger_percent: float | None
    window: int | None
    strategy: str | None = Field(description="Of the compaction engine; null: not asked for.")


class CallTokensShape(BaseShape):
    """Tokens of calls: fresh, written to the cache, read from it, output."""

    input: int
    write_5m: int
    write_1h: int
    read: int
    output: int


class RunTotalsShape(BaseShape):
    """What calls took: responses, and the compactions' own calls."""

    responses: int
    usage: CallTokensShape = Field(description="Of responses.")
    summaries: CallTokensShape = Field(description="Of the calls that wrote summaries.")
    cost: KnownAmount = Field(description="Of both, with the cache as it was recorded.")
    warm: KnownAmount = Field(description="The same with a cache that always has the prompt.")
    cold: KnownAmount = Field(description="The same with a cache that never has it.")
    compactions: int
    wait_ms: int = Field(description="The compactions' time, without that of `untimed` ones.")
    untimed: int
    estimated: int = Field(description="Compactions whose time is the median of recorded ones.")
    warnings: int
    overflows: int = Field(description="Responses beyond the window.")
    futile: int = Field(description="Requests that no compaction would have brought below it.")
    pins_kept: int = Field(description="Turns of the user that were there after compactions.")
    pins: int
    unreported: int = Field(
        description="Calls whose output nothing reports, and which no amount has: it is a minimum."
    )


class NamedTotalsShape(RunTotalsShape):
    """What calls of a model took."""

    model: str | None


class UsualBreakEvenShape(BaseShape):
    """The median of responses after which `known` compactions paid off."""

    responses: int | None = Field(description="Null: most never do, or none is known.")
    known: int


class BreakEvenShape(BaseShape):
    """What a compaction cost and saved."""

    responses: int | None = Field(description="After so many it has paid off; null: never.")
    is_extrapolated: bool = Field(description="More than followed, at the mean saving.")
    followed_by: int
    cost: Amount = Field(description="The summary's call.")
    saved: Amount = Field(description="What the responses that followed saved, less the cost.")


class ModelChangeShape(BaseShape):
    """How much more the calls of a model cost than as recorded, with its interval."""

    model: str | None
    middle: Amount
    low: Amount
    high: Amount
    warm: Amount
    cold: Amount


class ChangeShape(BaseShape):
    """How much more all calls of a model cost than as recorded, with its interval."""

    amount: Amount
    low: Amount
    high: Amount
    warm: Amount
    cold: Amount
    sessions: int


class ModelSettingShape(BaseShape):
    """A model under a setting."""

    name: str
    totals: RunTotalsShape
    change: ChangeShape | None = Field(description="Null: a price is unknown.")
    trigger_tokens: int | None = Field(
        description="Null: none is known, or several, as of several windows."
    )
    break_even: UsualBreakEvenShape
    chains_unknown: int = Field(
        description="Chains that are as recorded, as it is not known what a compaction leaves."
    )


class AdviceShape(BaseShape):
    """The setting to use: the cheapest that the sessions could have run under."""

    verdict: AdviceVerdict = Field(
        description="`no_difference`: none that exceeds the uncertainty. `not_possible`: none of "
        "the settings could be compared, or used."
    )
    setting: str | None
    trigger_tokens: int | None
    runtime_setting: dict[str, int] | None = Field(
        description="The setting's name for the runtime, or for the compaction service, and value."
    )
    change: ChangeShape | None
    more_compactions: int
    more_wait_ms: int | None = Field(description="`null` where a time is not known.")
    is_lowest: bool = Field(description="No smaller size was compared.")


class ModelShape(BaseShape):
    """The chains of a model: as recorded, under each setting, and what to use."""

    runtime: str | None
    model: str | None
    trigger: RecordedTriggerShape | None = Field(description="The recorded one of most chains.")
    recorded: RunTotalsShape
    break_even: UsualBreakEvenShape
    settings: list[ModelSettingShape]
    advice: AdviceShape


class SpreadShape(BaseShape):
    """A median of recorded compactions, and where eight of ten of the next ones lie."""

    low: int
    middle: int
    high: int
    size: int = Field(description="Recorded compactions that it is of.")
    group: Group


class FactsShape(BaseShape):
    """What compactions of a chain leave, take and write."""

    tokens_after: SpreadShape | None
    duration_ms: SpreadShape | None
    summary_tokens: SpreadShape | None
    summary_is: Literal["measured", "estimated"] = Field(
        description="`estimated`: some are, from the summaries' texts."
    )
    prefix_tokens: int = Field(description="What is read from the cache after a compaction.")


class RecordedCompactionShape(BaseShape):
    """A recorded compaction, and whether its position follows from the trigger."""

    number: int
    at: int = Field(description="It came before this response.")
    time: str | None
    trigger: str | None
    size: int | None = Field(description="What was known before its request, tokens.")
    trigger_tokens: int | None
    trigger_source: TriggerSource | None
    largest_before: int = Field(description="The largest such size since the last compaction.")
    verdict: Verdict = Field(
        description="`given`: not by its size. Neither that nor `reproduced`: why it is not."
    )
    tokens_after: int | None
    duration_ms: int | None
    break_even: BreakEvenShape | None = Field(description="Null: a price is unknown.")


class NotCompactedShape(BaseShape):
    """A request of the trigger's size that no compaction came before."""

    at: int
    size: int
    trigger: RecordedTriggerShape


class ReplayedCompactionShape(BaseShape):
    """A compaction under a setting."""

    at: int
    time: str | None
    before: int
    after: int | None
    is_recorded: bool
    break_even: BreakEvenShape | None


class ChainSettingShape(BaseShape):
    """A chain under a setting."""

    name: str
    is_known: bool = Field(
        description="False: as recorded, as it is not known what a compaction leaves."
    )
    trigger_tokens: int | None
    compactions: list[ReplayedCompactionShape]
    totals: list[NamedTotalsShape]
    changes: list[ModelChangeShape]


class ReplayedChainShape(BaseShape):
    """A chain as it was recorded, and under each setting."""

    session_id: str
    chain: str
    runtime: str | None
    model: str | None
    responses: int
    trigger: RecordedTriggerShape | None
    facts: FactsShape
    recorded: list[NamedTotalsShape]
    compactions: list[RecordedCompactionShape]
    not_compacted: list[NotCompactedShape]
    settings: list[ChainSettingShape]


class RuleShape(BaseShape):
    """Records of a kind, and the rule that they come from: as recorded and by setting."""

    kind: str
    rule: str | None
    recorded: int
    derived_again: int | None = Field(description="Null: the messages were not derived again.")
    settings: list[int] = Field(description="In the order of the settings; empty: as recorded.")


class WhatIfShape(BaseShape):
    """A session under other settings, by model, by chain, and by rule."""

    settings: list[SettingShape]
    models: list[ModelShape]
    chains: list[ReplayedChainShape]
    rules: list[RuleShape]
    is_whole: bool = Field(description="False: older records are no longer stored.")


class WhatIfResponse(BaseAnswer):
    """What other triggers and windows would have made of a session."""

    what_if: WhatIfShape
