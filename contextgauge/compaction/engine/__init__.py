"""When a conversation is compacted, and how: all of it pure.

`request_size` measures the next request, `trigger` decides, `next_compaction` climbs the `ladder`:
first rungs that shorten in place (`tool_results`, `tool_arguments`), then a summary of what
`selection` lets go (`extractive` where no model writes it). A `plan` holds the result
until the caller applies it; its `compaction_receipt` says what was done.
"""
