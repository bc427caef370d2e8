"""Compaction for any agent loop, without Kafka: `docs/COMPACTION.md` explains it."""
