"""What figures are, as pure functions: no clock, no randomness, no IO, no JSON.

`derivation` turns messages into records, `projection` folds records into views, `alerts` and
`control` decide on records, `conversation` folds what a model sees. For analysts: `costs.py` prices
calls, `whatif` replays sessions under other settings, `autopsy` compares what was there before a
boundary with what is there after it. `session_status.py` is the one judgement of a view at a
moment, which every reader draws. Time is passed in; ids follow from what
caused them. So a run over the same log gives the same result on every machine.
"""
