"""Alerts at the outside: the file of rules, calls of webhooks, and the memory of what was sent.

A call is signed and has the alert's id at every try. The memory (Redis, or SQLite on one machine)
is what keeps a record that is read again from sending its alert again.
"""
