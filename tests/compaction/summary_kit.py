"""What tests of summarisers share: a request, a good answer, a clock that does not wait."""

import asyncio
from typing import Any, Final

from contextgauge.clock import SystemClock
from contextgauge.compaction.messages import Message, ModelRequest, Text, ToolCall, ToolResult
from contextgauge.compaction.ports import SummaryRequest
from contextgauge.compaction.summarisers import Answer
from contextgauge.compaction.summarisers.prompts import HEADINGS, Prompt

GOOD: Final = "\n\n".join(f"{heading}\n- the parser" for heading in HEADINGS)

CONVERSATION: Final = (
    Message("user", (Text("Fix the parser."),), "m1"),
    Message("assistant", (Text("I read it."), ToolCall("c1", "read", '{"path":"a.py"}')), "m2"),
    Message("tool", (ToolResult("c1", (Text("def parse(): ..."),), "read"),), "m3"),
    Message("assistant", (Text("It is fixed."),), "m4"),
)
TAIL: Final = Message("user", (Text("Now its tests."),), "m5")


class HandClock(SystemClock):
    """Time that only sleeping makes pass."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return int(self.now_s * 1_000)

    def monotonic_s(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def request_of(**fields: Any) -> SummaryRequest:
    """Return a request to summarise a short conversation."""
    context = ModelRequest((*CONVERSATION, TAIL), system="You are an agent.")
    return SummaryRequest(CONVERSATION, context, None, "Fix the parser.", 1, **fields)


class ScriptedModel:
    """A model that answers by a script: an answer, an error to raise, or None to hang."""

    def __init__(self, *script: Answer | Exception | None) -> None:
        self.name = "scripted/model"
        self.script = list(script)
        self.prompts: list[Prompt] = []

    async def answer(self, prompt: Prompt) -> Answer:
        self.prompts.append(prompt)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if step is None:
            await asyncio.Event().wait()
        if isinstance(step, Exception):
            raise step
        assert step is not None
        return step


def good(text: str = GOOD, **fields: Any) -> Answer:
    """Return a usable answer."""
    return Answer((text,), "end", **fields)
