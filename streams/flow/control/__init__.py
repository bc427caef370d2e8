"""The control plane's first agent: records in, alerts out, by the rules that people set."""
