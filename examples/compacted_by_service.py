"""The agent of `compacting_agent.py` without compaction of its own: the service does it.

    make demo-compaction

The agent publishes what it says and hears, and asks contextgauge before each call what the model
should see. That is its whole conversation, until the service has compacted it: then it is the
summary and what came after it. The agent itself keeps no message.

To run it against a deployment of your own: `contextgauge conversations`, `contextgauge control` and
`contextgauge serve` with a service file that opts the agent in (docs/CONTROL.md), then
`python examples/compacted_by_service.py http://127.0.0.1:8765`.
"""

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from contextgauge import SessionStream

AGENT = "demo-reviewer"
MODEL = "scripted-reviewer"
_PATIENCE_S = 60.0
_LOOK_S = 0.1


class PublishedSession:
    """A session that is published, and whose context is asked for."""

    def __init__(self, stream: SessionStream, session_id: str, url: str) -> None:
        self.id, self._stream = session_id, stream
        self._url = f"{url.rstrip('/')}/v1/sessions/{quote(session_id)}"
        self._last = ""
        self.compactions = 0

    def publish(self, kind: str, **fields: Any) -> None:
        """Publish a message in the form of an SDK."""
        self._last = str(uuid.uuid4())
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._stream.publish(
            {"type": kind, "uuid": self._last, "session_id": self.id, "timestamp": now, **fields}
        )

    async def context(self) -> list[dict[str, Any]]:
        """Return what the model should see, once contextgauge knows all that was published."""
        for _ in range(round(_PATIENCE_S / _LOOK_S)):
            answer = await asyncio.to_thread(self._get, "context", format="anthropic")
            if answer is not None and answer["last_message_id"] == self._last:
                if answer["compactions"] > self.compactions:
                    self.compactions = answer["compactions"]
                    print(f"  the service compacted: {len(answer['messages'])} messages are left")
                return list(answer["messages"])
            await asyncio.sleep(_LOOK_S)
        raise TimeoutError("contextgauge does not know the session: is `conversations` running?")

    async def recall(self, arguments: dict[str, Any]) -> str:
        """Return what was archived."""
        answer = await asyncio.to_thread(self._get, "recall", **arguments)
        return json.dumps(answer)

    def _get(self, what: str, **query: str) -> Any:
        try:
            with urlopen(f"{self._url}/{what}?{urlencode(query)}", timeout=10) as response:
                return json.load(response)
        except HTTPError as error:
            if error.code == 404:  # not known yet
                return None
            raise
