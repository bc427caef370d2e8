"""One test alert for each target: whether it gets there is known before anything has happened."""

import asyncio
import uuid
from collections.abc import Mapping

from streams.core.alerts.rules import AlertPlan
from streams.core.alerts.watch import NAMESPACE
from streams.flow.control.bodies import body_of_test
from streams.ports import Answer, Clock, Webhook


async def try_targets(
    plan: AlertPlan, webhooks: Mapping[str, Webhook], clock: Clock
) -> dict[str, Answer]:
    """Call every target once, all at a time, and return what came of it, by the target's name.

    Each is sent an id of its own, so that no receiver takes it for one that it has had.
    """

    async def call(name: str, body: bytes, alert_id: str) -> tuple[str, Answer]:
        return name, await webhooks[name].call(alert_id, body)

    page = None if plan.page is None else f"{plan.page}/"
    calls = []
    for target in plan.targets:
        now_ms = clock.now_ms()
        alert_id = str(uuid.uuid5(NAMESPACE, f"test {now_ms} {target.name}"))
        body = body_of_test(target.name, target.format, alert_id, now_ms, page)
        calls.append(call(target.name, body, alert_id))
    return dict(await asyncio.gather(*calls))
