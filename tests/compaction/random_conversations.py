"""Random conversations, a hundred thousand in a minute: for properties over very many of them."""

import random

from contextgauge.compaction.messages import (
    ApiUsage,
    Block,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_WORDS = (
    "never",
    "use",
    "tabs",
    "the",
    "file",
    "src/app.py",
    "must",
    "stay",
    "below",
    "$500",
    "漢字",
    "",
)


def random_conversation(rng: random.Random) -> list[Message]:
    """Return a well-formed conversation of up to some hundred messages, all calls answered."""
    messages: list[Message] = []
    if rng.random() < 0.7:
        messages.append(Message("system", (Text(_text(rng, 30)),)))
    scale = rng.choice((3, 10, 40, 200))
    for turn in range(rng.randrange(1, 9)):
        messages.append(Message("user", _turn(rng, scale)))
        for step in range(rng.randrange(4)):
            messages.extend(_tools(rng, f"{turn}.{step}", scale))
        if rng.random() < 0.7:
            usage = (
                ApiUsage(rng.randrange(20_000), rng.randrange(500)) if rng.random() < 0.2 else None
            )
            messages.append(Message("assistant", (Text(_text(rng, scale)),), usage=usage))
    return messages


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randrange(words + 1)))


def _turn(rng: random.Random, scale: int) -> tuple[Block, ...]:
    blocks: list[Block] = [Text(_text(rng, scale))]
    if rng.random() < 0.1:
        blocks.append(Image(rng.randrange(2_000), "image/png"))
    return tuple(blocks)


def _tools(rng: random.Random, prefix: str, scale: int) -> list[Message]:
    ids = [f"{prefix}.{number}" for number in range(rng.choice((1, 1, 1, 2, 4)))]
    arguments = (
        '{"path":"src/'
        + str(rng.randrange(9))
        + '.py","text":"'
        + "x" * rng.choice((0, 50, 3_000))
        + '"}'
    )
    calls = [ToolCall(each, rng.choice(("read", "write", "memory")), arguments) for each in ids]
    results = [
        ToolResult(each, (Text(_text(rng, scale * rng.choice((1, 1, 10)))),)) for each in ids
    ]
    rng.shuffle(results)
    messages: list[Message] = []
    if rng.random() < 0.3:
        messages.append(Message("assistant", (Thinking("", rng.randrange(400)),)))
    if rng.random() < 0.5:
        messages.append(Message("assistant", (Text(_text(rng, 5)), *calls)))
        messages.append(Message("user", tuple(results)))
    else:
        messages.extend(Message("assistant", (each,)) for each in calls)
        messages.extend(Message("tool", (each,)) for each in results)
    if rng.random() < 0.05:
        messages.append(Message("assistant", (Opaque("compaction", rng.randrange(900)),)))
    return messages
