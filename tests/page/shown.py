"""An agent whose messages so far are what the API tells of its session."""

from pathlib import Path

from playwright.async_api import Page

from contextgauge.containers import Line
from tests.page.agent import Agent
from tests.page.pretend import Api, folded, records_of

NOW_MS = 1_790_000_000_000
SESSION = "7d1f4c52-aaaa-4bbb-8ccc-000000000001"


class Shown:
    """An agent whose messages so far are what the API tells."""

    def __init__(self, path: Path, api: Api, page: Page) -> None:
        self.agent = Agent(path, SESSION)
        self._api, self._page = api, page

    def fill(self) -> None:
        """Tell what the product makes of the messages so far."""
        lines = [
            Line("live", number, value, len(value), SESSION)
            for number, value in enumerate(self.agent.path.read_bytes().splitlines())
        ]
        self._api.fill(folded(records_of(lines)))

    async def tell(self) -> None:
        """Tell it, and let the feed say that there is something new."""
        self.fill()
        view = self._api.sessions[SESSION]
        entry = {
            "version": 2, "record_id": str(view["sequence"]), "kind": "compaction_progress",
            "session_id": SESSION, "chain": "main", "time_ms": None, "state": "measured",
            "sequence": view["sequence"], "used_tokens": None, "used_percent": None,
        }  # fmt: skip
        await self._page.evaluate("(e) => pushEntries([e])", entry)
