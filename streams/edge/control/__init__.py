"""The operator's file of the control plane, read: rules, summariser, and whose text is kept.

Every fault is reported with its line, all at once. Secrets are named there, and are elsewhere.
"""
