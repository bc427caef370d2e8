"""What a webhook is sent: the same bytes for an alert, however often it is tried."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Final

from schemas.records import MAIN_CHAIN
from streams import codec
from streams.core.alerts.alert import NAMESPACE, Alert
from streams.core.alerts.rules import AlertPlan, Format
from streams.core.alerts.words import sentence
from streams.ports import Clock, Webhook, WebhookResult

ALERT_TYPE: Final = "contextgauge.alert.v1"

_SLACK_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def body_of(alert: Alert, form: Format, link: str | None) -> bytes:
    """Return the body for a target's format; `link` is where the page shows the session."""
    return (_slack if form == "slack" else _plain)(alert, link)


def body_of_test(target: str, form: Format, alert_id: str, now_ms: int, page: str | None) -> bytes:
    """Return the body of a target's test, in the shape of an alert of no session."""
    text = f"this is a test: alerts of contextgauge reach {target}"
    if form == "slack":
        return _slack_of("test", text, f"test · alert {alert_id}", page, "open the page")
    return codec.dumps(
        {
            "type": ALERT_TYPE,
            "id": alert_id,
            "rule": "test",
            "kind": "test",
            "text": text,
            "time": codec.rfc3339(now_ms),
            "session_id": "test",
            "chain": MAIN_CHAIN,
            "model": None,
            "agent_id": None,
            "folder": None,
            "link": page,
            "record": {"id": alert_id, "type": "test"},
            "facts": {},
        }
    )


def _plain(alert: Alert, link: str | None) -> bytes:
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
            "agent_id": alert.who.agent_id,
            "folder": alert.who.folder,
            "link": link,
            "record": {"id": alert.record_id, "type": alert.record_type},
            "facts": dict(alert.facts),
        }
    )


def _slack(alert: Alert, link: str | None) -> bytes:
    context = f"{alert.kind} · session `{alert.session_id.translate(_SLACK_ESCAPES)[:200]}`"
    context = f"{context} · alert {alert.id}"
    return _slack_of(alert.rule.name, sentence(alert), context, link, "open the session")


def _slack_of(name: str, sentence: str, context: str, link: str | None, link_text: str) -> bytes:
    title, text = name.translate(_SLACK_ESCAPES), sentence.translate(_SLACK_ESCAPES)
    to_page = ""
    if link is not None:
        # As Slack's links have it: a bar would end the address.
        to_page = f"\n<{link.translate(_SLACK_ESCAPES).replace('|', '%7C')}|{link_text}>"
    return codec.dumps(
        {
            "text": f"{title}: {text}",  # for notifications, which show no blocks
            "blocks": [
                {
                    "type": "section",
                    "text": {"type": "mrkdwn", "text": f"*{title}*\n{text}{to_page}"},
                },
                {"type": "context", "elements": [{"type": "mrkdwn", "text": context}]},
            ],
        }
    )


async def try_targets(
    plan: AlertPlan, webhooks: Mapping[str, Webhook], clock: Clock
) -> dict[str, WebhookResult]:
    """Call every target once, all at a time, and return what came of it, by the target's name.

    Each is sent an id of its own, so that no receiver takes it for one that it has had.
    """
    page = None if plan.page is None else f"{plan.page}/"
    calls = []
    for target in plan.targets:
        now_ms = clock.now_ms()
        alert_id = str(uuid.uuid5(NAMESPACE, f"test {now_ms} {target.name}"))
        body = body_of_test(target.name, target.format, alert_id, now_ms, page)
        calls.append(webhooks[target.name].call(alert_id, body))
    results = await asyncio.gather(*calls)
    return {target.name: result for target, result in zip(plan.targets, results, strict=True)}
