"""Checks of the derive and project workers: do they run, where are they, what waits for them."""

from collections.abc import Iterator

from streams.flow.doctor.checks.progress import lag, members, positions
from streams.flow.doctor.facts import Expected, Facts, known
from streams.flow.doctor.findings import Result, check, error, ok, warning
from streams.flow.doctor.words import listed
from streams.ports.inspection import Group

_PUBLISH_AGAIN = (
    "Set another CONTEXTGAUGE_TOPIC_PREFIX, run `contextgauge topics create`, and publish again to "
    "get complete records"
)
_REBUILDS = "A project worker rebuilds the views from what is in the log: see project.workers"
_BEFORE_READ = "before they were read"


@check("derive.workers")
def derive_workers(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Without a derive worker, messages do not become records."""
    kafka = facts.kafka
    return members("derive", "message", expected.derive_group, kafka.derive_group, kafka.derive)


@check("derive.position")
def derive_position(facts: Facts, _: Expected) -> Iterator[Result]:
    """A position that is no longer in the log stops the worker: deleted messages are lost."""
    return positions(
        facts.kafka.derive,
        error(_BEFORE_READ, _PUBLISH_AGAIN),
        error("the topic was recreated", _PUBLISH_AGAIN),
    )


@check("derive.writers")
def derive_writers(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Workers of two groups over the same topics take each partition from each other."""
    progress, own = known(facts.kafka.derive), facts.kafka.derive_group
    others = known(facts.kafka.other_groups)
    groups = sorted({name for part in progress.values() for name in part.groups})
    mixed = [number for number, part in progress.items() if len(part.groups) > 1]
    alive = [name for name, group in others.items() if isinstance(group, Group) and group.hosts]
    figures = {"writers": ", ".join(groups)}
    if alive and isinstance(own, Group) and own.hosts:
        yield error(
            f"workers of {listed(alive)} derive the same topics as those of "
            f"{expected.derive_group}",
            "Stop the workers of all groups but one, or give a second deployment another "
            "CONTEXTGAUGE_TOPIC_PREFIX",
            figures=figures,
        )
    elif mixed:
        yield warning(
            f"{listed(groups)} have derived in turns, partitions {listed(mixed)}",
            "If the group was not renamed on purpose, stop the workers of all groups but one",
            figures=figures,
        )
    yield ok("the newest positions are of one group", figures)


@check("derive.lag")
def derive_lag(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Waiting messages are not in any figure yet."""
    remedy = (
        "Wait if derive.workers is ok and this number falls; otherwise start more "
        "`contextgauge derive`,"
    )
    return lag("message", expected.messages.name, facts, facts.kafka.derive, remedy)


@check("project.workers")
def project_workers(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Without a project worker, records do not reach the views."""
    group = facts.kafka.project_group
    return members("project", "record", expected.project_group, group, facts.project)


@check("project.position")
def project_position(facts: Facts, _: Expected) -> Iterator[Result]:
    """Views whose position is not in the log cannot continue and are rebuilt."""
    return positions(
        facts.project,
        error(_BEFORE_READ, _REBUILDS),
        error("the topic was recreated, or lost its last records", _REBUILDS),
    )


@check("project.lag")
def project_lag(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Waiting records are not in the views yet."""
    remedy = (
        "Wait if project.workers is ok and this number falls; otherwise start more "
        "`contextgauge project`,"
    )
    return lag("record", expected.events.name, facts, facts.project, remedy)


CHECKS = (
    derive_workers,
    derive_position,
    derive_writers,
    derive_lag,
    project_workers,
    project_position,
    project_lag,
)
