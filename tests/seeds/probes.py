"""What the examples in `cases.toml` run: each is named there with its arguments and its answer."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from contextgauge.compaction import displays
from contextgauge.compaction.counting import ESTIMATE, CumulativeTokens, core_message_tokens
from contextgauge.compaction.displays import CompactionResult, ContextStatus
from contextgauge.compaction.displays.terminal_width import width
from contextgauge.compaction.engine.request_size import ModelCall, window_of_call
from contextgauge.compaction.engine.trigger import limits_of
from contextgauge.compaction.memory import MemoryTool
from contextgauge.compaction.messages import ApiUsage, ContextCompaction, Message, ModelRequest
from contextgauge.compaction.ports import SummaryRequest
from contextgauge.compaction.profiles import Window, profile_named
from contextgauge.compaction.summarisers.prompts import render
from contextgauge.window_catalog import bundled
from schemas.records import Record
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.serve.api import agents
from streams.serve.api.totals import added_up
from tests.core.given import (
    CATALOG,
    RULES,
    Body,
    Given,
    assistant,
    boundary,
    compacting,
    failed,
    model_window,
    result,
    summary,
    usage,
    user,
)
from tests.doubles.dump import fold_records
from tests.seeds.engine_probes import messages_of, seed_001, seed_002, seed_004

# 000 and 003: messages of a runtime, and the records of them


def _body(line: Mapping[str, Any], number: int) -> Body:
    second = line.get("at")
    if "answer" in line:
        parts = line["answer"] if isinstance(line["answer"], list) else [0, 0, line["answer"]]
        more = {"model": line["model"]} if "model" in line else {}
        return assistant(f"msg_{number}", *parts, at=second, **more)
    if "usage" in line:
        return assistant(f"msg_{number}", at=second, inside={"usage": line["usage"]})
    if "iterations" in line:
        entries = [{"type": "message", **usage(*each)} for each in line["iterations"]]
        own = {**usage(*line["all"]), "iterations": entries}
        return assistant(f"msg_{number}", at=second, inside={"usage": own})
    if "result" in line:
        windows = {name: model_window(tokens) for name, tokens in line["result"].items()}
        return result(windows, at=second)
    if "boundary" in line:
        return boundary(line["boundary"] or None, at=second)
    if "summary" in line:
        return summary(line["summary"], at=second)
    if "failed" in line:
        return failed(line["failed"], at=second)
    if "user" in line:
        return user(line["user"], at=second)
    return compacting(second)


def _records(lines: Sequence[Mapping[str, Any]], default_window: int | None) -> list[Record]:
    rules = RULES if default_window is None else Rules(CATALOG, default_window=default_window)
    given = Given(rules)
    every = [line for line in lines for _ in range(line.get("times", 1))]
    for number, line in enumerate(every):
        given.take(_body(line, number))
    return given.records


def records(
    lines: Sequence[Mapping[str, Any]], see: str, default_window: int | None = None
) -> list[Any]:
    """Return a field of each record of one kind, `kind.field`; `kinds` for the kinds of all."""
    derived = _records(lines, default_window)
    if see == "kinds":
        return [each.kind for each in derived]
    kind, _, field = see.partition(".")
    return [
        list(value) if isinstance(value := getattr(each.data, field), tuple) else value
        for each in derived
        if each.kind == kind
    ]


def chat_events(lines: Sequence[Mapping[str, Any]], of: str) -> list[Any]:
    """Return the data of each event of a type that `GET /api/agents/{id}/events` returns."""
    stored = [codec.to_structured(each) for each in _records(lines, None)]
    events = [codec.loads(event) for _, event in agents.of_session(stored)]
    for each in events:
        if each["data"].pop("attemptId", None) is not None:
            each["data"]["attempt"] = "named"
    return [each["data"] for each in events if each["type"] == of]


def chat_fields(lines: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return type, time and task of each event of that endpoint, and which fields it has."""
    stored = [codec.to_structured(each) for each in _records(lines, None)]
    events = [codec.loads(event) for _, event in agents.of_session(stored)]
    return [[each["type"], each["timestamp"], each["taskId"], sorted(each)] for each in events]


def totals(sessions: Sequence[Sequence[Mapping[str, Any]]], see: Sequence[str]) -> Any:
    """Return a figure of what `GET /v1/stats` adds up over sessions, by its names."""
    derived: list[Record] = []
    for number, lines in enumerate(sessions):
        derived += [
            replace(each, data=replace(each.data, session_id=f"session-{number}"))
            for each in _records(lines, None)
        ]
    figure: Any = added_up([dump.stats for dump in fold_records(derived, 2)], "hour")
    for name in see:
        figure = figure[name]
    return figure


def session(lines: Sequence[Mapping[str, Any]], see: Sequence[str]) -> Any:
    """Return a figure of what `GET /v1/sessions/ID` has of a session, by its names."""
    (dump,) = fold_records(_records(lines, None), 1)
    (document,) = dump.views.values()
    figure = codec.loads(document)
    for name in see:
        figure = [each[name] for each in figure] if isinstance(figure, list) else figure[name]
    return figure


