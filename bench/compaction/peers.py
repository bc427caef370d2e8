"""Runs a package's rule through conversations, in that package's environment.

    python -m bench.compaction.peers RULE < request.json

The request has conversations as messages of the Chat Completions API, with their limits; each line
of output is one conversation: its contexts after compactions with their milliseconds, and the last.
Imports nothing of contextgauge, which these environments lack.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from bench.compaction.diligent import Line, diligent

Wire: TypeAlias = dict[str, Any]
Compact: TypeAlias = Callable[[list[Wire]], list[Wire] | None]
"""Returns the messages after a compaction, None where none is due."""

_CHARACTERS_PER_TOKEN: Final = 4


def tokens_of(messages: list[Wire]) -> int:
    """Return the estimate that all contenders are measured by."""
    return sum(map(_message_tokens, messages))


def _message_tokens(message: Wire) -> int:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    parts = [_content(message), *(each[name] for each in calls for name in ("name", "arguments"))]
    return 2 + sum(-(-len(each) // _CHARACTERS_PER_TOKEN) for each in parts)


def _content(message: Wire) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(each["text"] for each in content)


def _trim(trigger: int, goal: int) -> Compact:
    """LangChain's `trim_messages` with the arguments of its documentation."""
    from langchain_core.messages import (  # noqa: PLC0415 -- of this rule's environment
        convert_to_openai_messages,
        trim_messages,
    )

    def compact(active: list[Wire]) -> list[Wire] | None:
        if tokens_of(active) < trigger:
            return None
        left = trim_messages(
            active,
            max_tokens=goal,
            token_counter=lambda messages: tokens_of(convert_to_openai_messages(messages)),
            strategy="last",
            start_on="human",
            end_on=("human", "tool"),
            include_system=True,
        )
        return list(convert_to_openai_messages(left))

    return compact


def _summarise(trigger: int, goal: int) -> Compact:
    """LangChain's `SummarizationMiddleware`, shown all messages that it summarises."""
    from langchain.agents.middleware import SummarizationMiddleware  # noqa: PLC0415 -- as above
    from langchain_core.language_models import FakeListChatModel  # noqa: PLC0415
    from langchain_core.messages import (  # noqa: PLC0415
        convert_to_messages,
        convert_to_openai_messages,
    )

    def summary(messages: list[Any]) -> str:
        return diligent([_line(each) for each in messages])

    def _line(message: Any) -> Line:
        if message.additional_kwargs.get("lc_source") == "summarization":
            return Line("Summary", message.text.partition("\n\n")[2])
        speakers: dict[str, Any] = {"human": "User", "ai": "Agent"}
        return Line(speakers.get(message.type, "Error"), message.text)

    middleware: Any = SummarizationMiddleware(
        FakeListChatModel(responses=[""]),
        trigger=("tokens", trigger),
        keep=("tokens", goal),
        token_counter=lambda messages: tokens_of(convert_to_openai_messages(list(messages))),
        trim_tokens_to_summarize=None,
        summarizer=summary,
    )
    state: list[Any] = []

    def compact(active: list[Wire]) -> list[Wire] | None:
        state.extend(convert_to_messages(active[len(state) :]))
        changed = middleware.before_model({"messages": state}, None)
        if changed is None:
            return None
        state[:] = changed["messages"][1:]  # the first one says to remove all
        return list(convert_to_openai_messages(state))

    return compact


def _condense(trigger: int, goal: int, *, whole: bool = False) -> Compact:
    """OpenHands' condenser. It halves what it allows, so twice the goal is what it allows."""
    del trigger
    from bench.compaction.openhands_events import Condenser  # noqa: PLC0415 -- as above

    return Condenser(2 * goal, whole=whole).compact


def _compress(trigger: int, goal: int) -> Compact:
    """Headroom's `compress`, without its model, asked again once half a goal was added."""
    from headroom import compress  # noqa: PLC0415 -- as above

    last = 0

    def compact(active: list[Wire]) -> list[Wire] | None:
        nonlocal last
        if (tokens := tokens_of(active)) < max(trigger, last + goal // 2):
            return None
        left: list[Wire] = compress(
            active, model="gpt-4o", model_limit=tokens, kompress_model="disabled"
        ).messages
        last = tokens_of(left)
        return left

    return compact


_RULES: Final[dict[str, Callable[[int, int], Compact]]] = {
    "trim": _trim, "summarise": _summarise, "condense": _condense, "compress": _compress,
    "condense-whole": partial(_condense, whole=True),
}  # fmt: skip


def main() -> None:
    """Run one rule through all conversations of the request."""
    request = json.load(sys.stdin)
    output, sys.stdout = sys.stdout, sys.stderr  # what packages print is no result
    for conversation in request:
        compact = _RULES[sys.argv[1]](conversation["trigger"], conversation["goal"])
        active: list[Wire] = []
        rounds: list[tuple[list[Wire], float]] = []
        for message in conversation["messages"]:
            if message["role"] == "assistant":
                began = time.perf_counter()
                if (left := compact(active)) is not None:
                    rounds.append((left, (time.perf_counter() - began) * 1_000))
                    active = list(left)
            active.append(message)
        output.write(json.dumps({"rounds": rounds, "context": active}) + "\n")
        output.flush()


if __name__ == "__main__":
    main()
