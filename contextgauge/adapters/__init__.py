"""Agent frameworks that call the engine before each call of their model: one module for each.

Each is imported by itself and needs its framework, the engine needs none of them. What a framework
stores of a conversation stays whole; what it sends is compacted (docs/COMPACTION.md).
"""
