"""Judges the workers: whether they are there, where they are, and what waits for them."""

from collections.abc import Mapping
from typing import Literal

from schemas.topics import HOUR_MS
from streams.flow.doctor.catalogue import CheckId, Figures, Report
from streams.flow.doctor.facts import Expected, Facts, Progress, Views
from streams.flow.doctor.words import age, listed, some
from streams.ports.inspection import Cluster, Failure, Group, TopicFacts

Worker = Literal["derive", "project"]

_LATE_MS = 60_000
"""What waits for a minute is no batch that is under way."""

_STUCK_MS = HOUR_MS
"""A build that is under way for so long is worth a look: 10 000 sessions take minutes."""

_CHECKS: dict[Worker, tuple[CheckId, CheckId, CheckId]] = {
    "derive": ("derive.workers", "derive.position", "derive.lag"),
    "project": ("project.workers", "project.position", "project.lag"),
}


def judge_flow(report: Report, facts: Facts, expected: Expected) -> None:
    """Judge both kinds of workers, the views, and when anything last happened."""
    _worker(report, "derive", expected.derive_group, facts.derive_group, facts.derive)
    _worker(report, "project", expected.project_group, facts.project_group, facts.project)
    _positions(report, "derive", facts.derive)
    _positions(report, "project", facts.project)
    _lag(report, "derive", facts.derive, facts.now_ms)
    _lag(report, "project", facts.project, facts.now_ms)
    _views(report, facts, expected)
    _activity(report, facts)


def _waiting(progress: Mapping[int, Progress] | Failure) -> int:
    return 0 if isinstance(progress, Failure) else sum(one.waiting for one in progress.values())


def _worker(
    report: Report,
    worker: Worker,
    name: str,
    group: Group | Failure,
    progress: Mapping[int, Progress] | Failure,
) -> None:
    check, what = _CHECKS[worker][0], "messages" if worker == "derive" else "records"
    if isinstance(group, Failure):
        report.skip(group.text, check)
        return
    members = len(group.hosts)
    figures: Figures = {"members": members, "state": group.state}
    waiting = _waiting(progress)
    start = f"Start one: `contextgauge {worker}`; is CONTEXTGAUGE_GROUP_PREFIX the workers' own?"
    if not members and waiting:
        said = f"none in the group {name}, and {waiting:,} {what} wait"
        report.add(check, "error", said, mend=start, figures=figures)
    elif not members:
        report.add(
            check,
            "warning",
            f"none in the group {name}; nothing waits",
            mend=start,
            figures=figures,
        )
    elif group.state not in {"Stable", ""}:
        report.add(
            check,
            "note",
            f"{some(members, 'worker')} in the group {name}, which is being balanced "
            f"({group.state})",
            mend="Look again in a moment; if it stays so, look at the workers' logs",
            figures=figures,
        )
    else:
        hosts = listed(sorted(set(group.hosts)))
        said = f"{some(members, 'worker')} in the group {name}, on {hosts}"
        report.ok(check, said, figures=figures)


def _positions(report: Report, worker: Worker, progress: Mapping[int, Progress] | Failure) -> None:
    check = _CHECKS[worker][1]
    if isinstance(progress, Failure):
        report.skip(progress.text, check)
        return
    fine = True
    for partition, one in progress.items():
        if one.position is None or one.first <= one.position <= one.end:
            continue
        fine = False
        overtaken = one.position < one.first
        told = (
            f"position {one.position} is before {one.first}, the first offset kept: "
            f"{some(one.first - one.position, 'offset')} were deleted before they were read"
            if overtaken
            else f"position {one.position} is beyond the end, {one.end}: the topic was made anew"
        )
        report.add(
            check,
            "error",
            told,
            subject=f"partition {partition}",
            mend=_mend_position(worker),
            figures={"position": one.position, "first": one.first, "end": one.end},
        )
    if fine:
        begun = sum(one.position is not None for one in progress.values())
        report.ok(check, f"{begun} of {some(len(progress), 'partition')} begun, all in the log")


def _mend_position(worker: Worker) -> str:
    if worker == "derive":
        return (
            "Set another CONTEXTGAUGE_TOPIC_PREFIX, run `contextgauge topics create`, and publish "
            "again: that gives complete records"
        )
    return (
        "Set another CONTEXTGAUGE_KEY_PREFIX and start the project workers again: they build the "
        "views anew from what the log has"
    )


