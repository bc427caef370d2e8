"""Compacting recorded conversations again, by the engine."""
