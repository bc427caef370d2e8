"""Finding and reading sessions, for the API, the terminal and commands.

A session's partition follows from its id. A list asks every partition for its best entries and
merges them, or filters the index that the live feed keeps up to date (`session_index.py`).
"""
