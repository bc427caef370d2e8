"""Selection rules of other agents, re-implemented from their published behaviour, and controls."""

from collections.abc import Callable, Sequence

from bench.compaction.contenders import Budget, Contender, Rule, RuleSession, Session
from bench.compaction.rules.cline import Cline
from bench.compaction.rules.deepagents import deepagents
from bench.compaction.rules.gemini_cli import gemini_cli
from bench.compaction.rules.opencode import opencode
from bench.compaction.rules.openhands import openhands
from bench.compaction.rules.pi import pi
from bench.compaction.summaries import StandIn, Style
from contextgauge.compaction.messages import Message


def everything(messages: Sequence[Message], budget: Budget, write: StandIn) -> Sequence[Message]:
    """Keep all messages: the most that can survive, and no room gained."""
    del budget, write
    return messages


def nothing(messages: Sequence[Message], budget: Budget, write: StandIn) -> Sequence[Message]:
    """Keep no message: the least that can survive."""
    del messages, budget, write
    return []


def _ruled(make: Callable[[], Rule]) -> Callable[[Budget, Style], Session]:
    def begin(budget: Budget, style: Style) -> Session:
        return RuleSession(make(), budget, style)

    return begin


def other_contenders() -> list[Contender]:
    """Return the rules of other agents."""
    return [
        Contender("opencode", "other", "2026, two turns", _ruled(lambda: opencode)),
        Contender("cline (basic)", "other", "core 0.0.78", _ruled(Cline)),
        Contender("gemini-cli", "other", "0.56.0-nightly", _ruled(lambda: gemini_cli)),
        Contender("pi", "other", "0.58.3", _ruled(lambda: pi)),
        Contender("deepagents", "other", "0.7.8, langchain 1.5.0", _ruled(lambda: deepagents)),
        Contender("OpenHands", "other", "SDK 1.43.1", _ruled(lambda: openhands)),
    ]


def controls() -> list[Contender]:
    """Return the two ends between which all contenders are."""
    return [
        Contender("keep everything", "control", "no compaction", _ruled(lambda: everything)),
        Contender("keep nothing", "control", "all messages dropped", _ruled(lambda: nothing)),
    ]
