"""What records decide: whether a session is compacted, and whether a compaction lost rules."""
