"""A conversation outside memory: exactly as JSON, and its archived messages found again.

What is loaded equals what was stored, with ids and sources (`stored_history.py`,
`stored_messages.py`). `recall.py` answers from the archive, bounded and fenced as data.
"""
