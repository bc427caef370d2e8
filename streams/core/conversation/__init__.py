"""Conversations: what the model of a session sees, folded from `agent.messages`."""
