"""Whether a compaction by the service took effect, by what the answers after it report.

An agent that keeps its own history sends all of it again, and its next answer reports the size of
before. What came since is estimated, so the sizes are compared with a margin, and what is between
them is not judged. Nor is an answer to what may have been sent before the boundary.
"""

from dataclasses import asdict, dataclass, replace
from typing import Final, Literal, Self, TypeAlias, get_args

from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.formats.fields import a_count, an_object, optional_text, wrong
from contextgauge.compaction.messages import Message
from contextgauge.records import Json

EffectState: TypeAlias = Literal["awaited", "seen", "none", "unknown"]

_STATES: Final[tuple[EffectState, ...]] = get_args(EffectState)

_LEAST_SHARE: Final = 10
"""A tenth of the size: what saves less does not stand out from other changes."""
_MOST_SINCE: Final = 4
"""So many times of what was saved: beyond that the estimates hide it."""


@dataclass(frozen=True, slots=True)
class CompactionEffect:
    """What is known of one compaction's effect. Sizes are tokens.

    `since` is an estimate of the messages that came after it. `is_calling`: the model may have been
    called before it, and has not answered. `is_sent`: something was sent since, to which the next
    answer is. `used` is what the answer reported that decided it.
    """

    state: EffectState
    before: int = 0
    after: int = 0
    model: str | None = None
    since: int = 0
    is_calling: bool = False
    is_sent: bool = False
    used: int | None = None

    @classmethod
    def of(cls, receipt: Receipt | None, model: str | None, *, is_calling: bool) -> Self:
        """Return what is known right after a compaction."""
        if receipt is None or receipt.basis != "reported":
            return cls("unknown")
        before, after = receipt.tokens_before, receipt.tokens_after
        is_small = (before - after) * _LEAST_SHARE < before
        state: EffectState = "unknown" if is_small else "awaited"
        return cls(state, before, after, model, is_calling=is_calling)

    def came(self, message: Message) -> Self:
        """Return what is known after another message of the conversation."""
        is_answer = message.role == "assistant"
        return replace(
            self,
            since=self.since + ESTIMATE.message(message),
            is_calling=self.is_calling and not is_answer,
            is_sent=self.is_sent or not (is_answer or self.is_calling),
        )

    def judged(self, used: int, model: str | None) -> Self:
        """Return what is known by the size that an answer reports."""
        middle = (self.before + self.after) // 2
        state: EffectState = "awaited"
        if model != self.model or self.since > _MOST_SINCE * (self.before - self.after):
            state = "unknown"
        elif used - self.since // 2 <= middle:
            state = "seen"
        elif self.is_sent and used - 3 * self.since // 2 > middle:
            state = "none"
        return replace(self, state=state, used=None if state == "awaited" else used)

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Json, path: str) -> Self:
        """Read what `to_json` wrote. Raises ConfigError where it is damaged."""
        fields = an_object(value, path)
        state = next((each for each in _STATES if each == fields.get("state")), None)
        if state is None:
            raise wrong(f"{path}.state", f"one of {', '.join(_STATES)}", fields.get("state"))
        return cls(
            state,
            a_count(fields, "before", path),
            a_count(fields, "after", path),
            optional_text(fields, "model", path),
            a_count(fields, "since", path),
            is_calling=fields.get("is_calling") is True,
            is_sent=fields.get("is_sent") is True,
            used=None if fields.get("used") is None else a_count(fields, "used", path),
        )
