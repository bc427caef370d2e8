"""The worker that stores conversations: lines of chosen sessions, appended with their position.

It reads `context.commands` to its end before any message, so that what was deleted on request does
not come back. A message costs its own size: what it means is worked out by the reader
(`streams/core/conversation`). What exceeds a session's bounds is folded once (`trimming.py`).
"""
