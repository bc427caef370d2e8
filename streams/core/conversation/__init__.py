"""Conversations: what the model of a session sees, folded from `agent.messages`.

`fold.py` reads lines of any runtime by `contextgauge.compaction` and adds what the log knows:
offsets, what is missing, and whether a compaction of the service took effect. `opt_in.py` says
whose text may be stored at all.
"""
