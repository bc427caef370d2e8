"""Conversations for the tests of the compaction engine, short and long, and random ones."""

from hypothesis import strategies as st

from contextgauge.compaction.messages import (
    ApiUsage,
    Block,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
)


def said(role: Role, text: str, *, id: str = "", usage: ApiUsage | None = None) -> Message:  # noqa: A002
    return Message(role, (Text(text),), id=id, usage=usage)


def call(call_id: str, name: str = "read", arguments: str = "{}") -> Message:
    return Message("assistant", (ToolCall(call_id, name, arguments),))


def result(call_id: str, text: str = "ok", name: str | None = "read") -> Message:
    return Message("tool", (ToolResult(call_id, (Text(text),), name),))


def session(turns: int, *, characters: int = 400) -> list[Message]:
    """A session in which each turn reads one file: user, call, result, answer."""
    messages = [said("system", "You are a coding agent.")]
    for turn in range(turns):
        path = f"src/module_{turn}.py"
        messages += [
            said("user", f"Please look at {path} for me, part {turn}."),
            call(f"call-{turn}", "read", f'{{"path":"{path}"}}'),
            result(f"call-{turn}", f"line {turn} of the file\n" * (characters // 20)),
            said("assistant", f"I read {path}; it has what part {turn} needs."),
        ]
    return messages


words = st.text(alphabet="abc äß漢 \n./-", max_size=60)


@st.composite
def conversations(draw: st.DrawFn, max_turns: int = 12) -> list[Message]:
    """Well-formed conversations: parallel calls, results of the user's side, long texts."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(said("system", draw(words)))
    number = 0
    for _ in range(draw(st.integers(0, max_turns))):
        messages.append(said("user", draw(words)))
        for _ in range(draw(st.integers(0, 3))):
            ids = [f"t{number + each}" for each in range(draw(st.integers(1, 3)))]
            number += len(ids)
            blocks: tuple[Block, ...] = (
                Text(draw(words)),
                *(ToolCall(each, "read", '{"a":"b"}') for each in ids),
            )
            messages.append(Message("assistant", blocks))
            texts = [draw(words) * draw(st.sampled_from([1, 1, 40])) for _ in ids]
            results = tuple(
                ToolResult(each, (Text(text),)) for each, text in zip(ids, texts, strict=True)
            )
            if draw(st.booleans()):
                messages.append(Message("user", results))
            else:
                messages.extend(Message("tool", (each,)) for each in results)
        if draw(st.booleans()):
            messages.append(said("assistant", draw(words)))
    return messages


def orphans(messages: list[Message]) -> set[str]:
    """Ids of calls without a result after them, and of results without a call before them."""
    calls: set[str] = set()
    alone: set[str] = set()
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolCall):
                calls.add(block.id)
            elif isinstance(block, ToolResult):
                if block.call_id in calls:
                    calls.discard(block.call_id)
                else:
                    alone.add(block.call_id)
    return calls | alone
