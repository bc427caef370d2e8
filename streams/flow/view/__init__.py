"""The local view: transcripts derived and folded into one file, by one thread of the server.

The loop of `reading.py` asks which files changed, derives what they gained, and stores views, state
and file positions in one transaction. What is unread at the start is derived by other processes as
whole files (`other_process.py`), whose results are added to the fold (`local_fold.py`).
`unchanged.py` says which sessions are as deriving their files again would leave them.
"""
