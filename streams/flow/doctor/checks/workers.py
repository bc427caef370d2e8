"""Values of the workers and the views: do workers run, where are they, what waits for them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from contextgauge.units import MINUTE_MS
from schemas.topics import HOUR_MS
from streams.flow.doctor.facts import Expected, Facts, UnknownFactError, WorkerProgress, known
from streams.flow.doctor.rules import Items, Values
from streams.flow.doctor.words import age, counted, listed
from streams.ports.deployment import Deployment
from streams.ports.inspection import Failure, Group, TopicFacts

_LATE_MS = 60_000
"""What waits for longer is not just a batch in progress."""

_OVERDUE_MS = HOUR_MS
"""A build takes minutes for 10 000 sessions."""

_LATE_COMMAND_MS = 30 * MINUTE_MS
"""Twice what a command may take by default."""

_RIVALS = 3

_LOOK = (
    "`contextgauge rebuild --status` shows the progress; if there is none, see the project "
    "workers' logs"
)

_PartitionProgress = Mapping[int, WorkerProgress] | Failure


def _group(name: str, group: Group | Failure, progress: _PartitionProgress) -> Iterator[Values]:
    group = known(group)
    parts = [] if isinstance(progress, Failure) else list(progress.values())
    waiting = sum(part.waiting for part in parts)
    yield {
        "group": name,
        "members": len(group.hosts),
        "hosts": sorted(set(group.hosts)),
        "state": group.state,
        "waiting": waiting,
        "missed": waiting and not group.hosts,
        "empty": not group.hosts,
        "unstable": group.state not in {"Stable", ""},
    }


def _positions(progress: _PartitionProgress) -> Iterator[Values]:
    started = sum(part.position is not None for part in known(progress).values())
    for partition, part in known(progress).items():
        position = part.first if part.position is None else part.position
        yield {
            "subject": f"partition {partition}",
            "started": started,
            "position": position,
            "first": part.first,
            "end": part.end,
            "deleted": max(part.first - position, 0),
            "beyond_end": position > part.end,
        }


def _conversation_positions(facts: Facts, _: Expected) -> Iterator[Values]:
    conversations = known(facts.conversations)
    for number, values in zip(
        conversations.progress, _positions(conversations.progress), strict=True
    ):
        yield {**values, "former": number in conversations.former}


def _commands(facts: Facts, _: Expected) -> Iterator[Values]:
    commands = known(facts.kafka.commands)
    since_ms = commands.oldest_ms
    oldest_ms = 0 if since_ms is None else max(facts.now_ms - since_ms, 0)
    text = "every command has its outcome"
    if commands.open:
        text = f"{counted(commands.open, 'command')} without an outcome"
        text += f", the oldest for {age(oldest_ms)}"
    yield {
        "open": commands.open,
        "oldest_ms": oldest_ms,
        "late": oldest_ms >= _LATE_COMMAND_MS,
        "text": text,
    }


def _configurations(facts: Facts, _: Expected) -> Iterator[Values]:
    for name, group in known(facts.kafka.control_groups).items():
        by_digest = known(group).configurations
        files = [f"{digest} on {listed(hosts)}" for digest, hosts in sorted(by_digest.items())]
        yield {
            "group": name,
            "configurations": len(files),
            "files": files if len(files) > 1 else [],
        }


def _effects(facts: Facts, _: Expected) -> Iterator[Values]:
    commands = known(facts.kafka.commands)
    yield {"undone": commands.undone, "without_driver": commands.without_driver}


def _writers(facts: Facts, expected: Expected) -> Iterator[Values]:
    progress, own = known(facts.kafka.derive), facts.kafka.derive_group
    others = known(facts.kafka.other_groups)
    alive = [name for name, each in others.items() if isinstance(each, Group) and each.hosts]
    groups = sorted({name for part in progress.values() for name in part.groups})
    yield {
        "group": expected.derive_group,
        "groups": groups,
        "alive": alive if isinstance(own, Group) and own.hosts else [],
        "mixed": [number for number, part in progress.items() if len(part.groups) > 1],
        "writers": ", ".join(groups),
    }


def _lag(noun: str, topic: str, facts: Facts, progress: _PartitionProgress) -> Iterator[Values]:
    now_ms, open_since_ms = facts.now_ms, _open_since_ms(topic, facts)
    waiting = {number: part.waiting for number, part in known(progress).items() if part.waiting}
    times = [
        open_since_ms.get(number) if part.waiting_ms is None else part.waiting_ms
        for number, part in known(progress).items()
        if part.waiting
    ]
    oldest_ms = max(now_ms - min((time for time in times if time is not None), default=now_ms), 0)
    total, text = sum(waiting.values()), "nothing waits"
    if waiting:
        most = max(waiting, key=waiting.__getitem__)
        since = f"the oldest for {age(oldest_ms)}" if any(times) else "for an unknown time"
        text = f"about {counted(total, noun)} wait, {since}; most on partition {most} "
        text += f"({waiting[most]:,})"
    yield {
        "waiting": total,
        "oldest_ms": oldest_ms,
        "late": oldest_ms >= _LATE_MS,
        "held": [at for at, since_ms in open_since_ms.items() if now_ms - since_ms >= _LATE_MS],
        "text": text,
        "partitions": len(known(progress)),
    }


def _open_since_ms(topic: str, facts: Facts) -> Mapping[int, int]:
    """Return since when a transaction has been open, by partition of a topic."""
    unsettled = facts.kafka.unsettled
    if isinstance(unsettled, Failure):
        return {}
    return {
        number: min(each.since_ms for each in part.transactions)
        for (name, number), part in unsettled.items()
        if name == topic and not isinstance(part.transactions, Failure) and part.transactions
    }


def _generation(facts: Facts, _: Expected) -> Iterator[Values]:
    views = known(facts.views)
    generations = views.generations
    active, building = generations.active, generations.next
    ready = sum(at is not None and at.caught_up for at in views.building.values())
    started = generations.build.partition("-")[0]
    age_ms = facts.now_ms - int(started) if started.isdigit() else 0
    state = "no generation is active"
    if active is not None:
        state = f"generation {active} is active, {counted(views.sessions, 'session')}"
    yield {
        "active": active,
        "building": building,
        "ready": ready,
        "state": state,
        "none": active is None and building is None,
        "lost": [number for number, at in views.active.items() if at is None],
        "overdue": building and (age_ms > _OVERDUE_MS or active is None),
        "progress": f"{state}; generation {building} has been building for {age(age_ms)}, {ready} "
        f"of {counted(len(views.building), 'partition')} ready",
        "remedy": _LOOK,
    }


def _view_format(facts: Facts, expected: Expected) -> Iterator[Values]:
    views, cluster = facts.views, facts.kafka.cluster
    if isinstance(views, Failure) and views.kind == "unsupported":
        yield {"unsupported": views.text}
        return
    counts = {at.partitions for at in known(views).active.values() if at is not None}
    if not counts:
        raise UnknownFactError("there are no views yet")
    topic = None if isinstance(cluster, Failure) else cluster.topics.get(expected.events.name)
    in_log = len(topic.partitions) if isinstance(topic, TopicFacts) else min(counts)
    yield {
        "unsupported": "",
        "partitions": min(counts),
        "counts": sorted(counts),
        "topic": expected.events.name,
        "in_log": in_log,
        "differ": counts != {in_log},
    }


def _view_writers(facts: Facts, _: Expected) -> Iterator[Values]:
    beats = [at.heartbeat for at in known(facts.views).active.values() if at and at.heartbeat]
    # A worker that was paused meets its successor once: that is no second deployment.
    rivals = sum(beat.rivals for beat in beats if facts.now_ms - beat.at_ms < _LATE_MS)
    yield {"rivals": rivals, "several": rivals >= _RIVALS}


def _view_deployment(facts: Facts, expected: Expected) -> Iterator[Values]:
    noted = known(known(facts.store).deployment)
    own = Deployment(known(facts.kafka.cluster).cluster_id or "", expected.topic_prefix)
    yield {
        "own": str(own),
        "noted": str(noted),
        "unnoted": noted is None,
        "foreign": noted is not None and noted != own,
    }


def _newest(
    noun: str,
    time_of: Callable[[Facts], int | Failure | None],
    facts: Facts,
    expected: Expected,
) -> Iterator[Values]:
    newest_ms = known(time_of(facts))
    text = f"no {noun} yet"
    if newest_ms is not None:
        text = f"the newest {noun}: {age(facts.now_ms - newest_ms)} ago"
    topic = {"message": expected.messages, "record": expected.events}.get(noun)
    since_ms = {} if topic is None else _open_since_ms(topic.name, facts)
    if any(facts.now_ms - each >= _LATE_MS for each in since_ms.values()):
        text += ", not counting what is behind an open transaction (topics.transactions)"
    yield {"text": text, "newest_ms": newest_ms}


ITEMS: Mapping[str, Items] = {
    "derive_group": lambda facts, expected: _group(
        expected.derive_group, facts.kafka.derive_group, facts.kafka.derive
    ),
    "derive_positions": lambda facts, _: _positions(facts.kafka.derive),
    "derive_writers": _writers,
    "derive_lag": lambda facts, expected: _lag(
        "message", expected.messages.name, facts, facts.kafka.derive
    ),
    "project_group": lambda facts, expected: _group(
        expected.project_group, facts.kafka.project_group, facts.project
    ),
    "project_positions": lambda facts, _: _positions(facts.project),
    "project_lag": lambda facts, expected: _lag(
        "record", expected.events.name, facts, facts.project
    ),
    "conversation_positions": _conversation_positions,
    "conversations_lag": lambda facts, expected: _lag(
        "message", expected.messages.name, facts, known(facts.conversations).progress
    ),
    "commands": _commands,
    "configurations": _configurations,
    "effects": _effects,
    "generation": _generation,
    "view_format": _view_format,
    "view_deployment": _view_deployment,
    "view_writers": _view_writers,
    "newest_message": partial(
        _newest, "message", lambda facts: known(facts.kafka.keying).newest_ms
    ),
    "newest_record": partial(_newest, "record", lambda facts: facts.kafka.newest_record_ms),
    "newest_session": partial(
        _newest, "session in the views", lambda facts: known(facts.views).newest_ms
    ),
}
