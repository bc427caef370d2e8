"""What happens in a run, drawn from its seed: it can be printed, cut and run again."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from tests.simulation.inputs import INPUTS
from tests.simulation.process import Rates

Stage = Literal["derive", "project", "both", "control"]


class Act(NamedTuple):
    """One thing that happens: `number` chooses whom it befalls, `amount` how long or how much."""

    at_s: float
    kind: str
    number: int = 0
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """A run: the same schedule gives the same run, step by step."""

    seed: int
    stage: Stage
    input: int
    derivers: int
    projectors: int
    batch: int
    length_s: float
    rates: Rates
    acts: tuple[Act, ...]

    def without(self, acts: frozenset[int]) -> "Schedule":
        """Return it without some of its acts, by their places."""
        left = tuple(act for place, act in enumerate(self.acts) if place not in acts)
        return replace(self, acts=left)

    def document(self) -> dict[str, Any]:
        """Return it as JSON can hold it; `read` reads it."""
        acts = [list(act) for act in self.acts]
        return {**asdict(self), "rates": self.rates._asdict(), "acts": acts}


def read(document: Mapping[str, Any]) -> Schedule:
    """Return a schedule from its document."""
    acts = tuple(Act(*act) for act in document["acts"])
    return Schedule(**{**document, "rates": Rates(**document["rates"]), "acts": acts})


_FAULTS: Final = (
    "kill", "kill", "kill", "pause", "pause", "rebalance", "expel", "member fails", "stop",
    "stop in rebalance", "start", "clock", "leader moves", "stale metadata", "wire", "wire",
)  # fmt: skip
_OF_DERIVE: Final = ("time out", "time out", "markers", "markers", "compact state", "broker away")
_OF_PROJECT: Final = (
    "store away",
    "store away",
    "snapshot",
    "set back",
    "empty store",
    "broker away",
)

DISASTERS: Final[Mapping[Stage, tuple[str, ...]]] = {
    "derive": (
        "second derivers", "recreate messages", "recreate events", "recreate state",
        "truncate messages", "truncate events", "truncate state", "retention",
    ),
    "project": (
        "second projectors", "lose key", "lose key", "lose key",
        "recreate events", "truncate events", "retention of events",
    ),
    "both": ("second derivers", "second projectors", "lose key"),
}  # fmt: skip
"""What the ground does under the pipeline, at most one of it in a run."""

OPEN: Final = frozenset({"truncate events", "truncate messages"})
"""Disasters that are not always noticed; `--all` runs them too.

Where a broker loses its last records and takes others before a reader asks for the next ones, the
reader goes on in between: only the leader epochs of KIP-320 would show it, and the client library
does not know them. `contextgauge rebuild` shows what differs, and mends it.
"""

_WIRES: Final = (
    Rates(),
    Rates(0.02),
    Rates(0.3),
    Rates(0.1, lost_request=0.03, lost_reply=0.03),
    Rates(0.05, lost_reply=0.05, late=0.03, twice=0.05),
)


def schedule_of(seed: int, without: frozenset[str] = frozenset()) -> Schedule:
    """Draw the schedule of a seed, `without` some kinds of disasters."""
    chance = random.Random(seed)
    roll = chance.random()
    stage: Stage = "derive" if roll < 0.48 else "project" if roll < 0.95 else "both"
    length_s = chance.choice([3.0, 5.0, 9.0])
    acts = [
        Act(_time(chance, length_s), "publish", 0, round(chance.uniform(0.1, 0.5), 2))
        for _ in range(chance.randint(2, 6))
    ]
    faults = [*_FAULTS]
    if stage != "project":
        faults += _OF_DERIVE
    if stage != "derive":
        faults += _OF_PROJECT
    for _ in range(chance.randint(1, 6)):
        amount = round(chance.choice([0.2, 2.0, 9.0]) * chance.random(), 2)
        time_s = _soon(chance, acts, length_s)
        acts.append(Act(time_s, chance.choice(faults), chance.randrange(1000), amount))
    if chance.random() < 0.3:
        kind = chance.choice(DISASTERS[stage])
        if kind not in without:
            time_s = _soon(chance, acts, length_s)
            acts.append(Act(time_s, kind, chance.randrange(1000), round(chance.random(), 2)))
    return Schedule(
        seed=seed,
        stage=stage,
        input=chance.randrange(INPUTS),
        derivers=0 if stage == "project" else chance.choice([1, 2, 2, 3]),
        projectors=0 if stage == "derive" else chance.choice([1, 2, 2, 3]),
        batch=chance.choice([2, 5, 1000]),
        length_s=length_s,
        rates=chance.choice(_WIRES),
        acts=tuple(sorted(acts)),
    )


_OF_CONTROL: Final = (
    *["say"] * 5, *["request"] * 6, *["cancel"] * 3, "repeat", "repeat", "own boundary", "reset",
    *["kill"] * 4, "start", "start", "stop", "pause", "reassign", "empty stores", "provider",
    "provider", "wire", "wire", "broker away", "store away", "time out", "markers",
)  # fmt: skip


def control_schedule_of(seed: int) -> Schedule:
    """Draw the schedule of a run of the compaction service."""
    chance = random.Random(f"control {seed}")
    length_s = chance.choice([4.0, 9.0, 20.0])
    acts: list[Act] = []
    for _ in range(chance.randint(6, 25)):
        amount = round(chance.choice([0.2, 2.0, 9.0]) * chance.random(), 2)
        time_s = _soon(chance, acts, length_s) if acts else _time(chance, length_s)
        acts.append(Act(time_s, chance.choice(_OF_CONTROL), chance.randrange(1000), amount))
    return Schedule(
        seed=seed,
        stage="control",
        input=chance.randrange(INPUTS),
        derivers=0,
        projectors=0,
        batch=0,
        length_s=length_s,
        rates=chance.choice(_WIRES),
        acts=tuple(sorted(acts)),
    )


def _soon(chance: random.Random, acts: Sequence[Act], length_s: float) -> float:
    """Draw a time, most often soon after another act: then there is something to disturb."""
    if chance.random() < 0.4:
        return _time(chance, length_s)
    former = chance.choice(acts)
    return round(min(former.at_s + chance.expovariate(4.0), length_s), 3)


def _time(chance: random.Random, length_s: float) -> float:
    return round(chance.random() * length_s, 3)
