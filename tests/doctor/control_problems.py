"""Control and conversations: check, severity, facts, and part of the message."""

from schemas.topics import HOUR_MS
from streams.flow.doctor import Facts, Severity
from streams.flow.doctor.facts import OpenCommands, ReaderFacts, WorkerProgress
from streams.ports.deployment import Deployment
from streams.ports.inspection import Group
from tests.doctor.cases import NOW, facts, kept, redis


def reading(name: str, hosts: list[str], progress: WorkerProgress) -> Facts:
    return facts(readers={name: ReaderFacts(Group("Stable", hosts, {}), {0: progress})})


CONTROL_PROBLEMS: list[tuple[str, Severity, Facts, str]] = [
    ("control.commands", "warning", facts(commands=OpenCommands(2, NOW - HOUR_MS)), "2 commands w"),
    ("control.effects", "warning", facts(commands=OpenCommands(0, None, 2)), "2 sessions had no"),
    ("control.effects", "note", facts(commands=OpenCommands(0, None, 0, 1)), "nothing compacts 1"),
    ("conversations.position", "error", kept(WorkerProgress(0, 9, 9, None), {0}), "created again"),
    ("conversations.position", "warning", kept(WorkerProgress(500, 900, 1, None)), "499 offsets"),
    ("conversations.position", "error", kept(WorkerProgress(0, 10, 100, None)), "the end, 10"),
    ("conversations.lag", "warning", kept(WorkerProgress(0, 1_500, 500, NOW - HOUR_MS)), "60 min"),
    (
        "views.deployment",
        "error",
        redis(deployment=Deployment("cluster", "other.")),
        "the keys are those of the topics other.agent.messages, other.context.events … of the",
    ),
    ("views.deployment", "note", redis(deployment=None), "no worker has noted whose the keys are"),
    (
        "control.files",
        "error",
        facts(
            control_groups={
                "contextgauge-compaction": Group("Empty", [], {}),
                "contextgauge-control": Group(
                    "Stable", ["a", "b"], {}, {"1f00": ["one"], "2e00": ["two"]}
                ),
            }
        ),
        "in the group contextgauge-control have different files: 1f00 on one, 2e00 on two",
    ),
    (
        "readers.lag",
        "warning",
        reading("otel-group", ["a"], WorkerProgress(0, 100, 90, NOW - HOUR_MS)),
        "about 10 records wait, the oldest for 60 min",
    ),
    (
        "readers.lag",
        "warning",
        reading("otel-group", [], WorkerProgress(0, 100, 90, NOW)),
        "no worker is in the group otel-group, and 10 records wait",
    ),
]
