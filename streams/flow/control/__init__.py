"""The control plane: what follows from records (alerts, decisions), and carrying out commands.

`alerts`, `decisions` and `commands` are handlers of one loop (`control_loop.py`), each role with a
consumer group of its own. A record is acknowledged once all that it gave rise to is done or in the
log, and every record before it: a worker that dies has lost nothing, and ids that follow from
records make what is done twice one.
"""
