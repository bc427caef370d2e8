"""Compacting recorded conversations again, by the engine, as a what-if replay asks for.

The messages of a transcript are given to the engine as they came, with the measured size of each
request that is compacted, and it plans as it would have then.
"""
