"""From an agent's objects to the broker: taken at once, sent in the background.

`outgoing.py` makes the bytes of a message and finds its session; `privacy.py` and `shorten.py`
change them only where they must. The bounded `queue.py` is emptied by one task (`sender.py`), a
batch at a time, each acknowledged before the next. Nothing here raises for what a message contains.
"""
