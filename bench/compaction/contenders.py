"""What is compared: rules that compact a conversation in a loop, before calls of the model."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from bench.compaction.diligent import Line, diligent, of_user, written
from bench.compaction.facts import Conversation
from contextgauge.compaction import (
    Compactor,
    History,
    ModelCall,
    Profile,
    SummaryAnswer,
    SummaryRequest,
    read_messages,
    recall,
    write_messages,
)
from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN, ESTIMATE
from contextgauge.compaction.messages import ContextCompaction, Message, Text

COMPACT_AT: Final = 0.85
"""Share of the usable window from which all contenders compact."""


class Limits(NamedTuple):
    """Tokens: a window, what of it is reserved for an answer, and what a compaction may leave."""

    window: int
    reserved: int
    goal: int

    @property
    def usable(self) -> int:
        """What a request may have."""
        return self.window - self.reserved

    @property
    def trigger(self) -> int:
        """From where a compaction is due."""
        return int(self.usable * COMPACT_AT)


def limits_of(conversation_tokens: int, goal_percent: float) -> Limits:
    """Return the limits for a conversation of four windows."""
    window = conversation_tokens // 4
    reserved = window // 20
    return Limits(window, reserved, int((window - reserved) * goal_percent / 100))


class Round(NamedTuple):
    """A context after a compaction, as what a provider would be sent, and the time it took."""

    context: Sequence[Message]
    ms: float


class Run(NamedTuple):
    """One conversation: its compactions, its last context, and what summaries give as the user's.

    `recalled` answers questions from the archive, where a contender has one.
    """

    rounds: Sequence[Round]
    context: Sequence[Message]
    user_words: str
    recalled: Callable[[str], str] | None = None


Runner: TypeAlias = Callable[[Sequence[tuple[Conversation, Limits]]], list[Run]]


class Contender(NamedTuple):
    """A way to compact, and how it runs through conversations."""

    name: str
    run: Runner


class _Diligent:
    """The stand-in as a summariser of the engine."""

    name = "diligent"

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return what the stand-in writes."""
        former = [Line("Summary", request.previous)] if request.previous else []
        limit = request.max_tokens * CHARACTERS_PER_TOKEN
        return SummaryAnswer(diligent([*former, *lines_of(request.messages)], limit))


def lines_of(messages: Sequence[Message]) -> list[Line]:
    """Return what the user and the agent say in messages, and the errors of tools."""
    lines: list[Line] = []
    for message in messages:
        if message.role == "user" and message.compaction is None:
            lines.append(Line("User", message.user_text))
        elif message.role == "assistant":
            lines.append(Line("Agent", message.text))
        lines += [Line("Error", each.text) for each in message.results if each.is_error]
    return [each for each in lines if each.text.strip()]


def _engine(summariser: _Diligent | None) -> Runner:
    return lambda cases: [asyncio.run(_run_engine(*each, summariser)) for each in cases]


async def _run_engine(
    conversation: Conversation, limits: Limits, summariser: _Diligent | None
) -> Run:
    """Run the engine as an agent's loop does: messages in their provider's format."""
    profile = Profile(
        name="laboratory",
        warn_at=None,
        compact_at=COMPACT_AT,
        compact_to=limits.goal / limits.usable,
    )
    compactor = Compactor(profile=profile, summariser=summariser)
    call = ModelCall(window_tokens=limits.window, reserved_output_tokens=limits.reserved)
    history, rounds = History(), list[Round]()
    for message in conversation.messages:
        if message.role == "assistant":
            began = time.perf_counter()
            prepared = await compactor.before_call(history, call)
            if prepared.receipt is not None:
                ms = (time.perf_counter() - began) * 1_000
                rounds.append(Round(_sent(prepared.messages, conversation), ms))
        wire = write_messages([message], conversation.format)
        history.extend(read_messages(wire, conversation.format, after=history.active))
    markers = [each.compaction for each in history.active if each.compaction is not None]
    return Run(
        rounds,
        _sent(history.active, conversation),
        "\n".join(map(_user_words, markers)),
        lambda question: recall(history.archived, {"text": question}),
    )


