"""What records decide: whether a session is compacted, and whether turns of the user were lost."""
