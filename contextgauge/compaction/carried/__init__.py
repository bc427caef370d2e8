"""What code carries across a compaction, without a model: what was written, and the files.

`digest` and `file_ledger` read it from the messages that leave, `digest_room` divides the room;
`compaction_text` writes it behind the summary and reads it back, `audit` checks that it is there,
`unmarked_text` takes it from a provider's format, which lost the marker. `restore` adds texts that
the caller gives.
"""
