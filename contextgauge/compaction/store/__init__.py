"""A conversation outside memory: exactly as JSON, and its archived messages found again."""
