"""A cache-aligned request repeats what the agent sent last, so the provider's cache is read.

The agent sends a request through the provider's SDK to a real server; then the summariser sends
its own. Compared is what providers cache, in their order: tools, system prompt, messages.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from contextgauge.compaction.formats import read_request
from contextgauge.compaction.messages import FormatName
from contextgauge.compaction.ports import SummaryRequest
from contextgauge.compaction.summarisers import (
    AnthropicModel,
    ChatModel,
    GeminiModel,
    ModelSummariser,
    ResponsesModel,
)
from contextgauge.json_codec import dumps
from contextgauge.records import Json
from tests.compaction.scripted_server import Reply, ScriptedServer, scripted_server
from tests.compaction.summary_kit import GOOD, HandClock
from tests.compaction.wire_replies import APIS, KEY, MODEL, Said

pytestmark = pytest.mark.service  # a server on this machine, and the providers' SDKs

ROUNDS = 30
PARAMETERS: Json = {"type": "object", "properties": {"path": {"type": "string"}}}
ANSWER = {"unknown_field": [1, 2], "line": "def parse(): ..." * 40}


def _anthropic_conversation() -> dict[str, Any]:
    messages: list[Json] = [{"role": "user", "content": "Fix the parser. " * 20}]
    for n in range(ROUNDS):
        call: Json = {
            "type": "tool_use",
            "id": f"toolu_{n}",
            "name": "read",
            "input": {"path": "a"},
        }
        thinking: Json = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
        result: Json = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": str(ANSWER)}
        messages.append({"role": "assistant", "content": [thinking, call]})
        messages.append({"role": "user", "content": [result]})
    last: dict[str, Json] = {"type": "text", "text": "Go on."}
    cached: Json = {**last, "cache_control": {"type": "ephemeral"}}
    messages.append({"role": "assistant", "content": "Read."})
    messages.append({"role": "user", "content": [cached]})
    return {
        "messages": messages,
        "system": [
            {"type": "text", "text": "You are an agent."},
            {"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}},
        ],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": PARAMETERS}],
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
    }


def _chat_conversation() -> dict[str, Any]:
    function: Json = {"name": "read", "arguments": '{"path": "a"}'}
    messages: list[Json] = [{"role": "system", "content": "You are an agent."}]
    messages.append({"role": "user", "content": "Fix the parser. " * 20})
    for n in range(ROUNDS):
        call: Json = {"id": f"call_{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": str(ANSWER)})
    tool: Json = {"type": "function", "function": {"name": "read", "parameters": PARAMETERS}}
    return {"messages": messages, "tools": [tool]}


def _responses_conversation() -> dict[str, Any]:
    items: list[Json] = [{"role": "user", "content": "Fix the parser. " * 20}]
    for n in range(ROUNDS):
        items.append(
            {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "abc"}
        )
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{n}",
                "call_id": f"call_{n}",
                "name": "read",
                "arguments": '{"path": "a"}',
            }
        )
        items.append(
            {"type": "function_call_output", "call_id": f"call_{n}", "output": str(ANSWER)}
        )
    tool: Json = {"type": "function", "name": "read", "parameters": PARAMETERS, "strict": False}
    return {"input": items, "instructions": "You are an agent.", "tools": [tool]}


def _gemini_conversation() -> dict[str, Any]:
    contents: list[Json] = [{"role": "user", "parts": [{"text": "Fix the parser. " * 20}]}]
    for n in range(ROUNDS):
        call: Json = {"functionCall": {"id": f"c{n}", "name": "read", "args": {"path": "a"}}}
        answer: Json = {"id": f"c{n}", "name": "read", "response": {"output": str(ANSWER)}}
        contents.append({"role": "model", "parts": [call]})
        contents.append({"role": "user", "parts": [{"functionResponse": answer}]})
    tool = {"function_declarations": [{"name": "read", "parameters": {"type": "OBJECT"}}]}
    return {"contents": contents, "system_instruction": "You are an agent.", "tools": [tool]}


async def _send_anthropic(url: str, body: dict[str, Any]) -> None:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(api_key=KEY, base_url=url) as client:
        await client.messages.create(model=MODEL, max_tokens=4_000, **body)


async def _send_chat(url: str, body: dict[str, Any]) -> None:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key=KEY, base_url=url) as client:
        await client.chat.completions.create(model=MODEL, **body)


async def _send_responses(url: str, body: dict[str, Any]) -> None:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key=KEY, base_url=url) as client:
        await client.responses.create(model=MODEL, store=False, **body)


async def _send_gemini(url: str, body: dict[str, Any]) -> None:
    from google.genai import Client, types

    config = types.GenerateContentConfig(
        system_instruction=body["system_instruction"], tools=body["tools"]
    )
    options = types.HttpOptions(base_url=url)
    async with Client(api_key=KEY, http_options=options).aio as client:
        await client.models.generate_content(
            model=MODEL,
            contents=body["contents"],
            config=config,
        )


class Agent(NamedTuple):
    """An agent's conversation with one API, and the fields that are cached, in their order."""

    api: str
    format: FormatName
    model: type[AnthropicModel | ChatModel | ResponsesModel | GeminiModel]
    conversation: dict[str, Any]
    send: Callable[[str, dict[str, Any]], Awaitable[None]]
    cached: tuple[str, ...]


