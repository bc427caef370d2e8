"""Division rules of other agents, re-implemented from their published behaviour, and controls."""

from collections.abc import Callable, Sequence
from typing import Final

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
    """Return the rules of other agents, with where each was read."""
    return [Contender(name, "other", source, _ruled(make)) for name, source, make in _RULES]


_RULES: Final[tuple[tuple[str, str, Callable[[], Rule]], ...]] = (
    (
        "opencode",
        "anomalyco/opencode, autumn 2026, as in the copy CMU-17313Q/opencode-f26-DDSC@6f4a657",
        lambda: opencode,
    ),
    ("cline (basic)", "cline/cline@21cb8d2, core 0.0.78, without a model", Cline),
    ("gemini-cli", "google-gemini/gemini-cli@5411f11, 0.56.0-nightly", lambda: gemini_cli),
    ("pi", "badlogic/pi-mono@83378aa, 0.58.3", lambda: pi),
    (
        "deepagents",
        "langchain-ai/deepagents@23b83ad, 0.7.8, with langchain 1.5.0",
        lambda: deepagents,
    ),
    ("OpenHands", "OpenHands/software-agent-sdk@6116296, 1.43.1", lambda: openhands),
)


def controls() -> list[Contender]:
    """Return the two ends between which all contenders are."""
    return [
        Contender("keep everything", "control", "no compaction", _ruled(lambda: everything)),
        Contender("keep nothing", "control", "all messages dropped", _ruled(lambda: nothing)),
    ]