def _sent(messages: Sequence[Message], conversation: Conversation) -> list[Message]:
    return read_messages(write_messages(messages, conversation.format), conversation.format)


def _user_words(marker: ContextCompaction) -> str:
    """Return what the engine carries as the user's words."""
    turns = [each.text + each.end for each in marker.carried.entries if each.speaker == "user"]
    return "\n".join([*turns, of_user(marker.prose)])


class Rule(Protocol):
    """Compacts messages to a goal, tokens; returns the new ones."""

    def __call__(self, messages: Sequence[Message], goal: int) -> list[Message]:
        """Return the messages after a compaction."""
        ...


def ruled(make: Callable[[], Rule]) -> Runner:
    """Return how a rule of our own runs through conversations."""

    def run(conversation: Conversation, limits: Limits) -> Run:
        rule, active, rounds = make(), list[Message](), list[Round]()
        for message in conversation.messages:
            if message.role == "assistant" and _tokens(active) >= limits.trigger:
                began = time.perf_counter()
                active = rule(active, limits.goal)
                rounds.append(Round(list(active), (time.perf_counter() - began) * 1_000))
            active.append(message)
        summary = active[0].text if rounds else ""
        return Run(rounds, active, of_user(summary))

    return lambda cases: [run(*each) for each in cases]


def _tokens(messages: Sequence[Message]) -> int:
    return sum(map(ESTIMATE.message, messages))


_CHARACTERS: Final = {"User": 900, "Agent": 400, "Error": 200}
_SHORT, _QUESTION = 80, 300
"""Characters of a turn that is taken for an answer, and of the end of what it answers."""


class FortyLines:
    """The user's turns, the question before a short one, heads of the agent's texts and errors."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    def __call__(self, messages: Sequence[Message], goal: int) -> list[Message]:
        """Return one message with all that, then as much of the tail as fits."""
        goal -= 3  # the message's role, and what rounding adds
        first = bool(self._lines)  # then the summary is the first message
        said = self._said(messages[first:], first)
        lines = [*self._lines, *(line for _, line in said)]
        while _characters(lines) > goal * CHARACTERS_PER_TOKEN and len(lines) > 1:
            # The oldest of the agent's goes first.
            del lines[
                next((index for index, each in enumerate(lines) if each.speaker != "User"), 0)
            ]
        cut, room = len(messages), goal - _characters(lines) // CHARACTERS_PER_TOKEN
        while cut > 1 and (room := room - ESTIMATE.message(messages[cut - 1])) >= 0:
            cut -= 1
        while cut < len(messages) and messages[cut].results:
            cut += 1
        leaving = {id(line) for index, line in said if index < cut}
        former = {id(line) for line in self._lines}
        self._lines = [each for each in lines if id(each) in leaving | former]
        summary = "\n".join(written(each, None) for each in self._lines)
        return [Message("user", (Text(summary),)), *messages[cut:]]

    @staticmethod
    def _said(messages: Sequence[Message], first: int) -> list[tuple[int, Line]]:
        """Return lines, each with the place of its message; `first` is that of the first one."""
        said = [
            (index, each)
            for index, message in enumerate(messages, first)
            for each in lines_of([message])
        ]
        lines: list[tuple[int, Line]] = []
        for (index, each), (_, following) in zip(
            said, [*said[1:], (0, Line("Agent", ""))], strict=True
        ):
            lines.append((index, Line(each.speaker, each.text[: _CHARACTERS[each.speaker]])))
            asks = following.speaker == "User" and len(following.text) <= _SHORT
            if asks and each.speaker == "Agent" and len(each.text) > _CHARACTERS["Agent"]:
                lines.append((index, Line("Agent", each.text[-_QUESTION:])))
        return lines


def _characters(lines: Sequence[Line]) -> int:
    return sum(len(each.speaker) + len(each.text) + 3 for each in lines)


def our_contenders() -> list[Contender]:
    """Return what needs no package."""
    return [
        Contender("contextgauge", _engine(None)),
        Contender("contextgauge + diligent", _engine(_Diligent())),
        Contender("forty lines", ruled(FortyLines)),
    ]
