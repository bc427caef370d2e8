"""Alerts: rules that people set, applied to the records in their order.

`rules` is what a rule is, `check` reads it from a file's content, `watch` applies it, and
`words` puts an alert into a sentence. All of it is pure: the time is passed in. An alert's id
follows from rule and record, so that records which are read again raise the same alerts.
"""
