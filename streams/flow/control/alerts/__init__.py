"""Alerts: records in, by the rules that people set, and webhooks out.

`alert_partition.py` applies the rules, `webhook_delivery.py` has a queue for each target, so that a
dead one delays no other, and `sent_alerts.py` remembers what was handled. A late alert would be
worse than a duplicate: where the memory is away, nothing waits for it.
"""
