"""The derive worker: messages to records, exactly once.

`worker.py` is a member of a group and runs one task (`partition_task.py`) for each partition that
it is assigned. A task starts the partition's producer, which fences the former owner; restores the
state from `context.state` (`restoring.py`); verifies that the stored position belongs to these
logs; and then repeats: poll, derive (`deriver.py`), and commit records, dead letters, changed state
and the position in one transaction. The next batch is derived while the last one is committed. Any
failure ends the task: its state is dropped, and taking the partition over again settles what became
of the transaction. `partition_state.py` is what a partition's sessions are between batches,
`stored_sessions.py` their format, and where they rest while nothing comes for them.
"""
