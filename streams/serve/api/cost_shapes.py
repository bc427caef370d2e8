"""The shape of the answer about costs."""

from typing import Literal

from pydantic import Field

from streams.serve.api.shapes import BaseAnswer, BaseShape


class AmountShape(BaseShape):
    """An amount of money, exact."""

    usd: str | None = Field(description="US dollars as decimal text; null: unknown, and not 0.")
    basis: Literal["derived", "unknown"] = Field(
        description="`derived`: measured token counts at list prices."
    )
    is_complete: bool = Field(description="False: a part is unknown, and not in it.")


class ModelCostShape(BaseShape):
    """What calls of a model cost."""

    model: str | None
    calls: int
    unpriced: int = Field(description="Calls whose price is unknown.")
    cost: AmountShape


class CompactionProfitShape(BaseShape):
    """What a compaction cost, and what it saved until the next one or a reset.

    Counts of tokens and milliseconds are measured, null where they are unknown.
    """

    boundary_id: str = Field(description="The id of the receipt, and of the boundary's record.")
    chain: str
    number: int
    model: str | None
    summary: AmountShape = Field(description="The call that wrote the summary.")
    rewrite_tokens: int | None
    rewrite: AmountShape = Field(description="What the first response wrote to the cache.")
    tokens_saved: int | None
    saving: AmountShape = Field(description="By how much each response after it is cheaper.")
    responses: int = Field(description="Responses after it.")
    break_even_responses: int | None = Field(
        description="So many responses pay for summary and rewrite."
    )
    net: AmountShape = Field(description="What they saved, less summary and rewrite.")
    cache_share_before: float | None = Field(
        description="Share of the last prompt that was read from the cache."
    )
    cache_share_after: float | None
    duration_ms: int | None
    waited_ms: int | None = Field(description="How long the agent waited: 0 in the background.")


class CostsShape(BaseShape):
    """What a session cost."""

    currency: Literal["USD"]
    cost: AmountShape
    models: list[ModelCostShape]
    compactions: list[CompactionProfitShape]
    is_whole: bool = Field(description="False: older records are no longer stored.")


class CostsAnswer(BaseAnswer):
    """What a session cost, by model, and what each compaction cost and saved."""

    costs: CostsShape
