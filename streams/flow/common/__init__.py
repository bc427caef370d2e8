"""What the workers share: membership of a group, retries, lag, and topics that are replaced.

A service that is away is retried without end (`retry.py`); what no retry cures stops the worker
with an error that has the remedy.
"""
