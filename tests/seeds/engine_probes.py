"""What examples of seeds 001, 002 and 004 run: a conversation, steps of the engine, what is seen.

A step is a message, several, or one of the words:

    {user = "text", times = 3}  {assistant = "text", reported = [context, output]}
    {call = "id"}  {result = "id", text = "text", times = 3}
    {full = 170_000}  {talk = 6}  {session = 40}  {uses = 24, characters = 17_000}
    {sized = 93_600}  {stored = [...]}  {fork = 1}  "fork"  "before_call"  "compact"  "store"
    {window = 100_000}, the window from then on
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, get_args

from contextgauge.compaction import (
    CompactionDone,
    Compactor,
    History,
    Message,
    ModelCall,
    NoSummaryError,
    SummaryError,
    load_history,
    read_messages,
    store_history,
    write_messages,
)
from contextgauge.compaction.compactor import Prepared
from contextgauge.compaction.counting import Seed002Counter
from contextgauge.compaction.displays import event_line, log_line, marker_text
from contextgauge.compaction.engine.trigger import Due, Idle
from contextgauge.compaction.messages import ApiUsage, FormatName, Role, ToolCall
from contextgauge.compaction.profiles import Override, profile_named
from contextgauge.compaction.store.recall import recall
from tests.compaction.conversations import call, orphans, result, said, session
from tests.compaction.test_compactor import Log, Scripted, talk


def messages_of(step: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a step."""
    (build,) = (build for name, build in _BUILDERS.items() if name in step)
    return build(step)


def _said(role: Role, step: Mapping[str, Any]) -> list[Message]:
    usage = ApiUsage(*step["reported"]) if "reported" in step else None
    return [said(role, step[role] * step.get("times", 1), id=step.get("id", ""), usage=usage)]


def _calls(step: Mapping[str, Any]) -> list[Message]:
    return [Message("assistant", tuple(ToolCall(each, "read", "{}") for each in step["calls"]))]


