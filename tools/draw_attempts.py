"""Generate `docs/ATTEMPTS.md`, the state machine of compaction attempts, from its table.

    python -m tools.draw_attempts

A test fails if the file does not match the table.
"""

from pathlib import Path

from streams.core.derivation.transitions import TABLE, AttemptEvent, Effect, Phase

TARGET = Path(__file__).parent.parent / "docs" / "ATTEMPTS.md"

_TEXT = """\
# Compaction attempts

A main chain has at most one attempt. It begins with `status: compacting` and ends with a boundary
or a failure; if neither arrives, the session's next messages close it as lost. The table is in
`streams/core/derivation/transitions.py`: change it there, then run `python -m tools.draw_attempts`.

```mermaid
{diagram}
```

After the slash are the emitted records, with the outcome of `compaction_failed`. Events without
effect have no arrow.

- **{success}** is `compact_result: "success"`, **{failed}** `"failed"`; **{cleared}** is a null
  status without either, as older runtimes send.
- **{response}** is a response of the main chain that has not been seen before.
- **{gap}** is the time between the message and the session's last message with a time; it is
  evaluated before the message itself.
- **{boundary}** emits `compact_boundary`, with the id of the attempt that it ends, or null in Idle.
"""

_TITLES = {
    Phase.IDLE: "Idle",
    Phase.OPEN: "Open",
    Phase.SUCCEEDED: "Succeeded",
    Phase.ENDED: "Ended",
}
_EFFECTS = {
    Effect.START: "compaction_start",
    Effect.HEARTBEAT: "compaction_progress",
    Effect.FAILED: "compaction_failed (failed)",
    Effect.UNKNOWN: "compaction_failed (unknown)",
    Effect.LOST: "compaction_failed (unknown, no duration)",
}


def diagram() -> str:
    """Return the table as a Mermaid state diagram; events that share an arrow share its label."""
    labels: dict[tuple[Phase, Phase, tuple[str, ...]], list[AttemptEvent]] = {}
    for phase, moves in TABLE.items():
        for event, move in moves.items():
            emitted = tuple(_emitted(event, move.effects))
            if emitted or move.to is not phase:
                labels.setdefault((phase, move.to, emitted), []).append(event)
    lines = ["stateDiagram-v2", f"    [*] --> {_TITLES[Phase.IDLE]}"]
    for (phase, to, emitted), events in labels.items():
        names = " or ".join(event.value for event in events)
        slash = f" / {', '.join(emitted)}" if emitted else ""
        lines.append(f"    {_TITLES[phase]} --> {_TITLES[to]}: {names}{slash}")
    return "\n".join(lines)


def document() -> str:
    """Return the whole text of `docs/ATTEMPTS.md`."""
    return _TEXT.format(
        diagram=diagram(),
        success=AttemptEvent.SUCCESS.value,
        failed=AttemptEvent.FAILED.value,
        cleared=AttemptEvent.CLEARED.value,
        response=AttemptEvent.RESPONSE.value,
        gap=AttemptEvent.GAP.value,
        boundary=AttemptEvent.BOUNDARY.value,
    )


def _emitted(event: AttemptEvent, effects: tuple[Effect, ...]) -> list[str]:
    """Return the records that a move emits; a boundary's own is not in the table (R19)."""
    own = ["compact_boundary"] if event is AttemptEvent.BOUNDARY else []
    return own + [_EFFECTS[effect] for effect in effects]


def main() -> None:
    """Write the document."""
    TARGET.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
