"""What records decide: whether a session is compacted, and whether turns of the user were lost.

`compaction_decisions.py` writes entries of `context.commands`, `rule_guard.py` messages of
`agent.messages`. Neither has a store: what was decided before is read back from the log.
"""