def _lag(
    report: Report, worker: Worker, progress: Mapping[int, Progress] | Failure, now_ms: int
) -> None:
    check = _CHECKS[worker][2]
    name = "message" if worker == "derive" else "record"
    if isinstance(progress, Failure):
        report.skip(progress.text, check)
        return
    waiting = _waiting(progress)
    times = [
        one.waiting_ms for one in progress.values() if one.waiting and one.waiting_ms is not None
    ]
    oldest_ms = max(now_ms - min(times), 0) if times else 0
    figures: Figures = {"waiting": waiting, "oldest_ms": oldest_ms}
    if not waiting:
        report.ok(check, "nothing waits", figures=figures)
        return
    most = max(progress, key=lambda partition: progress[partition].waiting)
    since = f"the oldest for {age(oldest_ms)}" if times else "for how long is not known"
    said = (
        f"about {some(waiting, name)} wait, {since}; most on partition {most} "
        f"({progress[most].waiting:,})"
    )
    if oldest_ms < _LATE_MS:
        report.ok(check, said, figures=figures)
        return
    report.add(
        check,
        "warning",
        said,
        mend=f"Is a worker there ({_CHECKS[worker][0]})? If it is and this number falls, wait; "
        f"else start more of `contextgauge {worker}`, up to {some(len(progress), 'partition')}",
        figures=figures,
    )


def _views(report: Report, facts: Facts, expected: Expected) -> None:
    views = facts.views
    if isinstance(views, Failure):
        report.skip(views.text, "views.generation")
        if views.kind == "unsupported":
            report.add(
                "views.format",
                "error",
                views.text,
                mend="Run the version that wrote them, or set a CONTEXTGAUGE_KEY_PREFIX of its own",
            )
        else:
            report.skip(views.text, "views.format")
        return
    _generation(report, views, facts.now_ms)
    _format(report, views, facts.cluster, expected)


def _generation(report: Report, views: Views, now_ms: int) -> None:
    active, following = views.generations.active, views.generations.next
    if active is None and following is None:
        report.add(
            "views.generation",
            "note",
            "there are no views yet",
            mend="Start a project worker: `contextgauge project`",
        )
        return
    told = "none is active" if active is None else f"generation {active} is active"
    sessions = f", {some(views.sessions, 'session')}" if active is not None else ""
    lost = [str(number) for number, at in views.active.items() if at is None]
    if active is not None and lost:
        report.add(
            "views.generation",
            "error",
            f"{told}, but partition {listed(lost)} of it is gone: Redis lost keys",
            mend="A project worker builds the views anew by itself: see project.workers, "
            "redis.eviction and redis.persistence",
        )
    elif following is None:
        report.ok("views.generation", told + sessions, figures={"active": active})
    else:
        ready = sum(at is not None and at.caught_up for at in views.building.values())
        held, all_ready = views.generations.held, ready == len(views.building)
        begun = views.generations.build.partition("-")[0]
        since_ms = now_ms - int(begun) if begun.isdigit() else 0
        report.add(
            "views.generation",
            "warning" if since_ms > _STUCK_MS or active is None else "note",
            f"{told}{sessions}; generation {following} is being built since {age(since_ms)}, "
            f"{ready} of {some(len(views.building), 'partition')} ready"
            + (", held for a comparison" if held else ""),
            mend=(
                "Nothing but the comparison is missing, and it takes twice the memory meanwhile: "
                "`contextgauge rebuild` compares and swaps, `contextgauge rebuild --abandon` "
                "gives it up"
            )
            if held and all_ready
            else "`contextgauge rebuild --status` tells how far it is; if it does not move, look "
            "at the project workers' logs",
            figures={"active": active, "building": following, "ready": ready, "held": held},
        )


def _format(report: Report, views: Views, cluster: Cluster | Failure, expected: Expected) -> None:
    topic = None if isinstance(cluster, Failure) else cluster.topics.get(expected.events.name)
    counts = {at.partitions for at in views.active.values() if at is not None}
    there = len(topic.partitions) if isinstance(topic, TopicFacts) else None
    if not counts:
        report.skip("there are no views yet", "views.format")
    elif there is not None and counts != {there}:
        report.add(
            "views.format",
            "error",
            f"the views are of {listed([str(count) for count in sorted(counts)])} partitions, "
            f"{expected.events.name} has {there}",
            mend="Set another CONTEXTGAUGE_KEY_PREFIX, or the CONTEXTGAUGE_TOPIC_PREFIX that the "
            "views were made from",
        )
    else:
        report.ok("views.format", f"{some(counts.pop(), 'partition')}, known to this version")


def _activity(report: Report, facts: Facts) -> None:
    keying = facts.keying
    newest: tuple[tuple[CheckId, str, int | Failure | None], ...] = (
        (
            "activity.messages",
            "message",
            keying if isinstance(keying, Failure) else keying.newest_ms,
        ),
        ("activity.records", "record", facts.newest_record_ms),
        (
            "activity.views",
            "session of the views",
            facts.views if isinstance(facts.views, Failure) else facts.views.newest_ms,
        ),
    )
    for check, name, at in newest:
        if isinstance(at, Failure):
            report.skip(at.text, check)
        elif at is None:
            report.ok(check, f"no {name} yet", figures={"newest_ms": None})
        else:
            said = f"the newest {name}: {age(max(facts.now_ms - at, 0))} ago"
            report.ok(check, said, figures={"newest_ms": at})
