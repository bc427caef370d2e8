"""`contextgauge publish`: files and pipes to `agent.messages` (the loop is in `flow/publish`)."""
