"""A memory forgets what was set longest ago."""

from streams.core.bounded_memory import BoundedMemory


def test_what_was_set_longest_ago_is_forgotten_first() -> None:
    memory = BoundedMemory[str, int](2)
    for value, key in enumerate("abac"):
        memory[key] = value
    assert list(memory.items()) == [("a", 2), ("c", 3)]