def catalog_window(model: str) -> int | None:
    """Return a model's window by the bundled catalog."""
    return bundled().window(model)


# 001, 002 and 004: figures and texts


def window(profile: str, model: str) -> int | None:
    """Return the window that a profile takes for a model, without the catalog."""
    known = window_of_call(profile_named(profile), ModelCall(model=model), None)
    return None if known is None else known.tokens


def limits(profile: str, window: int) -> dict[str, int | None]:
    """Return the thresholds of a profile in a window, tokens."""
    figures = limits_of(profile_named(profile), Window(window, "given"), 0)
    return {"warn_at": figures.warn_at_tokens, "compact_at": figures.compact_at_tokens}


def figure(profile: str, name: str) -> Any:
    """Return one figure of a profile."""
    value = getattr(profile_named(profile), name)
    return list(value) if isinstance(value, tuple) else value


def estimate(text: str, times: int = 1) -> int:
    """Return the estimate of a text, tokens."""
    return ESTIMATE.text(text * times)


def tokens_002(message: Any) -> int:
    """Return what 002's `estimateMessagesTokens` counts for a message."""
    return core_message_tokens(message)


def cumulative(usages: Sequence[Sequence[int]]) -> list[int]:
    """Return input, output and total of a session's answers."""
    tokens = CumulativeTokens()
    for each in usages:
        tokens = tokens.add(ApiUsage(*each))
    return [tokens.input, tokens.output, tokens.total]


def prompt(
    seed: str,
    steps: Sequence[Any],
    see: str,
    task: str = "",
    previous: str | None = None,
    round: int = 1,  # noqa: A002 -- the seed's word
) -> Any:
    """Return a part of what a model is asked for a summary."""
    profile = profile_named(seed)
    messages: list[Message] = [each for step in steps for each in messages_of(step)]
    request = SummaryRequest(
        messages,
        ModelRequest(messages),
        previous,
        task,
        round,
        profile.prompt,
        max_tokens=profile.summary_tokens,
        target_tokens=profile.target_tokens,
        temperature=profile.temperature,
    )
    asked = render(request)
    text = asked.messages[-1].text
    if see == "task":
        return text.partition("## Original User Task\n")[2].partition("\n\n")[0]
    if see == "previous":
        return text.partition("## Previous Summary\n")[2].partition("\n\n## Original")[0]
    if see == "messages":
        return text.partition("## Messages to Summarize\n")[2].partition("\n\n## Instructions")[0]
    if see == "sections":
        return [line.strip("#* ") for line in text.splitlines() if line.startswith(("###", "####"))]
    if see == "system":
        return asked.system
    if see == "length":  # of the first message, without its number and role
        return len(prompt(seed, steps, "messages").partition(":\n")[2])
    if see == "opening":
        return text.splitlines()[1]
    if see == "constraints":
        return text.partition("## Constraints\n")[2]
    return text if see == "text" else getattr(asked, see)


def memory(commands: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the answers of the memory tool to commands, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        tool = MemoryTool("demo", Path(folder))
        return [tool.execute(dict(each)) for each in commands]


def box_columns(**figures: Any) -> list[int]:
    """Return the columns that lines of both boxes have."""
    status = ContextStatus(window_tokens=128_000, **figures)
    result = CompactionResult(removed=1, tokens_before=9, tokens_after=5, **figures)
    text = f"{displays.context_box(status)}\n{displays.compact_box(result)}"
    return sorted({width(line) for line in text.splitlines()})


def context_text(**figures: Any) -> str:
    """Return the list of `/context`."""
    return displays.context_text(ContextStatus(**figures))


def context_box(**figures: Any) -> str:
    """Return the box of `/context`."""
    return displays.context_box(ContextStatus(**figures))


def header_text(**figures: Any) -> str:
    """Return the header."""
    return displays.header_text(ContextStatus(**figures))


def compact_text(**figures: Any) -> str:
    """Return the list of `/compact`."""
    return displays.compact_text(CompactionResult(**figures))


def compact_box(**figures: Any) -> str:
    """Return the box of `/compact`."""
    return displays.compact_box(CompactionResult(**figures))


def auto_compacted_text(window_tokens: int, **figures: Any) -> str:
    """Return what is shown after an automatic compaction."""
    return displays.auto_compacted_text(CompactionResult(**figures), window_tokens)


def marker_text(number: int, summary: str, archived: int, before: int, **options: Any) -> str:
    """Return the marker of a compaction."""
    return displays.marker_text(ContextCompaction(number, 0, summary, archived, before), **options)


PROBES: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (
        auto_compacted_text, box_columns, catalog_window, chat_events, chat_fields, compact_box,
        compact_text, context_box, context_text, cumulative,
        displays.auto_compacting_line, displays.complete_line,
        displays.preview, displays.short_count, displays.status_text, displays.warning_line,
        displays.warning_text, estimate, figure, header_text, limits, marker_text, memory, prompt,
        records, seed_001, seed_002, seed_004, session, tokens_002, totals, window,
    )
}  # fmt: skip
