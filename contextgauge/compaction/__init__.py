"""Compaction for any agent loop, without Kafka: `docs/COMPACTION.md` explains it.

Summarisers that ask a model are in `contextgauge.compaction.summarisers`, the memory tool in
`contextgauge.compaction.memory`, texts for a terminal in `contextgauge.compaction.displays`.
"""
