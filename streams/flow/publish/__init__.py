"""Publishing files: lines to `agent.messages`, keyed by session, in the order of each file.

A position in a file moves only when the broker has acknowledged everything before it: a crash sends
some lines again, which the derivation ignores, and omits none.
"""
