"""The control plane's decisions: thresholds, and when a session is to be compacted."""
