"""What agents' frameworks call while they run: each hook publishes sizes and compactions.

One module for each framework, which only that module imports. A hook needs a publisher, and never
raises because of what it publishes.
"""
