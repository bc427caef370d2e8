"""`contextgauge statusline`: one line at each prompt of Claude Code, so start-up time counts.

`streams/__main__.py` runs it without the command line's packages. No pydantic, no rich, no Redis
client is imported where a transcript is read.
"""
