"""Claude Code: steered from inside the agent's process, by `contextgauge.steer`."""

from streams.ports.control import DriverResult

_STARTED = DriverResult("started", "the agent's process sends /compact when it is idle")


class ClaudeCodeDriver:
    """Sessions of the Claude Agent SDK.

    Claude Code has no port to ask. The agent's process reads the open commands of its session from
    the API, and sends `/compact` itself; the boundary that it publishes tells when it is done.
    """

    name = "claude-code"

    async def compact(self, session_id: str, instructions: str | None) -> DriverResult:
        """Leave the command to the agent's process, which finds it in the session's view."""
        del session_id, instructions
        return _STARTED

    async def stop(self) -> None:
        """Nothing is open."""
