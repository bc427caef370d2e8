"""Views of which a test changes what it is about, with `dataclasses.replace`."""

from schemas.views import AttemptView, CompactionBrief, CompactionsView, Identity, SessionView

SESSION = SessionView(
    session_id="s",
    position=1,
    sequence=1,
    first_ms=None,
    last_ms=None,
    identity=Identity(),
    chains={},
    attempt=None,
    compactions=CompactionsView(),
)
ATTEMPT = AttemptView(
    attempt_id="a",
    chain="main",
    trigger_reason=None,
    started_ms=None,
    last_heartbeat_ms=None,
    elapsed_ms=None,
    used_tokens=None,
    used_percent=None,
)
BRIEF = CompactionBrief(
    record_id="r",
    chain="main",
    number=None,
    outcome="succeeded",
    trigger="auto",
    error=None,
    time_ms=None,
    tokens_before=None,
    tokens_after=None,
    tokens_saved=None,
    duration_ms=None,
    duration_source=None,
    messages_since_last=None,
)
