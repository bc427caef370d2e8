"""`contextgauge forget`: deletes the text that is kept of a session."""

from typing import Annotated

import typer

from schemas.commands import TextDeleted
from streams import wiring
from streams.cli.control_plane.connection import ControlPlane, requested_by, with_control
from streams.cli.screen.figures import count, safe
from streams.cli.screen.options import SessionId
from streams.cli.screen.output import say
from streams.serve.views.sessions import SessionLookupError


def forget(
    session: SessionId,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete the text that the control plane keeps of a session.

    Deleted is what was published until now, and a rebuild does not bring it back. Figures,
    summaries and lost turns of the records stay, and the topic agent.messages has the messages
    until its retention is over.
    """

    async def find(plane: ControlPlane) -> str:
        try:
            return (await plane.find(session)).session_id
        except SessionLookupError:
            # Text may be there without a view: by its whole id it can be deleted all the same.
            conversations = wiring.redis_conversations(plane.settings)
            async with wiring.started(conversations):
                if await conversations.conversation(session) is None:
                    raise
            return session

    session_id = with_control(find)
    if not yes:
        typer.confirm(f"Delete the text of session {safe(session_id)}?", abort=True, err=True)

    async def send(plane: ControlPlane) -> None:
        await plane.send(TextDeleted(session_id=session_id, requested_by=requested_by()))
        days = plane.settings.messages_retention_days
        duration = "for ever" if days < 0 else f"for {count(days, 'day')}"
        say(f"Requested: the text of {safe(session_id)} up to now is deleted.")
        say(f"agent.messages keeps its messages {duration} from their publication.")
        say("It is carried out by `contextgauge conversations`: if none runs, once it does.")

    with_control(send)
