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
)
from contextgauge.compaction.engine.linked_messages import is_server_compaction
from contextgauge.compaction.engine.selection import select
from contextgauge.compaction.engine.tool_results import fitting
from contextgauge.compaction.engine.trigger import (
    LEAST_GROWTH,
    Calibration,
    TriggerLimits,
    limits_of,
)
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ApiUsage, Message, ModelRequest
from contextgauge.compaction.profiles import Profile, Window

LARGEST_ERROR: Final = 4
"""How often an estimate may be in a reported size: in some scripts a character is a token. What is
more is something else, such as tools that the caller does not name."""

LEAST_SUMMARY_TOKENS: Final = 256
"""Room without which a summary makes no sense: the least that takes the place of messages."""

_LEAST_APART: Final = 8
"""Two reports tell how much sizes grow where an eighth of the messages lies between them."""

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


NO_CALL: Final = ModelCall()
"""Nothing is known of the call but its messages."""


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


class Fixed(NamedTuple):
    """What no compaction can change, in the sizes that an API reports.

    `overhead_tokens` is in no estimate: tools that the caller does not name. A token of estimate
    is `growth` tokens.
    """

    overhead_tokens: int
    growth: float

    def real(self, estimated_tokens: int) -> int:
        """Return what the API would report of a request."""
        return self.overhead_tokens + int(self.growth * estimated_tokens)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The size of the next request against its limits.

    `size` is what is compared with the thresholds, `before` what a receipt shows: an estimate where
    nothing was reported; `messages_tokens` is the estimate of the active
    messages, `other_tokens` of the rest. `budget_tokens` is what a compaction may leave of the
    messages, in the estimate's own tokens: of what can be changed, and what always stays of them.
    """

    limits: TriggerLimits
    size: Size
    before: Size
    messages_tokens: int
    other_tokens: int
    budget_tokens: int
    fixed: Fixed
    calibration: Calibration | None

    @property
    def overflows(self) -> bool:
        """Whether the request does not fit."""
        return self.size.tokens >= self.limits.usable_tokens

    def is_worth(self, saved_tokens: int) -> bool:
        """Whether a compaction that saves so much keeps the distance to the next one."""
        return saved_tokens * self.fixed.growth * LEAST_GROWTH >= self.limits.changeable_tokens

    def after(self, messages_tokens: int) -> int:
        """Return what `before` becomes with so much estimated for the messages.

        What was saved is an estimate. It is taken from a reported size as sizes grew, and in
        proportion where less was reported than estimated.
        """
        before, estimated = self.before.tokens, self.messages_tokens + self.other_tokens
        if before < estimated:
            return before * (messages_tokens + self.other_tokens) // estimated
        saved = self.messages_tokens - messages_tokens
        return max(messages_tokens + self.other_tokens, before - int(self.growth * saved))

    @property
    def growth(self) -> float:
        """How much sizes grow for a token of estimate, as far as two reports show it."""
        return (self.calibration and self.calibration.growth) or 1.0


def measure(
    history: History, call: ModelCall, profile: Profile, window: Window, counter: Counter
) -> Measurement:
    """Measure the request that the active messages would make.

    Where an API reported more than the estimate says, the difference is fixed as far as two
    reports show that it does not grow with the messages; with one report, as far as no estimate
    can be so wrong.
    """
    active = history.active
    estimate = estimated_size(call.request(active), counter)
    if profile.sizing != "request":
        limits = limits_of(profile, window, call.reserved_output_tokens)
        size = _own_size(history, profile, estimate)
        before, budget = size if size.tokens else estimate, limits.compact_to_tokens
        return Measurement(limits, size, before, estimate.messages, 0, budget, Fixed(0, 1.0), None)
    other = estimate.system + estimate.tools
    calibration = _calibration(history, other, counter)
    fixed = _fixed(calibration)
    staying = _always_staying(active, call, profile, counter)
    fixed_tokens = fixed.real(other + staying)
    limits = limits_of(profile, window, call.reserved_output_tokens, fixed_tokens)
    room = int((limits.compact_to_tokens - fixed_tokens) / fixed.growth)
    size = _size(history, counter, estimate, calibration)
    return Measurement(
        limits,
        size,
        size,
        estimate.messages,
        other,
        staying + max(0, room),
        fixed,
        calibration,
    )


def _reports(history: History) -> list[tuple[int, ApiUsage]]:
    """Return where answers stand that reported the size of the conversation as it is."""
    active, first = history.active, history.fresh_from
    return [
        (index, usage)
        for index in range(first, len(active))
        if (usage := active[index].usage) is not None and active[index].role == "assistant"
    ]


def _calibration(history: History, other_tokens: int, counter: Counter) -> Calibration | None:
    """Return what the last answer reported, and how much sizes grew since the first of them."""
    active, former, reports = history.active, history.trigger.calibration, _reports(history)
    if not reports:
        return former
    last, usage = reports[-1]
    # Of reports before an edit, what is active says no more what they were of.
    unedited = (each for each in reports if each[0] >= history.edited_until)
    first, before = next(unedited, (last, usage))
    since = sum(map(counter.message, active[first:last]))
    messages = sum(map(counter.message, active[:first])) + since
    growth = None if former is None else former.growth
    if since and since >= messages // _LEAST_APART:
        growth = min(max(1.0, (usage.context - before.context) / since), float(LARGEST_ERROR))
    estimated = other_tokens + messages + history.saved_since_report
    return Calibration(usage.context, estimated, growth)


def _fixed(calibration: Calibration | None) -> Fixed:
    if calibration is None:
        return Fixed(0, 1.0)
    reported, estimated, growth = calibration
    if growth is None:
        growth = min(max(1.0, reported / max(1, estimated)), float(LARGEST_ERROR))
    return Fixed(max(0, reported - int(growth * estimated)), growth)


def _always_staying(
    active: Sequence[Message], call: ModelCall, profile: Profile, counter: Counter
) -> int:
    """Return an estimate of the messages that no compaction archives or shortens, tokens."""
    staying = 0
    for index, each in enumerate(active):
        if (
            each.role == "system"
            or (call.keep_ids and each.id in call.keep_ids)
            or (profile.keep_first and not index)
            or is_server_compaction(each)
        ):
            staying += counter.message(each)
    return staying


def _own_size(history: History, profile: Profile, estimate: Size) -> Size:
    """Return the size by which a profile decides that does not look at the whole request."""
    if profile.sizing == "messages":
        return Size(estimate.messages, 0, 0, estimate.messages, 0, "estimated")
    for message in reversed(history.active[history.fresh_from :]):
        if message.usage is not None:
            context = message.usage.context
            return Size(context, 0, 0, context, 0, "reported")
    return Size(0, 0, 0, 0, 0, "reported")


def _size(
    history: History,
    counter: Counter,
    estimate: Size,
    calibration: Calibration | None,
) -> Size:
    """Return the size of the whole request: by the last report, and what grew since."""
    if calibration is None:
        return estimate
    growth = calibration.growth or 1.0
    reports = _reports(history)
    if reports:
        last, usage = reports[-1]
        following = sum(map(counter.message, history.active[last + 1 :]))
        tokens = usage.context + usage.output + int(growth * following)
        if history.saved_since_report:
            tokens = max(estimate.tokens, tokens - history.saved_since_report)
    else:
        more = estimate.tokens - calibration.estimated_tokens
        tokens = max(estimate.tokens, calibration.reported_tokens + int(growth * more))
    rest = max(0, tokens - estimate.system - estimate.tools)
    return replace(
        estimate, tokens=tokens, messages=rest, basis="reported" if reports else "estimated"
    )


def smallest_tokens(
    active: Sequence[Message],
    call: ModelCall,
    profile: Profile,
    counter: Counter,
    measured: Measurement,
) -> int:
    """Return the least that a request could have: the last message, shortened, and a short text."""
    bounded = profile.keep_share is not None
    selection = select(
        active,
        keep_last=min(1, profile.keep_last) if bounded else profile.keep_last,
        keep_tokens=None,
        counter=counter,
        keep_ids=call.keep_ids,
        keep_first=profile.keep_first,
    )
    tail = fitting(selection.tail, 0 if bounded else None, profile, counter)
    staying = sum(map(counter.message, (*selection.head, *tail)))
    leaving = sum(map(counter.message, selection.leaving))
    least = measured.other_tokens + staying + min(LEAST_SUMMARY_TOKENS, leaving)
    tokens = measured.fixed.real(least)
    if measured.calibration is None:
        return tokens
    # Of what is not certain, the less: it is compacted rather than given up.
    reported, estimated, _ = measured.calibration
    return min(tokens, reported + least - estimated)


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

    def smallest_tokens(self, measured: Measurement) -> int:
        """Return the least that a compaction could leave."""
        return smallest_tokens(self.history.active, self.call, self.profile, self.counter, measured)

    def effect_tokens(self, measured: Measurement) -> int | None:
        """Return the size from which the first answer since the last compaction was made.

        Where the API does not report it, it is an estimate of what the compaction left.
        """
        active, first = self.history.active, self.history.edited_until
        for message in active[first:]:
            if message.role == "assistant":
                if message.usage is not None:
                    return message.usage.context
                left = sum(map(self.counter.message, active[:first]))
                return measured.fixed.real(measured.other_tokens + left)
        return None
