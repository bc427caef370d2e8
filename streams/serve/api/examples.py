"""Examples for the OpenAPI document, built from the schemas' classes, so that they stay valid."""

from typing import Any, Final

from schemas.records import MAIN_CHAIN
from schemas.views import (
    Aggregates,
    AttemptView,
    Breakdown,
    ChainView,
    Compaction,
    CompactionBrief,
    CompactionsView,
    Distribution,
    Identity,
    LiveEntry,
    SessionView,
    TriggerAggregates,
)
from streams import codec
from streams.core.session_status import THRESHOLDS, status_of
from streams.serve.api.statuses import served
from streams.serve.api.totals import shown
from streams.serve.feed.feed import encoded

SESSION: Final = "0198c7a2-5d3e-7c41-9a55-3f0e6b1d2c88"
_BOUNDARY: Final = "5f0c1c8e-0a55-5d3e-9c41-7c88b1d2c3f0"
_ATTEMPT: Final = "9b6436db-cdb6-53c1-b790-017a5ac3f588"
_AT_MS: Final = 1_793_534_400_000
_POSITION: Final = "3:120,88,45,9"

_VIEW: Final = SessionView(
    session_id=SESSION,
    position=120,
    sequence=57,
    first_ms=_AT_MS - 1_800_000,
    last_ms=_AT_MS,
    identity=Identity(
        runtime="claude-code",
        runtime_version="2.1.40",
        model="claude-sonnet-5",
        cwd="/srv/shop",
        publisher_agent_id="reviewer",
    ),
    chains={
        MAIN_CHAIN: ChainView(
            chain=MAIN_CHAIN,
            model="claude-sonnet-5",
            state="compacting",
            used_tokens=164_300,
            used_percent=82.15,
            window=200_000,
            window_source="runtime",
            breakdown=Breakdown(
                input_tokens=300, cache_creation_tokens=4_000, cache_read_tokens=160_000
            ),
            as_of_ms=_AT_MS - 9_000,
            auto_compact_enabled=True,
            auto_compact_threshold=166_666,
            effective_window=200_000,
            until_compaction_tokens=2_366,
            peak_tokens=164_300,
            peak_percent=82.15,
            messages=38,
            messages_total=140,
            oldest_ms=_AT_MS - 1_200_000,
            differences=(3_900, 4_100, 4_300),
            growth_tokens=4_100,
            responses_left=0,
            last_sequence=57,
        )
    },
    attempt=AttemptView(
        attempt_id=_ATTEMPT,
        chain=MAIN_CHAIN,
        trigger_reason="threshold_exceeded",
        started_ms=_AT_MS - 8_000,
        last_heartbeat_ms=_AT_MS,
        elapsed_ms=8_000,
        used_tokens=164_300,
        used_percent=82.15,
    ),
    compactions=CompactionsView(
        automatic=1,
        messages=102,
        messages_per_compaction=102,
        last=(
            CompactionBrief(
                record_id=_BOUNDARY,
                chain=MAIN_CHAIN,
                number=1,
                outcome="succeeded",
                trigger="auto",
                error=None,
                time_ms=_AT_MS - 1_200_000,
                tokens_before=165_900,
                tokens_after=21_400,
                tokens_saved=144_500,
                duration_ms=31_000,
                messages_since_last=102,
            ),
        ),
    ),
)
_COMPACTION: Final = Compaction(
    chain=MAIN_CHAIN,
    number=1,
    boundary_id=_BOUNDARY,
    attempt_id=None,
    trigger="auto",
    time_ms=_AT_MS - 1_200_000,
    tokens_before=165_900,
    tokens_before_source="reported",
    post_tokens=9_800,
    tokens_after=21_400,
    tokens_saved=144_500,
    duration_ms=31_000,
    duration_source="paired",
    messages_since_last=102,
    complete=True,
    metadata={"trigger": "auto", "pre_tokens": 165_900},
    summary="The shop's cart is being moved to the new API; tests for checkout are still red.",
)
_AGGREGATES: Final = Aggregates(
    automatic=TriggerAggregates(
        succeeded=2,
        failed=1,
        duration_ms=Distribution(count=2, sum=58_000, min=27_000, max=31_000, buckets={"31500": 2}),
    ),
    pre_tokens=Distribution(count=2, sum=331_000, min=165_100, max=165_900, buckets={"200000": 2}),
    measured=2,
    measured_before_tokens=331_000,
    saved_tokens=287_000,
    messages=201,
)
_WARNING: Final[dict[str, Any]] = {
    "specversion": "1.0",
    "id": "2203d4e2-d772-51f8-bf5b-1f01ace3c70e",
    "source": f"/sessions/{SESSION}",
    "type": "contextgauge.context_warning.v1",
    "subject": MAIN_CHAIN,
    "time": "2026-11-01T11:59:51.000Z",
    "datacontenttype": "application/json",
    "sequence": "55",
    "rules": "1-3a0772ff",
    "data": {
        "session_id": SESSION,
        "chain": MAIN_CHAIN,
        "model": "claude-sonnet-5",
        "task_id": None,
        "subagent_type": None,
        "threshold_percent": 80,
        "thresholds_crossed": [80],
        "context_used_percent": 82.15,
        "context_remaining_percent": 17.85,
        "used_tokens": 164_300,
        "input_tokens": 300,
        "cache_tokens": 164_000,
        "context_window": 200_000,
        "window_source": "runtime",
    },
}
_HEAD: Final[dict[str, Any]] = {
    "generation": 3,
    "as_of": {
        "at_ms": _AT_MS + 400,
        "stale": False,
        "silent_ms": 310,
        "lag_records": 0,
        "lag_ms": 0,
        "feed": _POSITION,
    },
}


