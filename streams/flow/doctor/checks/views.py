"""Checks of the views: are they whole, whose are they, and who writes them."""

from collections.abc import Iterator

from schemas.topics import HOUR_MS
from streams.flow.doctor.checks.progress import LATE_MS
from streams.flow.doctor.facts import Expected, Facts, UnknownFactError, known
from streams.flow.doctor.findings import Result, check, error, note, ok, warning
from streams.flow.doctor.words import age, counted, listed
from streams.ports.deployment import Deployment
from streams.ports.inspection import Failure, TopicFacts

_OVERDUE_MS = HOUR_MS
"""A build takes minutes for 10 000 sessions."""

_RIVALS = 3
"""A paused worker meets its successor once or twice; a second projector goes on."""


@check("views.generation")
def generation(facts: Facts, _: Expected) -> Iterator[Result]:
    """Readers see the active generation; a long build holds twice the memory."""
    views = known(facts.views)
    generations = views.generations
    active, building = generations.active, generations.next
    ready = sum(position is not None and position.caught_up for position in views.building.values())
    figures = {"active": active, "building": building, "ready": ready}
    if active is None and building is None:
        start = "Start a project worker: `contextgauge project`"
        yield note("there are no views yet", start, figures=figures)
        return
    state = "no generation is active"
    if active is not None:
        state = f"generation {active} is active, {counted(views.sessions, 'session')}"
    lost = [partition for partition, position in views.active.items() if position is None]
    if lost:
        yield error(
            f"{state}, but partition {listed(lost)} of it is gone: Redis lost keys",
            "A project worker rebuilds the views: see project.workers, redis.eviction and "
            "redis.persistence",
            figures=figures,
        )
    elif building:
        started = generations.build.partition("-")[0]
        age_ms = facts.now_ms - int(started) if started.isdigit() else 0
        text = (
            f"{state}; generation {building} has been building for {age(age_ms)}, {ready} of "
            f"{counted(len(views.building), 'partition')} ready"
        )
        remedy = (
            "`contextgauge rebuild --status` shows the progress; if there is none, see the project "
            "workers' logs"
        )
        report = warning if age_ms > _OVERDUE_MS or active is None else note
        yield report(text, remedy, figures=figures)
    yield ok(state, figures)


@check("views.format")
def view_format(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Views of another format or partition count cannot be read."""
    views, cluster = facts.views, facts.kafka.cluster
    if isinstance(views, Failure) and views.kind == "unsupported":
        remedy = "Run the version that wrote them, or set another CONTEXTGAUGE_KEY_PREFIX"
        yield error(views.text, remedy)
        return
    positions = known(views).active.values()
    counts = {position.partitions for position in positions if position is not None}
    if not counts:
        raise UnknownFactError("there are no views yet")
    name = expected.events.name
    topic = None if isinstance(cluster, Failure) else cluster.topics.get(name)
    in_log = len(topic.partitions) if isinstance(topic, TopicFacts) else min(counts)
    if counts != {in_log}:
        yield error(
            f"the views have {listed(sorted(counts))} partitions, {name} has {in_log}",
            "Set another CONTEXTGAUGE_KEY_PREFIX, or the CONTEXTGAUGE_TOPIC_PREFIX that the views "
            "were built from",
        )
    yield ok(f"{counted(min(counts), 'partition')}, in a format of this version")


@check("views.deployment")
def deployment(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Two deployments on one key prefix would build the views from each other's topics."""
    noted = known(known(facts.store).deployment)
    own = Deployment(known(facts.kafka.cluster).cluster_id or "", expected.topic_prefix)
    if noted is None:
        yield note("no worker has noted whose the keys are", "Start `contextgauge project`")
    elif noted != own:
        yield error(
            f"the keys are those of {noted}; the settings are those of {own}",
            "Set another CONTEXTGAUGE_KEY_PREFIX; or, where the other deployment is gone, run "
            "`contextgauge rebuild --claim`",
        )
    yield ok(f"the keys are those of {own}")


@check("views.writers")
def writers(facts: Facts, _: Expected) -> Iterator[Result]:
    """Two projectors on one key prefix take turns, and the views advance slowly."""
    positions = [position for position in known(facts.views).active.values() if position]
    beats = [position.heartbeat for position in positions if position.heartbeat]
    # A worker that was paused meets its successor once: that is no second deployment.
    rivals = sum(beat.rivals for beat in beats if facts.now_ms - beat.at_ms < LATE_MS)
    figures = {"rivals": rivals}
    if rivals >= _RIVALS:
        yield error(
            f"another projector writes the same views: {counted(rivals, 'time')} within a minute",
            "Stop the project workers of the other group (another CONTEXTGAUGE_GROUP_PREFIX), or "
            "set another CONTEXTGAUGE_KEY_PREFIX for it",
            figures=figures,
        )
    yield ok("one projector writes each partition", figures)


CHECKS = (generation, view_format, deployment, writers)
