"""`contextgauge why`: what the control plane decided about a session, and what became of it."""

from contextgauge.documents import document
from streams.cli.control_plane.connection import CLOCK, ControlPlane, with_control
from streams.cli.screen.commands import thresholds_text, why_table
from streams.cli.screen.options import AsJson, SessionId
from streams.cli.screen.output import out, say, write_json


def why(session: SessionId, *, as_json: AsJson = False) -> None:
    """Show why a session was compacted, or was not.

    Lists decisions and commands, the newest first. A decision is noted once for its reason, window
    and epoch. The size is what was used at that time, and from which on the session is compacted;
    of a compaction it is that of the whole request, before and after. `~` marks an estimate: what a
    compaction saved is measured by the next response (`contextgauge status`).
    """

    async def show(plane: ControlPlane) -> None:
        session_id = (await plane.find(session)).session_id
        view = await plane.view(session_id)
        if as_json:
            write_json(view)
            return
        if view.thresholds is not None:
            say(f"Thresholds: {thresholds_text(view.thresholds)}", to=out)
        if view.commands or view.decisions:
            out.print(why_table(view, CLOCK.now_ms()))
        else:
            # A request is known once it was read, so a view without one proves nothing.
            say(
                f"Nothing is known about {session_id}: no decision, and no request that a control "
                "worker has read."
            )
            say(
                "A session is compacted automatically once a rule of the service's file, or "
                f"`contextgauge thresholds`, says so: see {document('CONTROL.md')}."
            )
        await plane.warn_of_silence(
            session_id, "requests that none has read wait in the log, and are not shown"
        )

    with_control(show)
