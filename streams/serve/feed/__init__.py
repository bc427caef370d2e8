"""The live feed: each partition is read from Redis once, into one ring for all listeners.

A listener is an index into the ring, so memory does not depend on how fast it is; one that falls
out of the ring is disconnected. The id of an event is the generation and the next offset of every
partition, which mean the same on every server: a listener continues anywhere, first from Redis,
then from the ring.
"""
