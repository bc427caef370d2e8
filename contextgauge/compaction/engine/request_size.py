"""How large the next request is, and what of it a compaction could change. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from contextgauge.compaction.counting import (
    Counter,
    Estimate,
    Size,
    estimated_size,
    reported_size,
)
from contextgauge.compaction.engine.selection import select
from contextgauge.compaction.engine.tool_results import fitting
from contextgauge.compaction.engine.trigger import TriggerLimits, limits_of
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message, ModelRequest
from contextgauge.compaction.profiles import Profile, Window, share_of

LARGEST_ERROR: Final = 4
"""How often an estimate may be in a reported size: in some scripts a character is a token. What is
more is something else, such as tools that the caller does not name."""

LEAST_SUMMARY_TOKENS: Final = 256
"""Room without which a summary makes no sense: part of what always stays."""

_RECALL_TOOL: Final = re.compile(r'(?:"name"\s*:\s*|\A\s*\{\s*)"recall"\s*[,:}]')
"""A definition of any provider, or a name of the AI SDK; quotes in a description are escaped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """All but the messages of the next call of the model.

    `tools` are definitions as JSON texts. `window_tokens` is the model's window where the caller
    knows it, and `window_source` from where: `runtime`, if the runtime reported it. `keep_ids` are
    messages that stay in the context whatever happens, such as memory.
    `project` and `agent` select overrides of the profile. `recall`: whether the model can call
    `recall`; None: whether `tools` has it.
    """

    system: str = ""
    tools: tuple[str, ...] = ()
    reserved_output_tokens: int = 0
    model: str | None = None
    window_tokens: int | None = None
    window_source: Literal["given", "runtime"] = "given"
    project: str | None = None
    agent: str | None = None
    keep_ids: frozenset[str] = frozenset()
    recall: bool | None = None

    @property
    def offers_recall(self) -> bool:
        """Whether a notice may tell the model to recall a message."""
        if self.recall is not None:
            return self.recall
        return any(_RECALL_TOOL.search(each) for each in self.tools)

    def request(self, messages: Sequence[Message]) -> ModelRequest:
        """Return the call with its messages."""
        return ModelRequest(
            messages, self.system, self.tools, self.reserved_output_tokens, self.model
        )


def window_of_call(
    profile: Profile, call: ModelCall, look_up: Callable[[str], int | None] | None
) -> Window | None:
    """Return the model's window, and who says so; None: unknown, and the profile assumes none."""
    if call.window_tokens is not None:
        return Window(call.window_tokens, call.window_source)
    if call.model is not None:
        if (tokens := profile.windows.get(call.model)) is not None:
            return Window(tokens, "profile")
        if look_up is not None and (tokens := look_up(call.model)) is not None:
            return Window(tokens, "catalog")
    if profile.unknown_window_tokens is None:
        return None
    return Window(profile.unknown_window_tokens, "assumed")


def once(counter: Counter) -> Counter:
    """Return a counter that counts each message once; the estimate is as cheap as remembering it.

    One that is derived from the estimate may be as dear as any other.
    """
    return counter if type(counter) is Estimate else CountOnce(counter)


