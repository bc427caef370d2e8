"""What compactions lost, and what followed: `contextgauge autopsy`.

`items.py` says what stood before a boundary, `remains.py` how much of it stands after it, and
`consequences.py` compares what the agent did then with what it did without a boundary
(`intervals.py`). `autopsy.py` makes a session's findings of them.
"""
