"""Checks of the compaction service: conversations, commands, and whether they have an effect."""

from collections.abc import Iterator

from contextgauge.units import MINUTE_MS
from streams.flow.doctor.checks.progress import lag, place, positions
from streams.flow.doctor.facts import Expected, Facts, known
from streams.flow.doctor.findings import Result, check, error, note, ok, warning
from streams.flow.doctor.words import age, counted, listed

_LATE_COMMAND_MS = 30 * MINUTE_MS
"""Twice what a command may take by default."""


@check("conversations.position")
def conversations_position(facts: Facts, _: Expected) -> Iterator[Result]:
    """Only conversations of the present topic are compacted, and shown as they are."""
    conversations = known(facts.conversations)
    start = "Start `contextgauge conversations`: it reads "
    current = dict(conversations.progress)
    for partition in conversations.former:
        yield error(
            "what is kept is of a topic that was deleted and created again",
            f"{start}the present topic from its beginning",
            **place(partition, current.pop(partition)),
        )
    yield from positions(
        current,
        warning(
            "before they were kept",
            f"{start}what is left, in which sessions that began before are incomplete",
        ),
        error("the topic lost its last messages", f"{start}the topic from its beginning"),
    )


@check("conversations.lag")
def conversations_lag(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A command waits for its conversation, and fails after a minute."""
    remedy = (
        "Start `contextgauge conversations`, or wait if it runs and this number falls; more of "
        "them help"
    )
    progress = known(facts.conversations).progress
    return lag("message", expected.messages.name, facts, progress, remedy)


@check("control.files")
def files(facts: Facts, _: Expected) -> Iterator[Result]:
    """Of workers with different rules, those with the leader's do all of the work."""
    groups = known(facts.kafka.control_groups)
    text = "no two workers of a group have different files"
    for name, group in groups.items():
        by_digest = known(group).configurations
        figures = {"configurations": len(by_digest)}
        if len(by_digest) > 1:
            hosts = [f"{digest} on {listed(hosts)}" for digest, hosts in sorted(by_digest.items())]
            yield error(
                f"the workers in the group {name} have different files: {listed(hosts)}",
                "Give all of them the same file, or stop those with the former one",
                figures=figures,
            )
        yield ok(text, figures)
    if not groups:
        yield ok(text)


@check("control.commands")
def commands(facts: Facts, _: Expected) -> Iterator[Result]:
    """A command without an outcome was not carried out."""
    open_commands = known(facts.kafka.commands)
    since_ms = open_commands.oldest_ms
    oldest_ms = 0 if since_ms is None else max(facts.now_ms - since_ms, 0)
    figures = {"open": open_commands.open, "oldest_ms": oldest_ms}
    text = "every command has its outcome"
    if open_commands.open:
        text = f"{counted(open_commands.open, 'command')} without an outcome"
        text += f", the oldest for {age(oldest_ms)}"
    if oldest_ms >= _LATE_COMMAND_MS:
        yield warning(
            text,
            "Start `contextgauge control` with CONTEXTGAUGE_COMPACTION_FILE; if it runs, see its "
            "logs",
            figures=figures,
        )
    yield ok(text, figures)


@check("control.effects")
def effects(facts: Facts, _: Expected) -> Iterator[Result]:
    """The service compacts only sessions whose agent asks for its context."""
    open_commands = known(facts.kafka.commands)
    undone, without_driver = open_commands.undone, open_commands.without_driver
    figures = {"undone": undone, "without_driver": without_driver}
    if undone:
        yield warning(
            f"compactions of {counted(undone, 'session')} had no effect, and are undone in the "
            "conversation",
            "See `contextgauge why SESSION`, and have the agent ask for its context "
            "(CONTROL.md); else take it out of CONTEXTGAUGE_COMPACTION_FILE",
            figures=figures,
        )
    elif without_driver:
        yield note(
            f"nothing compacts {counted(without_driver, 'session')} above its threshold: the "
            "runtime compacts itself, and no driver is named",
            "Name its driver in CONTEXTGAUGE_COMPACTION_FILE (DRIVERS.md), or have the agent "
            "ask for its context",
            figures=figures,
        )
    yield ok("no compaction without effect", figures)


CHECKS = (conversations_position, conversations_lag, files, commands, effects)
