"""What a webhook is sent: the same bytes for an alert, however often it is tried."""

from typing import Final

from streams.core.alerts.rules import Format
from streams.core.alerts.watch import Alert
from streams.core.alerts.words import sentence
from streams.edge import codec

ALERT_TYPE: Final = "contextgauge.alert.v1"

_SLACK_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def body_of(alert: Alert, form: Format) -> bytes:
    """Return the body for a target's format."""
    return (_slack if form == "slack" else _plain)(alert)


def _plain(alert: Alert) -> bytes:
    return codec.dumps(
        {
            "type": ALERT_TYPE,
            "id": alert.id,
            "rule": alert.rule.name,
            "kind": alert.kind,
            "text": sentence(alert),
            "time": None if alert.time_ms is None else codec.rfc3339(alert.time_ms),
            "session_id": alert.session_id,
            "chain": alert.chain,
            "model": alert.model,
            "agent_id": alert.agent_id,
            "record": {"id": alert.record_id, "type": alert.record_type},
            "facts": dict(alert.facts),
        }
    )


def _slack(alert: Alert) -> bytes:
    text = sentence(alert).translate(_SLACK_ESCAPES)
    title = alert.rule.name.translate(_SLACK_ESCAPES)
    told = f"{alert.kind} · session `{alert.session_id.translate(_SLACK_ESCAPES)[:200]}`"
    return codec.dumps(
        {
            "text": f"{title}: {text}",  # for notifications, which show no blocks
            "blocks": [
                {"type": "section", "text": {"type": "mrkdwn", "text": f"*{title}*\n{text}"}},
                {
                    "type": "context",
                    "elements": [{"type": "mrkdwn", "text": f"{told} · alert {alert.id}"}],
                },
            ],
        }
    )
