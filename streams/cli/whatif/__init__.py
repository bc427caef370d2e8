"""`contextgauge what-if`: recorded sessions under other triggers, windows and strategies.

The comparison is `streams/core/whatif`; `streams/flow/whatif` runs the engine's strategies.
"""
