"""The agent of `compacting_agent.py` without compaction of its own: the service does it.

    make demo-compaction

The agent publishes every message, keeps none itself, and asks contextgauge before each call what
the model should see: the whole conversation, or once the service has compacted it, the summary and
what came after. Near its limit the agent waits for that.

To run it against services of your own, start `contextgauge conversations`, `contextgauge control`
and `contextgauge serve` with a file that opts the agent in (docs/CONTROL.md), then run
`python examples/compacted_by_service.py http://127.0.0.1:8642`.
"""

import asyncio
import json
import sys
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from compacting_agent import FILES, SYSTEM, TASK, TOOLS, WINDOW_TOKENS, ask_model, read_file

from contextgauge import Publisher, Stream

AGENT = "demo-reviewer"
MODEL = "scripted-reviewer"
WAIT_AT_TOKENS = WINDOW_TOKENS * 9 // 10
PATIENCE_S = 60.0
LOOK_S = 0.1
THINKING_S = 0.4
"""A model is not faster; and there is time to watch the page."""


class PublishedSession:
    """A session that is published, and whose context is asked for."""

    def __init__(self, stream: Stream, session_id: str, url: str) -> None:
        self.id, self._stream = session_id, stream
        self._url = f"{url.rstrip('/')}/v1/sessions/{quote(session_id)}"
        self._last: dict[str, Any] = {}
        self._previous: str | None = None
        self.compactions = 0

    async def publish(self, kind: str, fields: dict[str, Any]) -> None:
        """Publish a message in the form of an SDK."""
        own = {"type": kind, "uuid": str(uuid.uuid4()), "session_id": self.id}
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        await self._stream.publish({**own, "timestamp": now, **fields})

    async def say(self, role: str, message: dict[str, Any]) -> None:
        """Publish what the user, a tool or the model says."""
        await self.publish(role, {"message": {"role": role, **message}})
        self._last = {"role": role, "content": message["content"]}

    async def context(self, *, compacted: bool = False) -> list[dict[str, Any]]:
        """Return what the model should see, once contextgauge has all that was published.

        With `compacted`, once the service has compacted it. Raises TimeoutError.
        """
        least = self.compactions + compacted
        for _ in range(round(PATIENCE_S / LOOK_S)):
            answer = await asyncio.to_thread(self._get, "context", {"format": "anthropic"})
            messages: list[dict[str, Any]] = answer["messages"] if answer else []
            if messages and messages[-1] == self._last and answer["compactions"] >= least:
                if answer["compactions"] > self.compactions:
                    self.compactions = answer["compactions"]
                    left = f"{answer['active']} messages active, {answer['archived']} archived"
                    print(f"[Compacted by the service] round {self.compactions}: {left}")
                return messages
            await asyncio.sleep(LOOK_S)
        raise TimeoutError(
            "contextgauge does not have what was published: are `conversations` and `control` "
            "running, with a file that opts this agent in?"
        )

    async def recall(self, arguments: dict[str, str]) -> str:
        """Return what messages that left the context say."""
        print(f"  recall {arguments}")
        answer = await asyncio.to_thread(self._get, "recall", {"query": arguments["text"]})
        return str(answer["answer"])

    def _get(self, what: str, query: dict[str, str]) -> dict[str, Any]:
        try:
            address = f"{self._url}/{what}?{urlencode(query)}"
            with urlopen(address, timeout=10) as response:  # noqa: S310 -- the user's own server
                answer: dict[str, Any] = json.load(response)
                return answer
        except HTTPError as error:
            if error.code == 404:  # noqa: PLR2004 -- the session is not known yet
                return {}
            raise


async def run(session: PublishedSession) -> None:
    """Run the agent until it answers without a call."""
    await session.publish("system", {"subtype": "init", "model": MODEL, "cwd": "/srv/reviews"})
    usage = {MODEL: {"contextWindow": WINDOW_TOKENS}}
    await session.publish("result", {"subtype": "success", "modelUsage": usage})
    await session.say("user", {"content": TASK})
    size = 0
    while True:
        messages = await session.context(compacted=size >= WAIT_AT_TOKENS)
        await asyncio.sleep(THINKING_S)
        answer = ask_model({"system": SYSTEM, "tools": TOOLS, "messages": messages})
        size = answer["usage"]["input_tokens"]
        print(f"Context: {size:,} of {WINDOW_TOKENS:,} tokens")
        await session.say("assistant", {**answer, "id": f"msg_{uuid.uuid4().hex}", "model": MODEL})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            print(answer["content"][0]["text"])
            return
        results = []
        for call in calls:
            is_recall = call["name"] == "recall"
            text = await session.recall(call["input"]) if is_recall else read_file(**call["input"])
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": text})
        await session.say("user", {"content": results})


async def main(url: str) -> None:
    """Publish a session of its own, and run it."""
    session_id = str(uuid.uuid4())
    print(f"session {session_id}: {len(FILES)} files to read, a window of {WINDOW_TOKENS:,} tokens")
    async with Publisher(when_full="wait", agent_id=AGENT) as publisher:
        await run(PublishedSession(publisher.stream(session_id=session_id), session_id, url))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8642"))
