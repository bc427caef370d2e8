"""Members of a consumer group whose configurations must be equal, as of workers with rules.

A member's metadata carries a digest of its configuration and its host, behind what the sticky
assignor writes there, which builds before this one do not read. The leader gives partitions to the
members whose digest is its own, and to those without one. Any other gets none, with the reason: it
stands by, and takes over when the leader has left. So of two workers with different rules one does
all of the work, and a rolling change of the rules ends with the new ones.
"""

import io
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyAssignorUserDataV1,
    StickyPartitionAssignor,
)
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

_MARK: Final = b"contextgauge:"
"""What our part of a member's metadata begins with; the digest, `@` and the host follow."""


class MemberConfiguration(NamedTuple):
    """What a member says of itself: the digest of its configuration, and its host's name."""

    digest: str
    host: str


@dataclass(frozen=True, slots=True)
class GroupConfiguration:
    """A member's configuration, as a digest, and what is called at each assignment.

    `assigned` gets the reason for which the leader gave it nothing, empty where it is accepted.
    """

    digest: str
    assigned: Callable[[str], None]


def configuration_of(metadata: bytes) -> MemberConfiguration | None:
    """Return what a member's metadata says of its configuration; None where it says nothing."""
    user_data = ConsumerProtocolMemberMetadata.decode(metadata).user_data if metadata else b""
    return _configuration_in(user_data)


def assignor_of(membership: GroupConfiguration | None) -> type[StickyPartitionAssignor]:
    """Return a sticky assignor for one consumer: aiokafka keeps a member's state on the class."""
    if membership is None:
        return type("OwnStickyPartitionAssignor", (StickyPartitionAssignor,), {})
    return type("OwnConfiguredAssignor", (_ConfiguredAssignor,), {"membership": membership})


class _ConfiguredAssignor(StickyPartitionAssignor):  # type: ignore[misc]  # aiokafka is not typed
    """The sticky assignor, for the members whose configuration is the leader's."""

    membership: ClassVar[GroupConfiguration]

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the member's metadata, ours behind the assignor's."""
        own = super().metadata(topics)
        sticky = own.user_data or StickyAssignorUserDataV1([], cls.DEFAULT_GENERATION_ID).encode()
        ours = _MARK + f"{cls.membership.digest}@{socket.gethostname()}".encode()
        return ConsumerProtocolMemberMetadata(own.version, own.subscription, sticky + ours)

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Assign, as the leader; who is refused gets the reason in place of partitions."""
        refused = {name for name, each in members.items() if cls._is_other(each)}
        accepted = {name: each for name, each in members.items() if name not in refused}
        assignment: dict[str, ConsumerProtocolMemberAssignment] = super().assign(cluster, accepted)
        why = f"the group's leader, on {socket.gethostname()}, has another configuration"
        for name in refused:
            none = ConsumerProtocolMemberAssignment(cls.version, [], why.encode())
            assignment[name] = none
        return assignment

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Note what the leader assigned."""
        super().on_assignment(assignment)
        cls.membership.assigned((assignment.user_data or b"").decode(errors="replace"))

    @classmethod
    def _is_other(cls, metadata: ConsumerProtocolMemberMetadata) -> bool:
        theirs = _configuration_in(metadata.user_data)
        return theirs is not None and theirs.digest != cls.membership.digest


def _configuration_in(user_data: bytes | None) -> MemberConfiguration | None:
    rest = io.BytesIO(user_data or b"")
    try:
        StickyAssignorUserDataV1.decode(rest)
    except ValueError:
        return None  # another client's
    ours = rest.read()
    if not ours.startswith(_MARK):
        return None
    digest, _, host = ours.removeprefix(_MARK).decode(errors="replace").partition("@")
    return MemberConfiguration(digest, host)
