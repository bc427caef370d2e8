"""The health of a worker: what its tasks note, and how probes are answered.

Live is a worker whose event loop turns and whose steps end; one that is not is helped by a restart.
One that is idle is live, and one that waits for a service too: a restart does not bring that back.
But a server that answers for long that it is the wrong one may not be what the settings mean: after
a restart they are read again.
Ready is a worker that has joined its group and follows all partitions that it was given (or stands
by without any), with its services there. A worker with several roles, each with a group of its own,
is live and ready where all of them are.

The work notes from the event loop's thread and probes ask from others, so a lock is held.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeAlias

from contextgauge.ports import Clock
from schemas.records import Json

Service: TypeAlias = Literal["kafka", "redis", "the local file", "the collector"]
"""What a worker may have to wait for; the local file is that of `contextgauge view`, the collector
that of `contextgauge otel`."""

WorkerPhase: TypeAlias = Literal["starting", "joining", "member", "waiting", "stopping"]
"""A worker's phase: it is a member of its group once its partitions are assigned, even if none."""

PartitionPhase: TypeAlias = Literal["restoring", "running", "building", "waiting"]
"""A partition's phase: only a `running` one is followed as messages come."""


class Verdict(NamedTuple):
    """The answer to a probe: whether all is well, and a document with the reasons."""

    ok: bool
    document: dict[str, Json]


class _PartitionNote(NamedTuple):
    phase: PartitionPhase
    since_s: float
    reason: str
    done: int | None
    total: int | None


class _Absence(NamedTuple):
    """What someone waits for."""

    service: Service
    reason: str
    noted_s: float
    wrong_since_s: float | None
    """Since when a server answers that is the wrong one, or not ready; None where none does."""

    @property
    def wrong_s(self) -> float:
        """For how long such a server had answered, when it did last."""
        return 0.0 if self.wrong_since_s is None else self.noted_s - self.wrong_since_s


class StepTimer:
    """The time limit of a step that is under way."""

    def __init__(self, clock: Clock, name: str, partition: int, limit_s: float) -> None:
        self._clock = clock
        self.name, self.partition, self.limit_s = name, partition, limit_s
        self.since_s = clock.monotonic_s()

    def restart(self) -> None:
        """Note that it made progress: its time limit starts over."""
        self.since_s = self._clock.monotonic_s()