def _plain(document: object) -> Any:  # noqa: ANN401 -- JSON
    return codec.loads(codec.dumps(document))


_SESSION: Final = _plain(_VIEW) | {"status": served(status_of(_VIEW), _AT_MS + 400)}

BY_OPERATION: Final[dict[str, Any]] = {
    "listSessions": {
        **_HEAD,
        "thresholds": THRESHOLDS._asdict(),
        "sessions": [_SESSION],
        "next": None,
        "total": 1,
    },
    "readSession": {**_HEAD, "session": _SESSION, "thresholds": THRESHOLDS._asdict()},
    "listEvents": {**_HEAD, "records": [_WARNING], "next": None},
    "listReadings": {**_HEAD, "records": [], "next": None},
    "listCompactions": {**_HEAD, "compactions": [_plain(_COMPACTION)]},
    "readStats": {
        **_HEAD,
        "total": shown(_AGGREGATES),
        "by": {"2026-11-01T11": shown(_AGGREGATES)},
    },
    "readProjection": {
        **_HEAD,
        "partitions": [
            {
                "partition": 0,
                "position": 120,
                "end": 120,
                "silent_ms": 310,
                "lag_records": 0,
                "lag_ms": 0,
            }
        ],
    },
    "listAgentEvents": [
        {
            "id": "2203d4e2-d772-51f8-bf5b-1f01ace3c70e",
            "type": "context_warning",
            "timestamp": _AT_MS - 9_000,
            "taskId": None,
            "data": {
                "contextUsedPercent": 82,
                "contextRemainingPercent": 18,
                "inputTokens": 300,
                "cacheTokens": 164_000,
                "contextWindow": 200_000,
            },
        }
    ],
    "listen": encoded(
        b"record",
        _POSITION,
        codec.dumps(
            LiveEntry(
                record_id="2203d4e2-d772-51f8-bf5b-1f01ace3c70e",
                kind="context_warning",
                session_id=SESSION,
                chain=MAIN_CHAIN,
                time_ms=_AT_MS - 9_000,
                sequence=55,
                state="measured",
                used_tokens=164_300,
                used_percent=82.15,
            )
        ),
    ).decode(),
}
"""An answer of each route, by its operation."""
