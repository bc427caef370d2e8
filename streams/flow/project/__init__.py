"""The project worker: records to views in Redis, each batch with its position.

`worker.py` is a member of a group; `live.py` keeps a partition of the active generation up to date,
`background.py` builds the next one from the beginning of the log and deletes old ones. Both poll
and write by `polling.py`: fold a batch in memory (`fold.py`), then one write that succeeds only
where the stored position is the one that the batch was read from. A mismatch drops the documents in
memory and reads on from the stored position; documents that do not match their position, or another
log, start the next generation. Readers never wait: they use the former generation until the swap.
"""
