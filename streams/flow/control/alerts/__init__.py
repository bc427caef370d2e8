"""Alerts: records in, by the rules that people set, and webhooks out."""
