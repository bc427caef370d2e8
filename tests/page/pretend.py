"""An API that answers what a test sets, in the shapes of the real one, from the product's views."""

import asyncio
import copy
import json
from collections.abc import Iterable
from http import HTTPStatus
from itertools import chain
from typing import Any, cast
from urllib.parse import parse_qs, unquote

from starlette.requests import Request
from starlette.responses import Response

from contextgauge.addresses import session_address
from contextgauge.containers import Line
from contextgauge.pricing import price_of
from contextgauge.window_catalog import bundled
from schemas.commands import ControlView
from schemas.records import Record
from schemas.views import STREAM_ENTRIES
from streams import codec
from streams.codec.costs import costs_document
from streams.codec.what_if import what_if_document
from streams.core.costs import stored_costs
from streams.core.derivation.rules_config import Rules
from streams.core.session_status import THRESHOLDS
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.core.whatif.answers import priced, stored_answer
from streams.core.whatif.new_settings import read_triggers, setting_of
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.ports import PartitionDump
from streams.serve.api.answers import status_of_document
from streams.serve.api.routes import live_since
from streams.serve.views.session_summary import ListOrder, Rank, Sort, summary_of
from streams.serve.views.sessions import SessionKey
from tests.doubles.dump import fold_records
from tests.serve import kit

_LIMIT_BYTES = 8 << 20

GONE = "x-gone"
"""The header of an answer that is to be none."""

PUSHED = """
(() => {
  // The feed is a stream that the test writes to; the rest of the API is the server's, or away.
  const plain = window.fetch;
  const native = async (path, options) => {
    const answer = await plain(path, options);
    if (answer.headers.has("GONE")) throw new TypeError("Failed to fetch");
    return answer;
  };
  const encoder = new TextEncoder();
  let controller = null;
  let number = 0;
  const waiting = [];
  window.feedRequests = [];
  const send = (text) => {
    if (controller === null) waiting.push(text);
    else controller.enqueue(encoder.encode(text));
  };
  window.pushEntries = (entries) => {
    for (const entry of entries) {
      number += 1;
      send(`id: ${number}\\nevent: record\\ndata: ${JSON.stringify(entry)}\\n\\n`);
    }
  };
  window.pushRaw = send;
  window.cutFeed = () => {
    controller?.close();
    controller = null;
  };
  window.fetch = (path, options = {}) => {
    if (!String(path).startsWith("v1/stream")) return native(path, options);
    if (window.feedGone) return Promise.reject(new TypeError("Failed to fetch"));
    window.feedRequests.push(options.headers?.["Last-Event-ID"] ?? null);
    const body = new ReadableStream({
      start(made) {
        controller = made;
        for (const text of waiting.splice(0)) made.enqueue(encoder.encode(text));
      },
    });
    options.signal?.addEventListener("abort", () => {
      try { controller?.error(options.signal.reason); } catch { /* closed already */ }
      controller = null;
    });
    const headers = { "content-type": "text/event-stream" };
    return Promise.resolve(new Response(body, { headers }));
  };
})();
""".replace("GONE", GONE)


def records_of(lines: Iterable[Line]) -> list[Record]:
    """Return what the product derives from messages."""
    deriver = Deriver(Rules(catalog=bundled()), limit_bytes=_LIMIT_BYTES)
    return [
        record for block in replay(deriver, [list(lines)], _LIMIT_BYTES) for record in block.records
    ]


def sample_lines(start_ms: int) -> list[Line]:
    """Return the simulator's sample: sessions that show every kind of message."""
    options = SimulationOptions(start_ms=start_ms)
    return [
        Line("simulated", number, each.value, len(each.value), each.session_id)
        for number, each in enumerate(sample_sessions(options))
    ]


def folded(records: Iterable[Record]) -> PartitionDump:
    """Return the documents that the projection makes of records."""
    (dump,) = fold_records(records, 1)
    return dump


