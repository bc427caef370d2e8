"""Draws `docs/attempts.md`, the compaction attempt machine, from its table.

    python tools/draw_attempts.py

A test fails while the file differs from the table.
"""

from pathlib import Path

from streams.core.derivation.transitions import TABLE, AttemptEvent, Effect, Move, Phase

TARGET = Path(__file__).parent.parent / "docs" / "attempts.md"

_TEXT = """\
# How a compaction attempt goes

One main chain has at most one attempt. An attempt begins with `status: compacting` and ends with a
boundary, with a failure, or unseen; then the session's own next messages tell that it is lost.
A message moves the attempt by this table and by nothing else. It is drawn from the table in
`streams/core/derivation/transitions.py`: change it there, then run `python tools/draw_attempts.py`.

```mermaid
{diagram}
```

Behind the slash stands what an arrow emits; of `compaction_failed` the outcome too. Where nothing
changes there is no arrow. The same as a table, empty where nothing changes:

{table}

- **{success}** is `compact_result: "success"`, **{failed}** `"failed"`; **{cleared}** is a null
  status without either, as older runtimes send.
- **{response}** is a response of the main chain that was not seen before.
- **{gap}** lies between the message and the session's last one that had a time; it is looked at
  before the message itself.
- **{boundary}** names the attempt that it ends; in Idle it has none to name, and is told all the
  same.
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
        told = " or ".join(event.value for event in events)
        slash = f" / {', '.join(emitted)}" if emitted else ""
        lines.append(f"    {_TITLES[phase]} --> {_TITLES[to]}: {told}{slash}")
    return "\n".join(lines)


def table() -> str:
    """Return the table as Markdown, one row a phase."""
    header = "| |" + "".join(f" {event.value} |" for event in AttemptEvent)
    rule = "|---|" + "---|" * len(AttemptEvent)
    rows = [
        f"| **{_TITLES[phase]}** |"
        + "".join(f" {_cell(phase, event, TABLE[phase][event])} |" for event in AttemptEvent)
        for phase in Phase
    ]
    return "\n".join([header, rule, *rows])


def document() -> str:
    """Return the whole text of `docs/attempts.md`."""
    return _TEXT.format(
        diagram=diagram(),
        table=table(),
        success=AttemptEvent.SUCCESS.value,
        failed=AttemptEvent.FAILED.value,
        cleared=AttemptEvent.CLEARED.value,
        response=AttemptEvent.RESPONSE.value,
        gap=AttemptEvent.GAP.value,
        boundary=AttemptEvent.BOUNDARY.value,
    )


def _cell(phase: Phase, event: AttemptEvent, move: Move) -> str:
    emitted = ", ".join(_emitted(event, move.effects))
    arrow = f"→ {_TITLES[move.to]}" if move.to is not phase else ""
    return f"{emitted} {arrow}".strip()


def _emitted(event: AttemptEvent, effects: tuple[Effect, ...]) -> list[str]:
    """Return the records of a move; a boundary's own is no effect of the table (R19)."""
    own = ["compact_boundary"] if event is AttemptEvent.BOUNDARY else []
    return own + [_EFFECTS[effect] for effect in effects]


def main() -> None:
    """Write the document."""
    TARGET.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
