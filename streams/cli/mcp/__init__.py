"""`contextgauge mcp`: tools by which an agent asks for its own context, over stdio or HTTP.

The same tools answer from this machine's transcripts or from a service (`agent_sessions.py` is what
both give).
"""