AGENTS = [
    Agent(
        "anthropic",
        "anthropic",
        AnthropicModel,
        _anthropic_conversation(),
        _send_anthropic,
        ("tools", "system", "messages"),
    ),
    Agent(
        "chat", "openai-chat", ChatModel, _chat_conversation(), _send_chat, ("tools", "messages")
    ),
    Agent(
        "responses",
        "openai-responses",
        ResponsesModel,
        _responses_conversation(),
        _send_responses,
        ("tools", "instructions", "input"),
    ),
    Agent(
        "gemini",
        "gemini",
        GeminiModel,
        _gemini_conversation(),
        _send_gemini,
        ("tools", "systemInstruction", "contents"),
    ),
]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as running:
        yield running


def _prefix(agent: Agent, body: dict[str, Json]) -> bytes:
    """Return what is cached of a request; without the end of its array of messages."""
    return b"".join(dumps(body.get(name)) for name in agent.cached)[:-1]


def _share(first: bytes, second: bytes) -> float:
    """Return how much of the first is the beginning of the second."""
    pairs = zip(first, second, strict=False)
    equal = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
    return equal / len(first)


async def _requests(server: ScriptedServer, agent: Agent, **options: Any) -> tuple[bytes, bytes]:
    """Return what is cached of the agent's request and of the summariser's after it."""
    server.script(Reply(APIS[agent.api].whole(Said(GOOD))))
    await agent.send(server.url, agent.conversation)
    sent = server.received[0].body
    context = read_request(sent, agent.format)
    own = {
        name: value
        for name, value in agent.conversation.items()
        if name not in {"messages", "input", "contents"}
    }
    model = agent.model(MODEL, api_key=KEY, base_url=server.url, conversation=own)
    request = SummaryRequest(
        context.messages[:-2], context, None, "Fix the parser.", 1, prompt="cache-aligned"
    )
    summariser = ModelSummariser(model, clock=HandClock(), **options)
    await summariser.summarise(replace(request, max_tokens=900))
    return _prefix(agent, sent), _prefix(agent, server.received[1].body)


@pytest.mark.extended
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.api)
@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
async def test_the_whole_conversation_is_the_beginning_of_the_request(
    server: ScriptedServer, agent: Agent
) -> None:
    first, second = await _requests(server, agent)
    assert len(first) > 20_000
    assert _share(first, second) == 1.0  # the aim is 0.95
    assert len(second) - len(first) < 3_000


@pytest.mark.extended
async def test_thinking_stays_on_and_its_tokens_are_added_to_the_limit(
    server: ScriptedServer,
) -> None:
    await _requests(server, AGENTS[0])
    body = server.received[1].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2_000}
    assert body["max_tokens"] == 2_900


async def test_other_prompts_do_not_send_the_conversations_fields(server: ScriptedServer) -> None:
    agent = AGENTS[0]
    server.script(Reply(APIS["anthropic"].whole(Said(GOOD))))
    model = AnthropicModel(
        MODEL,
        api_key=KEY,
        base_url=server.url,
        conversation=agent.conversation,
        extra={"metadata": {"user_id": "u"}},
    )
    context = read_request(agent.conversation, "anthropic")
    request = SummaryRequest(context.messages, context, None, "Fix the parser.", 1)
    await ModelSummariser(model, clock=HandClock()).summarise(request)
    body = server.received[0].body
    assert {"tools", "thinking"} & set(body) == set()
    assert body["metadata"] == {"user_id": "u"}
    assert "You write the summary" in body["system"]
