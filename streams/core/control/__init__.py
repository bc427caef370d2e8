"""The control plane's decisions: thresholds, and when a session is to be compacted.

`thresholds.py` says which rule is for a session, `trigger.py` turns records into decisions and
requests, `log.py` folds a session's commands into what is to be done next. All state is in
`context.commands`; ids follow from what caused an entry, so an entry that is written again adds
nothing.
"""
