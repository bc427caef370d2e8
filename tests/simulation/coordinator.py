"""The coordinator of consumer groups: eager rebalances, sticky assignment, sessions that end.

A member hears of a rebalance with its next heartbeat, hands its partitions back and asks to join
again; once all have, or the rebalance took too long for some, everyone gets a share. A member
whose session ended hears of that later, if ever, and goes on until then: a zombie.
"""

import random
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.virtual_loop import Scheduler

if TYPE_CHECKING:
    from tests.simulation.broker import Broker
    from tests.simulation.broker_clients import GroupReader

SESSION_S = 6.0
"""How long a member may be silent."""

REBALANCE_S = 10.0
"""How long a rebalance waits for members; longer than the deriver takes to release."""

HEARTBEAT_S = 0.8
"""A member hears of what concerns it within this time."""


class Notice(NamedTuple):
    """What the coordinator sends: a share of a generation, or (None) that it is over."""

    partitions: frozenset[int] | None
    generation: int = 0
    request: int = 0
    """The number of its member's request that a share answers."""


class Group:
    """One group on one topic."""

    def __init__(
        self, broker: "Broker", topic: str, scheduler: Scheduler, chance: random.Random
    ) -> None:
        self._broker, self._topic = broker, topic
        self._scheduler, self._chance = scheduler, chance
        self.offsets: dict[int, int] = {}
        self.members: dict[GroupReader, frozenset[int]] = {}
        """The members, in the order of their joining, and what they had last."""
        self._joined: dict[GroupReader, None] = {}
        self._generation = 0
        self._is_balancing = False

    def is_current(self, member: "GroupReader", notice: Notice) -> bool:
        """Return whether a share still is one when its member gets to it."""
        is_answer = notice.request == member.requests
        return is_answer and notice.generation == self._generation and member in self.members

    def join(self, member: "GroupReader") -> None:
        """Take a member in, or note that it has handed its partitions back."""
        if member not in self.members:
            self.members[member] = frozenset()
            self._is_balancing = False
        if not self._is_balancing:
            self._begin(member)
        self._joined[member] = None
        self._share()

    def leave(self, member: "GroupReader") -> None:
        """Let a member go."""
        if self.members.pop(member, None) is not None:
            self._joined.pop(member, None)
            self.rebalance()

    def expel(self, member: "GroupReader") -> None:
        """End a member's session; it hears of it with a heartbeat."""
        if member in self.members:
            self._send(member, Notice(None))
            self.leave(member)

    def rebalance(self) -> None:
        """Share the partitions anew."""
        if self.members:
            self._begin(None)

    def _begin(self, first: "GroupReader | None") -> None:
        self._is_balancing = True
        self._generation += 1
        self._joined = {}
        for member in self.members:
            if member is not first:
                self._send(member, Notice(None))
        self._scheduler.after(REBALANCE_S, self._go_on_without, self._generation)

    def _go_on_without(self, generation: int) -> None:
        """Leave those out that did not join in time."""
        if generation == self._generation and self._is_balancing:
            self.members = {
                member: had for member, had in self.members.items() if member in self._joined
            }
            self._share()

    def _share(self) -> None:
        if not self._is_balancing or len(self._joined) < len(self.members):
            return
        self._is_balancing = False
        shares = _sticky(self.members, len(self._broker._topics.get(self._topic, ())))  # noqa: SLF001 -- its server
        for member, share in shares.items():
            self.members[member] = share
            self._send(member, Notice(share, self._generation, member.arrived))

    def _send(self, member: "GroupReader", notice: Notice) -> None:
        within_s = HEARTBEAT_S if notice.partitions is None else 0.01
        self._scheduler.after(self._chance.random() * within_s, _hand_over, member, notice)


def _hand_over(member: "GroupReader", notice: Notice) -> None:
    member.log.process.loop.call_soon(member.notify, notice)


def _sticky(
    former: "dict[GroupReader, frozenset[int]]", partitions: int
) -> "dict[GroupReader, frozenset[int]]":
    """Share the partitions out evenly, moving as few as can be."""
    shares: dict[GroupReader, list[int]] = {}
    free = set(range(partitions))
    for member, had in former.items():
        shares[member] = sorted(had & free)
        free -= had
    for partition in sorted(free):
        min(shares.values(), key=len, default=[]).append(partition)
    while shares:
        most, least = max(shares.values(), key=len), min(shares.values(), key=len)
        if len(most) - len(least) <= 1:
            break
        least.append(most.pop())
    return {member: frozenset(share) for member, share in shares.items()}


class Groups:
    """All groups of a broker."""

    def __init__(self, broker: "Broker", chance: random.Random) -> None:
        self._broker, self._chance = broker, chance
        self.groups: dict[tuple[str, str], Group] = {}

    def of(self, name: str, topic: str) -> Group:
        """Return a group, which begins when it is first asked for."""
        group = self.groups.get((name, topic))
        if group is None:
            group = self.groups[name, topic] = Group(
                self._broker, topic, self._broker.scheduler, self._chance
            )
        return group