class CountOnce:
    """A counter that counts each message once, for as long as one compaction is worked out."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._counted: dict[int, int] = {}
        # Held too, so that no other message can have the same id meanwhile.
        self._messages: list[Message] = []

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._counter.text(text)

    def message(self, message: Message) -> int:
        """Return the tokens of a message."""
        tokens = self._counted.get(id(message))
        if tokens is None:
            tokens = self._counted[id(message)] = self._counter.message(message)
            self._messages.append(message)
        return tokens


@dataclass(frozen=True, slots=True)
class Measurement:
    """The size of the next request against its limits.

    `size` is what is compared with the thresholds, `before` what a receipt shows: an estimate where
    nothing was reported; `messages_tokens` is the estimate of the active
    messages, `other_tokens` of the rest. `budget_tokens` is what a compaction may leave of the
    messages, in the estimate's own tokens.
    """

    limits: TriggerLimits
    size: Size
    before: Size
    messages_tokens: int
    other_tokens: int
    budget_tokens: int

    def after(self, messages_tokens: int) -> int:
        """Return what `before` becomes with so much estimated for the messages.

        What was saved is an estimate. It is taken from a reported size whole, as what that has
        beyond the estimate may be no messages, and in proportion where less was reported.
        """
        before, estimated = self.before.tokens, self.messages_tokens + self.other_tokens
        if before < estimated:
            return before * (messages_tokens + self.other_tokens) // estimated
        return before - (self.messages_tokens - messages_tokens)


def measure(
    history: History, call: ModelCall, profile: Profile, window: Window, counter: Counter
) -> Measurement:
    """Measure the request that the active messages would make.

    Where an API reported more than the estimate says, the budget shrinks by the same factor. Where
    the rest of the request leaves the messages next to nothing of the goal, they get a quarter of
    it, or half of what there is up to the threshold.
    """
    active = history.active
    limits = limits_of(profile, window, call.reserved_output_tokens)
    request = call.request(active)
    estimate = estimated_size(request, counter)
    size = _size(history, request, profile, counter, estimate)
    other = estimate.system + estimate.tools if profile.sizing == "request" else 0
    estimated = estimate.messages + other
    least = min((limits.compact_at_tokens - other) // 2, limits.compact_to_tokens // 4)
    budget = max(limits.compact_to_tokens - other, least, 0)
    if size.basis == "reported" and size.tokens > estimated:
        budget = max(budget // LARGEST_ERROR, budget * estimated // size.tokens)
    before = size if size.tokens else estimate
    return Measurement(limits, size, before, estimate.messages, other, budget)


def _size(
    history: History,
    request: ModelRequest,
    profile: Profile,
    counter: Counter,
    estimate: Size,
) -> Size:
    if profile.sizing == "messages":
        return Size(estimate.messages, 0, 0, estimate.messages, 0, "estimated")
    if profile.sizing == "request":
        size = reported_size(request, counter, estimate, fresh_from=history.fresh_from)
        if size.basis == "estimated" or not history.saved_since_report:
            return size
        saved = history.saved_since_report
        return replace(
            size,
            tokens=max(estimate.tokens, size.tokens - saved),
            messages=max(estimate.messages, size.messages - saved),
        )
    for message in reversed(history.active[history.fresh_from :]):
        if message.usage is not None:
            context = message.usage.context
            return Size(context, 0, 0, context, 0, "reported")
    return Size(0, 0, 0, 0, 0, "reported")


def fixed_tokens(
    active: Sequence[Message],
    call: ModelCall,
    profile: Profile,
    counter: Counter,
    measured: Measurement,
) -> int:
    """Return the least that a compaction could leave: what always stays, and a short summary."""
    budget = measured.budget_tokens
    keep = None if profile.keep_share is None else share_of(budget, profile.keep_share)
    selection = select(
        active,
        keep_last=profile.keep_last,
        keep_tokens=keep,
        counter=counter,
        keep_ids=call.keep_ids,
        keep_first=profile.keep_first,
    )
    tail = fitting(selection.tail, keep, profile, counter)
    staying_tokens = sum(map(counter.message, (*selection.head, *tail)))
    return measured.other_tokens + staying_tokens + LEAST_SUMMARY_TOKENS


class CallFrame(NamedTuple):
    """What one decision is about: a conversation, the next call, and the figures for it."""

    history: History
    call: ModelCall
    profile: Profile
    window: Window
    counter: Counter

    def measure(self) -> Measurement:
        """Measure the request that the active messages would make."""
        return measure(self.history, self.call, self.profile, self.window, self.counter)

    def fixed_tokens(self, measured: Measurement) -> int:
        """Return the least that a compaction could leave."""
        return fixed_tokens(self.history.active, self.call, self.profile, self.counter, measured)

    def effect_tokens(self, measured: Measurement) -> int | None:
        """Return the size from which the first answer since the last compaction was made.

        Where the API does not report it, it is an estimate of what the compaction left.
        """
        active, first = self.history.active, self.history.edited_until
        for message in active[first:]:
            if message.role == "assistant":
                if message.usage is not None:
                    return message.usage.context
                return measured.other_tokens + sum(map(self.counter.message, active[:first]))
        return None
