"""What other settings would have made of recorded sessions.

`turns` reads a chain's responses and compactions from its records. `triggers` says where it was
compacted by itself, and which of its compactions follow from that. `replay` grows its context by
the recorded differences under another trigger, with sizes after a compaction of `compaction_facts`
or of the engine. `usage` divides each request into what the cache had and what it had not; `costs`
sums tokens, money and time; `break_even` says when a compaction has paid for itself. `comparison`
does all of it for a chain and the `new_settings`, `models` sums chains, and `advice` says which
setting to use.
"""
