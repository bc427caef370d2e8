"""The CPU time of planning a compaction of a long conversation, by its number of messages."""

import asyncio
import gc
import time
from collections.abc import Iterator
from typing import Final

from contextgauge.compaction import Compactor, History, Message, ModelCall
from contextgauge.compaction.messages import Text, ToolCall, ToolResult

MESSAGES: Final = (25_000, 50_000, 100_000, 200_000)
REPETITIONS: Final = 3
CALL: Final = ModelCall(window_tokens=200_000)


def planning_text() -> str:
    """Return a line for each number of messages: the shortest of some plans, CPU seconds."""
    return "\n".join(f"{count:>9,} messages  {planning_s(count):.2f} s" for count in MESSAGES)


def planning_s(messages: int) -> float:
    """Return the CPU seconds of the fastest of some plans for a conversation of its own each."""
    return min(_planning_s(messages) for _ in range(REPETITIONS))


def _planning_s(messages: int) -> float:
    history = History(_session(messages))
    gc.collect()  # of what former conversations left
    start = time.process_time()
    asyncio.run(Compactor().plan(history, CALL))
    return time.process_time() - start


def _session(messages: int) -> Iterator[Message]:
    """Return a session in which each turn reads a file: user, call, result, answer."""
    for turn in range(messages // 4):
        path, call = f"src/module_{turn}.py", f"call-{turn}"
        arguments = f'{{"path":"{path}"}}'
        content = Text(f"line {turn} of the file\n" * 20)
        yield Message("user", (Text(f"Please look at {path} for me, part {turn}."),))
        yield Message("assistant", (ToolCall(call, "read", arguments),))
        yield Message("tool", (ToolResult(call, (content,), "read"),))
        yield Message("assistant", (Text(f"I read {path}; it has what part {turn} needs."),))