def _uses(step: Mapping[str, Any]) -> list[Message]:
    """Return calls with results, each another one: the same again would be a reference."""
    name = step.get("name", "read")
    messages: list[Message] = []
    for number in range(step["uses"]):
        word = f"{number} "
        text = word * (step.get("characters", 2) // len(word))
        id_ = f"{name}-{number}"
        messages += [call(id_, name), result(id_, text, name)]
    return messages


def _sized(tokens: int, count: int) -> list[Message]:
    """Return a system message and talk, together of exactly so many tokens by seed 002's count."""
    messages = [said("system", "You are an agent."), *talk(count, 400)]
    missing = tokens - sum(map(Seed002Counter().message, messages))
    long = said(messages[3].role, messages[3].text + "x" * 4 * missing)
    return [*messages[:3], long, *messages[4:]]


_BUILDERS: Final[dict[str, Callable[[Mapping[str, Any]], list[Message]]]] = {
    "user": partial(_said, "user"),
    "assistant": partial(_said, "assistant"),
    "system": partial(_said, "system"),
    "call": lambda step: [call(step["call"])],
    "calls": _calls,
    "result": lambda step: [result(step["result"], step.get("text", "ok") * step.get("times", 1))],
    "uses": _uses,
    "talk": lambda step: talk(step["talk"], step.get("characters", 400)),
    "session": lambda step: session(step["session"], characters=step["characters"]),
    "full": lambda step: [
        *talk(6), said("assistant", "full", usage=ApiUsage(step["full"], 900))
    ],
    "sized": lambda step: _sized(step["sized"], step.get("count", 60)),
    "stored": lambda step: read_messages(step["stored"], "plain"),
}  # fmt: skip


class _Counting:
    """002's counter, which remembers how often it counted each message."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def text(self, text: str) -> int:
        return Seed002Counter().text(text)

    def message(self, message: Message) -> int:
        self.counted.update([message.id] if message.id else [])  # one without is not sent yet
        return Seed002Counter().message(message)


class Run:
    """A history and a compactor, and what the steps so far did."""

    def __init__(  # noqa: PLR0913 -- each is an argument in the table
        self,
        profile: str,
        *,
        window: int | None = None,
        model: str | None = None,
        system: int = 0,
        keep: Sequence[str] = (),
        answers: Sequence[str] = ("The summary.",),
        change: Mapping[str, Any] | None = None,
        agent: str | None = None,
        overrides: Sequence[Mapping[str, Any]] = (),
        confirms: bool = True,
        edited: str | None = None,
    ) -> None:
        async def confirm(_: object) -> bool:
            return confirms

        async def review(text: str) -> str:
            return text if edited is None else edited

        self.log, self.history = Log(), History()
        self.counter = _Counting()
        errors = [
            SummaryError(each[7:]) if each.startswith("error: ") else each for each in answers
        ]
        self.summariser = Scripted(*errors)
        self.compactor = Compactor(
            profile=replace(profile_named(profile), **(change or {})),
            summariser=self.summariser,
            hooks=replace(self.log.hooks(), confirm=confirm, review=review),
            overrides=[Override(**each) for each in overrides],
            counter=self.counter if profile == "seed-002" else None,
            window_of={"a": 100_000, "b": 300_000}.get,
        )
        self.call = ModelCall(
            system="s" * system, model=model, window_tokens=window or None,
            keep_ids=frozenset(keep), agent=agent,
        )  # fmt: skip
        self.prepared: list[Prepared] = []
        self.error: str | None = None
        self.forked: History | None = None

    async def do(self, steps: Sequence[str | Mapping[str, Any]]) -> None:
        """Take the steps one after the other."""
        for step in steps:
            if step == "before_call":
                self.prepared.append(await self.compactor.before_call(self.history, self.call))
            elif step == "compact":
                try:
                    await self.compactor.compact(self.history, self.call)
                except NoSummaryError as error:
                    self.error = str(error)
            elif step == "store":
                self.history = load_history(store_history(self.history))
            elif step == "fork":
                self.history, self.forked = self.history.fork(), self.history
            elif isinstance(step, Mapping) and "fork" in step:
                self.history = self.history.after_compaction(step["fork"])
            elif isinstance(step, Mapping) and "window" in step:
                self.call = replace(self.call, window_tokens=step["window"])
            elif isinstance(step, Mapping):
                self.history.extend(messages_of(step))
            else:
                raise ValueError(f"no step {step!r}")


def _decision(prepared: Prepared) -> str:
    if isinstance(prepared.decision, Idle):
        return prepared.decision.reason
    return "compact" if isinstance(prepared.decision, Due) else type(prepared.decision).__name__


def _markers(history: History) -> list[list[Any]]:
    markers = [each.compaction for each in history.everything if each.compaction]
    return [[m.number, m.summary, m.messages_archived, m.context_size_before] for m in markers]


def _event_002(run: Run) -> dict[str, Any]:
    done = [each for each in run.log.events if isinstance(each, CompactionDone)][-1]
    event = done.seed_002()
    ids = event["compactedMessageIds"]
    assert isinstance(ids, list)
    return {**event, "compactedMessageIds": [len(ids), ids[0], ids[-1]]}


def _plain(run: Run) -> Any:
    """Return the active messages as they are stored, without the time and what is ours."""
    written: Any = write_messages(run.history.active, "plain")
    for each in written:
        for part in each["content"] if isinstance(each["content"], list) else []:
            part.pop("timestamp", None)
            part.pop("prose", None)
    return written


def _results(messages: Sequence[Message]) -> list[str]:
    """Return which results are still whole, by their calls."""
    results = [each for message in messages for each in message.results]
    return [each.call_id for each in results if "cleared to save context" not in each.text]


def _stats(run: Run) -> dict[str, Any]:
    status = run.compactor.get_stats(run.history, run.call)
    names = ("system_tokens", "memory_tokens", "conversation_tokens", "window_tokens", "percent")
    return {name: getattr(status, name) for name in (*names, "active", "total", "summaries")}


SEEN: Final[dict[str, Callable[[Run], Any]]] = {
    "decision": lambda run: _decision(run.prepared[-1]),
    "decisions": lambda run: [_decision(each) for each in run.prepared],
    "check": lambda run: [_stats(run)["percent"], _decision(run.prepared[-1])],
    "events": lambda run: run.log.names(),
    "lines": lambda run: [event_line(each) for each in run.log.events],
    "log": lambda run: log_line(run.history.receipts[-1]),
    "error": lambda run: run.error,
    "percent": lambda run: _stats(run)["percent"],
    "stats": _stats,
    "texts": lambda run: [each.text for each in run.history.active],
    "head": lambda run: [each.text for each in run.history.active[:2]],
    "last_ten": lambda run: _last_ten(run.history),
    "stays": lambda run: [
        run.history.active[0].text,
        *(each.id for each in run.history.active if each.id in run.call.keep_ids),
        _last_ten(run.history),
    ],
    "roles": lambda run: [each.role for each in run.history.active],
    "counts": lambda run: [
        len(run.history.active), len(run.history.archived), len(run.history.everything)
    ],
    "markers": lambda run: _markers(run.history),
    "rounds": lambda run: run.history.rounds,
    "tokens": lambda run: [
        run.history.tokens.input, run.history.tokens.output, run.history.tokens.total
    ],
    "before": lambda run: run.history.receipts[-1].tokens_before,
    "strategies": lambda run: [each.strategy for each in run.history.receipts],
    "cost": lambda run: [
        run.history.receipts[-1].summary_input_tokens,
        run.history.receipts[-1].summary_output_tokens,
    ],
    "formats_with_the_summary": lambda run: [
        each
        for each in get_args(FormatName)
        if "The summary." in json.dumps(write_messages(run.history.active, each))
    ],
    "orphans": lambda run: sorted(orphans(list(run.history.active))),
    "whole_results": lambda run: _results(run.history.active),
    "key_is_sent": lambda run: "key" in json.dumps(write_messages(run.history.active, "anthropic")),
    "key_is_recalled": lambda run: "key is 7" in recall(run.history.archived, {"text": "key"}),
    "plain": _plain,
    "event_002": _event_002,
    "asked": lambda run: [
        [each.number, each.previous, each.task[:10]] for each in run.summariser.requests
    ],
    "shown": lambda run: [
        marker_text(each.compaction) if each.compaction else each.text
        for each in run.history.everything
    ],
    "forked_tokens": lambda run: None if run.forked is None else run.forked.tokens.total,
    "times_counted": lambda run: max(run.counter.counted.values()),
}  # fmt: skip


def _last_ten(history: History) -> str:
    """Return whether the last ten of all messages are still there as they were."""
    latest = [each for each in history.everything if each.compaction is None][-10:]
    return "unchanged" if list(history.active)[-10:] == latest else "changed"


async def _seed(profile: str, steps: Sequence[Any], see: str, **options: Any) -> Any:
    run = Run(profile, **options)
    await run.do(steps)
    return SEEN[see](run)


async def seed_001(
    steps: Sequence[Any], see: str, window: int | None = 200_000, **options: Any
) -> Any:
    """Take steps with the profile of 001, in a window of its example."""
    return await _seed("seed-001", steps, see, window=window, **options)


async def seed_002(steps: Sequence[Any], see: str, model: str = "gpt-4o", **options: Any) -> Any:
    """Take steps with the profile of 002, for the model of its example."""
    return await _seed("seed-002", steps, see, model=model, **options)


async def seed_004(steps: Sequence[Any], see: str, window: int = 128_000, **options: Any) -> Any:
    """Take steps with the profile of 004, in a window of its example."""
    return await _seed("seed-004", steps, see, window=window, **options)
