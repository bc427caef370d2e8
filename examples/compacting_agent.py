"""An agent whose conversation outgrows its window, and that loses nothing of importance.

    python examples/compacting_agent.py

The model is a script that runs here, without a network. It sees nothing but its request: what it
does next, it reads from the messages, as a model would. The task takes some 30 000 tokens, the
window has 6 000: the agent is warned and compacted, goes on, and recalls what it needs in the end.

In your own agent, `ask_model` is a call of your provider; the loop stays as it is.
"""

import asyncio
import json
import re
from typing import Any

from contextgauge.compaction import (
    CompactionDone,
    Compactor,
    ContextWarned,
    EngineEvent,
    History,
    Hooks,
    ModelCall,
    read_answer,
    read_messages,
    recall,
    recall_tool_schema,
    write_messages,
)
from contextgauge.compaction.displays import log_line, status_text

WINDOW_TOKENS = 6_000
FILES = [f"src/module_{number:02}.py" for number in range(36)]
SYSTEM = "You are a careful code reviewer. Use the tools, then report."
TASK = (
    f"Read every file of src, {FILES[0]} to {FILES[-1]}, and report the release key that one of "
    "the first files contains. Never read src/secrets.py. The report must be signed with REVIEW-7."
)
TOOLS: list[dict[str, Any]] = [
    {
        "name": "read_file",
        "description": "Return the text of a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
    recall_tool_schema("anthropic"),
]


def read_file(path: str) -> str:
    """Stand in for the files of a project: the second one has the key."""
    key = 'RELEASE_KEY = "mauve-otter-41"\n' if path == FILES[1] else ""
    body = "\n".join(f"def step_{line}(value): return value + {line}" for line in range(60))
    return f"# {path}\n{key}{body}\n"


def ask_model(request: dict[str, Any]) -> dict[str, Any]:
    """Answer as a model would: from what the request says, and nothing else."""
    text = json.dumps(request["messages"])
    unread = next((path for path in FILES if path not in _files_read(text)), None)
    key = re.search(r'RELEASE_KEY = \\+"([\w-]+)', text)
    if unread is not None:
        block = _call("read_file", {"path": unread}, unread)
    elif key is None:
        block = _call("recall", {"text": "RELEASE_KEY"}, "recall")
    else:
        signature = re.search(r"signed with (REVIEW-\d+)", text)
        report = f"The release key is {key[1]}. Signed: {signature[1] if signature else 'nobody'}."
        block = {"type": "text", "text": report}
    size = (len(text) + len(request["system"]) + len(json.dumps(request["tools"]))) // 4
    usage = {"input_tokens": size, "output_tokens": 30}
    return {"type": "message", "role": "assistant", "content": [block], "usage": usage}


def _files_read(text: str) -> set[str]:
    """Return the files of which a call is still seen, or which the file ledger names."""
    calls = re.findall(r'"path": "(src/\w+\.py)"', text)
    ledger = re.findall(r"- read (src/\w+\.py)", text)
    return {*calls, *ledger}


def _call(name: str, arguments: dict[str, Any], call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"call {call_id}", "name": name, "input": arguments}


def run_tool(call: dict[str, Any], history: History) -> dict[str, Any]:
    """Run one tool, and return its result as a block."""
    arguments = call["input"]
    if call["name"] == "recall":
        print(f"  recall {arguments}")
        content = recall(history.archived, arguments)
    else:
        content = read_file(arguments["path"])
    return {"type": "tool_result", "tool_use_id": call["id"], "content": content}


def show(event: EngineEvent) -> None:
    """Print what a person should know."""
    if isinstance(event, ContextWarned):
        print(f"⚠️ {status_text(event.tokens, event.window.tokens)}")
    elif isinstance(event, CompactionDone):
        print(log_line(event.receipt))
        for step in event.receipt.steps:
            print(f"  {step.rung}: {len(step.message_ids)} messages, {step.reason}")


async def main() -> None:
    """Run the agent until it answers without a call."""
    compactor = Compactor(hooks=Hooks(on_event=show))
    call = ModelCall(
        system=SYSTEM,
        tools=tuple(map(json.dumps, TOOLS)),
        reserved_output_tokens=500,
        window_tokens=WINDOW_TOKENS,
    )
    history = History(read_messages([{"role": "user", "content": TASK}], "anthropic"))
    while True:
        prepared = await compactor.before_call(history, call)
        messages = write_messages(prepared.messages, "anthropic")
        answer = ask_model({"system": SYSTEM, "tools": TOOLS, "messages": messages})
        history.extend(read_answer(answer, "anthropic"))
        print(status_text(answer["usage"]["input_tokens"], WINDOW_TOKENS))
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            print(answer["content"][0]["text"])
            return
        results = [run_tool(each, history) for each in calls]
        history.extend(read_messages([{"role": "user", "content": results}], "anthropic"))


if __name__ == "__main__":
    asyncio.run(main())
