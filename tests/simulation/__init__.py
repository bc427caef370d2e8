"""The compaction service in simulated time: many short runs with faults, each by its seed."""
