"""What code carries across a compaction, without a model: the user's words and the files.

`pins` and `file_ledger` read it from the messages that leave; `compaction_text` writes it behind
the summary, `audit` checks that it is there, `unmarked_text` reads such a text back where a
provider's format lost the marker. `restore` adds texts that the caller gives.
"""