class Health:
    """The notes of one worker: its partitions, its steps, and what it waits for.

    No note holds the text of a message or the id of a session. `patience_s` is how long a step or
    the loop may stand still, and a wrong server answer.
    """

    def __init__(self, name: str, clock: Clock, patience_s: float) -> None:
        self._name = name
        self._clock = clock
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._phase: WorkerPhase = "starting"
        self._reason = ""
        self._partitions: dict[int, _PartitionNote] = {}
        self._away: dict[object, _Absence] = {}
        self._back_s = clock.monotonic_s()
        self._steps: set[StepTimer] = set()
        self._beat_s: float | None = None
        self._roles: dict[str, Health] = {}
        self._refused = ""

    def role(self, name: str) -> "Health":
        """Return the notes of one of the worker's roles, which has a group of its own.

        The worker notes `member` once it has made its roles: each says when it has joined.
        """
        with self._lock:
            role = self._roles[name] = Health(name, self._clock, self._patience_s)
            return role

    def refused(self, reason: str) -> None:
        """Note why the group gives this member no partitions; empty where it does.

        It stands by, and is ready: where it replaces the member that refuses it, that one ends.
        """
        with self._lock:
            self._refused = reason

    def beat(self) -> None:
        """Note that the event loop turns; the loop's owner calls it about each second."""
        self._beat_s = self._clock.monotonic_s()

    def worker(self, phase: WorkerPhase, reason: str = "") -> None:
        """Note where the worker is, and why it waits."""
        with self._lock:
            if self._phase != "stopping":
                self._phase, self._reason = phase, reason
            roles = tuple(self._roles.values()) if phase == "stopping" else ()
        for role in roles:
            role.worker(phase, reason)

    def partition(
        self,
        partition: int,
        phase: PartitionPhase,
        reason: str = "",
        *,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        """Note where a partition is: `done` of `total` while it is restored or built."""
        with self._lock:
            before = self._partitions.get(partition)
            is_same = before is not None and before.phase == phase
            since_s = before.since_s if before and is_same else self._clock.monotonic_s()
            self._partitions[partition] = _PartitionNote(phase, since_s, reason, done, total)

    def released(self, partition: int | None = None) -> None:
        """Forget a partition, or all of them: they are another worker's."""
        with self._lock:
            if partition is None:
                self._partitions.clear()
            else:
                self._partitions.pop(partition, None)

    def away(
        self, asker: object, service: Service, reason: str, *, is_wrong_server: bool = False
    ) -> None:
        """Note that someone waits for a service, until `back` of the same asker."""
        with self._lock:
            before, now_s = self._away.get(asker), self._clock.monotonic_s()
            since_s = before.wrong_since_s if before and is_wrong_server else None
            if is_wrong_server and since_s is None:
                since_s = now_s
            self._away[asker] = _Absence(service, reason, now_s, since_s)

    def back(self, asker: object) -> None:
        """Note that this one no longer waits."""
        with self._lock:
            if self._away.pop(asker, None) is not None:
                self._back_s = self._clock.monotonic_s()

    @contextmanager
    def step(self, name: str, partition: int, own_limit_s: float = 0.0) -> Iterator[StepTimer]:
        """Note a step for as long as the context lasts.

        One that takes longer than `own_limit_s`, by which it should end by itself, and the
        worker's patience beyond that, is stuck. The time in which a service is away does not
        count.
        """
        step = StepTimer(self._clock, name, partition, own_limit_s + self._patience_s)
        with self._lock:
            self._steps.add(step)
        try:
            yield step
        finally:
            with self._lock:
                self._steps.discard(step)

    def doing(self) -> list[str]:
        """Return the steps that are under way, in words."""
        with self._lock:
            own = [f"{step.name} of partition {step.partition}" for step in self._steps]
            roles = tuple(self._roles.values())
        return sorted([*own, *(step for role in roles for step in role.doing())])

    def live(self) -> Verdict:
        return self._of_all("live", self._own_live(), [each.live() for each in self._listed()])

    def _listed(self) -> list["Health"]:
        with self._lock:
            return list(self._roles.values())

    def _of_all(self, word: str, own: Verdict, roles: Sequence[Verdict]) -> Verdict:
        """Return the worker's verdict: its own, and those of its roles, each under its name."""
        if not roles:
            return own
        reasons: list[Json] = [
            *_reasons(own),
            *(f"{role.document['worker']}: {each}" for role in roles for each in _reasons(role)),
        ]
        shown: dict[str, Json] = {str(role.document["worker"]): role.document for role in roles}
        ok = own.ok and all(role.ok for role in roles)
        return Verdict(ok, {**own.document, word: ok, "reasons": reasons, "roles": shown})

    def _own_live(self) -> Verdict:
        with self._lock:
            now_s = self._clock.monotonic_s()
            reasons: list[Json] = []
            silent_s = 0.0 if self._beat_s is None else now_s - self._beat_s
            if silent_s > self._patience_s:
                reasons.append(
                    f"the event loop has stood still for {silent_s:.0f} s "
                    f"(limit {self._patience_s:.0f} s)"
                )
            reasons += sorted(self._wrong_servers())
            if not self._away:
                for step in self._steps:
                    taken_s = now_s - max(step.since_s, self._back_s)
                    if taken_s > step.limit_s:
                        reasons.append(
                            f"{step.name} of partition {step.partition} has not ended for "
                            f"{taken_s:.0f} s (limit {step.limit_s:.0f} s)"
                        )
            return Verdict(not reasons, {"live": not reasons, **self._head(), "reasons": reasons})

    def ready(self) -> Verdict:
        """Return whether the worker follows all its partitions."""
        return self._of_all("ready", self._own_ready(), [each.ready() for each in self._listed()])

    def _own_ready(self) -> Verdict:
        with self._lock:
            reasons: list[Json] = []
            if self._phase != "member":
                reasons.append(f"the worker is {self._phase}" + _because(self._reason))
            away = {each.service: each.reason for each in self._away.values()}
            reasons += [f"{service} is away" + _because(away[service]) for service in sorted(away)]
            for number, note in sorted(self._partitions.items()):
                if note.phase != "running":
                    reasons.append(f"partition {number} is {note.phase}" + _because(note.reason))
            partitions: dict[str, Json] = {
                str(number): self._shown(note) for number, note in sorted(self._partitions.items())
            }
            return Verdict(
                not reasons,
                {
                    "ready": not reasons,
                    **self._head(),
                    "reasons": reasons,
                    "partitions": partitions,
                },
            )

    def _wrong_servers(self) -> set[str]:
        """Return the services in whose place a wrong server was for longer than the patience."""
        return {
            f"{each.service} has been the wrong server, or not ready, for {each.wrong_s:.0f} s "
            f"(limit {self._patience_s:.0f} s)" + _because(each.reason)
            for each in self._away.values()
            if each.wrong_s > self._patience_s
        }

    def _head(self) -> dict[str, Json]:
        head: dict[str, Json] = {"worker": self._name, "phase": self._phase}
        return {**head, "refused": self._refused} if self._refused else head

    def _shown(self, note: _PartitionNote) -> dict[str, Json]:
        shown: dict[str, Json] = {
            "phase": note.phase,
            "for_s": round(self._clock.monotonic_s() - note.since_s, 1),
        }
        if note.reason:
            shown["reason"] = note.reason
        if note.done is not None:
            shown["done"] = note.done
        if note.total is not None:
            shown["total"] = note.total
        return shown


def _reasons(verdict: Verdict) -> list[Json]:
    reasons = verdict.document["reasons"]
    return reasons if isinstance(reasons, list) else []


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