class Api:
    """Answers `/v1`. `problem`: every answer is this error; `gone`: there is no answer.

    `now_ms` is the server's time.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.records: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.compactions: dict[str, list[dict[str, Any]]] = {}
        self.titles: dict[str, str] = {}
        self.points = NO_POINTS
        self.control: dict[str, dict[str, Any]] = {}
        self.stats: dict[str, Any] = {}
        self.problem: tuple[int, str] | None = None
        self.token: str | None = None
        self.stale_ms: int | None = None
        self.reading: dict[str, int] | None = None
        self.texts: kit.Api | None = None
        """Answers what asks for all messages of a session."""
        self.gone = False
        self.is_open = asyncio.Event()
        """No answer is given before it is set."""
        self.is_open.set()
        self.now_ms = 0
        self.generation = 1
        self.asked: list[str] = []

    def fill(self, dump: PartitionDump) -> None:
        """Tell what the projection made."""
        for session, document in dump.views.items():
            self.sessions[session.decode()] = codec.loads(document)
        for session, by_number in dump.compactions.items():
            whole = [codec.loads(document) for document in by_number.values()]
            whole.sort(key=lambda each: each["time_ms"] or 0, reverse=True)
            self.compactions[session.decode()] = whole
        for stream, by_session in dump.entries.items():
            for session, entries in by_session.items():
                of_session = self.records.setdefault(session.decode(), {})
                documents = [codec.loads(entry.document) for entry in entries]
                of_session[stream] = documents[-STREAM_ENTRIES:]

    def one(self) -> dict[str, Any]:
        """Tell of one session only, and return its view."""
        self.many(1)
        (view,) = self.sessions.values()
        return view

    def many(self, count: int) -> None:
        """Tell of so many sessions, all like the first one but for their id and size."""
        model = next(
            view
            for view in self.sessions.values()
            if view["chains"].get("main", {}).get("used_percent") is not None
        )
        self.sessions.clear()
        for number in range(count):
            view = copy.deepcopy(model)
            view["session_id"] = f"{number:08x}-0000-4000-8000-000000000000"
            view["sequence"] = 1
            view["attempt"] = None
            chain = view["chains"]["main"]
            chain["used_percent"] = (number * 9_900 // count) / 100
            chain["used_tokens"] = int(chain["window"] * chain["used_percent"] / 100)
            self.sessions[view["session_id"]] = view

    async def answer(self, request: Request) -> Response:
        """Answer what a tab asks; no answer is kept."""
        path, query = request.scope["raw_path"].decode(), request.url.query
        self.asked.append(f"{path}?{query}")
        await self.is_open.wait()
        if self.gone:
            return Response(headers={GONE: "1"})
        problem = self.problem
        if self.token is not None:
            authorization = request.headers.get("authorization")
            if authorization != f"Bearer {self.token}":
                known = (
                    "Send a token." if authorization is None else "This token is not known here."
                )
                problem = (401, known)
        headers = {"Cache-Control": "no-store"}
        if self.texts is not None and path.endswith("/history"):
            answer = await self.texts.client.get(f"{path}?{query}")
            return Response(
                answer.content, answer.status_code, headers, answer.headers["content-type"]
            )
        if problem is None:
            found = self._found(path, parse_qs(query))
            if found is not None:
                whole = {"generation": self.generation, "as_of": self._as_of(), **found}
                body = json.dumps(whole)  # in ASCII, whatever an id holds
                return Response(body, headers=headers, media_type="application/json")
            problem = (404, "GET /v1/sessions lists those that there are.")
        status, detail = problem
        document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
        body = json.dumps({**document, "detail": detail, "instance": path})
        return Response(body, status, headers, "application/problem+json")

    def _as_of(self) -> dict[str, Any]:
        stale = self.stale_ms is not None
        return {
            "at_ms": 0, "stale": stale, "silent_ms": 100, "lag_records": 7 if stale else 0,
            "lag_ms": self.stale_ms or 0, "feed": f"{self.generation}:0",
        }  # fmt: skip

    def _found(self, path: str, asked: dict[str, list[str]]) -> dict[str, Any] | None:
        parts = [unquote(part) for part in path.split("/")[2:]]
        if parts == ["sessions"]:
            return self._list(asked)
        if parts == ["projection"]:
            estimates = repr(self.points)
            return {"partitions": [], "estimates": estimates, "reading": self.reading}
        if parts == ["stats"]:
            return self.stats
        session = self._addressed(path.split("/")[3]) if parts[0] == "sessions" else ""
        if session not in self.sessions:
            return None
        if len(parts) == 2:
            return {
                "session": self._judged(self.sessions[session]),
                "thresholds": THRESHOLDS._asdict(),
            }
        if parts[2] == "control":
            view = codec.loads(codec.dumps(ControlView(session_id=session)))
            worker = {"silent_ms": 100, "is_working": True}
            return {"control": {**view, **self.control.get(session, {})}, "worker": worker}
        if parts[2] in {"costs", "what-if"}:
            entries = chain.from_iterable(self.records.get(session, {}).values())
            records = [codec.from_structured(entry) for entry in entries]
            if parts[2] == "costs":
                return {"costs": costs_document(stored_costs(records, price_of))}
            records.sort(key=lambda record: record.sequence)
            return {"what_if": self._what_if(records, asked)}
        if parts[2] == "compactions":
            return {"compactions": self.compactions.get(session, [])}
        return self._part(self.records.get(session, {}).get(parts[2], []), "records", asked)

    def _what_if(self, records: list[Record], asked: dict[str, list[str]]) -> dict[str, Any]:
        (window,) = asked.get("window", [None])
        settings = [
            setting_of(each, None if window is None else int(window))
            for each in read_triggers(asked["trigger"][0])
        ]
        prices = priced(price_of)
        return what_if_document(stored_answer(records, settings, prices, (50, 75, 90)))

    def _addressed(self, part: str) -> str:
        """Return the session that a part of an address names."""
        hashed = (name for name in self.sessions if session_address(name) == part)
        return next(hashed, unquote(part))

    def _problem(self, view: dict[str, Any]) -> str:
        """Return what a search looks into."""
        title = self.titles.get(view["session_id"])
        return json.dumps([view["session_id"], view["identity"], title]).lower()

    def _list(self, asked: dict[str, list[str]]) -> dict[str, Any]:
        def used(view: dict[str, Any]) -> float:
            leading = judged(view)["status"]["leading_chain"]
            percent = view["chains"].get(leading, {}).get("used_percent")
            return -1.0 if percent is None else float(percent)

        views = list(self.sessions.values())
        if "id" in asked:
            names = map(self._addressed, asked["id"])
            views = [self.sessions[name] for name in names if name in self.sessions]
            return {**self._listed(views), "next": None, "total": len(views)}
        if "q" in asked:
            words = asked["q"][0].lower().split()
            views = [view for view in views if all(word in self._problem(view) for word in words)]
        if "min_percent" in asked:
            views = [view for view in views if used(view) >= float(asked["min_percent"][0])]
        if asked.get("state") == ["compacting"]:
            views = [view for view in views if view["attempt"] is not None]
        (sort,) = asked.get("sort", ["recent"])
        since_ms = live_since(self.now_ms) if "live_first" in asked else None
        order = ListOrder(cast("Sort", sort), since_ms)
        ranks = {view["session_id"]: self._rank(view, order) for view in views}
        views.sort(key=lambda view: ranks[view["session_id"]])
        live = sum(rank[0] == 0 for rank in ranks.values())
        part = self._part(views, "sessions", asked)
        listed = self._listed(part["sessions"])
        return {**listed, "next": part["next"], "total": len(views), "live": live}

    def _listed(self, views: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "sessions": [self._judged(view) for view in views],
            "thresholds": THRESHOLDS._asdict(),
        }

    def _judged(self, view: dict[str, Any]) -> dict[str, Any]:
        name = view["session_id"]
        return judged(view, self.titles.get(name), self.points)

    def _rank(self, view: dict[str, Any], order: ListOrder) -> Rank:
        name = codec.key_bytes(view["session_id"])
        return summary_of(SessionKey(0, name), codec.dumps(view)).rank(order)

    def _part(
        self, found: list[dict[str, Any]], name: str, asked: dict[str, list[str]]
    ) -> dict[str, Any]:
        (given,) = asked.get("cursor", asked.get("after", ["0"]))
        start, limit = int(given), int(asked["limit"][0])
        end = start + limit
        return {name: found[start:end], "next": str(end) if end < len(found) else None}


def judged(
    view: dict[str, Any], title: str | None = None, points: CompactionPoints = NO_POINTS
) -> dict[str, Any]:
    """Return a view with its status, as of long ago: the page must come to now by itself."""
    status = status_of_document(codec.dumps(view), points)
    address = session_address(view["session_id"])
    return {**view, "address": address, "title": title, "status": status.document(0)}


def entry(view: dict[str, Any], percent: float, sequence: int) -> dict[str, Any]:
    """Return what the feed tells of a response."""
    window = view["chains"]["main"]["window"]
    return {
        "version": 2, "record_id": f"r{sequence}", "kind": "context_reading",
        "session_id": view["session_id"], "chain": "main", "time_ms": (view["last_ms"] or 0) + 1,
        "sequence": sequence, "state": "measured", "used_percent": percent,
        "used_tokens": int(window * percent / 100),
    }  # fmt: skip
