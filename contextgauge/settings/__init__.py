"""The settings that a publisher needs, by subject; `streams/settings` adds those of the pipeline.

Environment variables that begin with `CONTEXTGAUGE_` (`loading.py`). A secret may come from a file
(`secrets.py`). Where no address is set, that of a running local stack counts (`local_stack.py`).
"""
