"""Which lines of a transcript of Claude Code a user rewound: they are no part of its conversation.

Each line names the one before it, its `parentUuid`; a compaction's boundary names it in
`logicalParentUuid`. From the last message back they make a chain. Off it stand results of parallel
calls, which belong to the conversation, and turns that a user took back.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.compaction.reading.lines import Line, is_boundary, is_linked, parent_of
from contextgauge.normalise.fields import mapping, name
from contextgauge.records import Json

_Place: TypeAlias = Literal["in", "out", "unknown"]


_LAST_LINKS: Final = 500
"""Of lines that are no longer there: a turn is taken back to one of the latest."""


class Link(NamedTuple):
    """A line among the others: the one before it, and whether a branch may begin with it."""

    parent: str | None
    begins: bool


class Branches:
    """The lines that have links, as they come. Those without, as in streams, are in no branch."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        self._tip: str | None = None
        self._out: set[str] = set()

    def copy(self) -> "Branches":
        """Return a copy that can be added to."""
        copy = Branches()
        copy._links, copy._tip, copy._out = dict(self._links), self._tip, set(self._out)
        return copy

    def links(self, ids: AbstractSet[str]) -> dict[str, Json]:
        """Return the last links, and those of some lines, as JSON."""
        last = dict(islice(reversed(self._links.items()), _LAST_LINKS))
        return {
            "tip": self._tip,
            "lines": [
                [uuid, link.parent, link.begins]
                for uuid, link in self._links.items()
                if uuid in ids or uuid in last
            ],
        }

    @classmethod
    def of_links(cls, value: Mapping[str, Json]) -> "Branches":
        """Return what `links` wrote."""
        branches = cls()
        tip, lines = value.get("tip"), value.get("lines")
        branches._tip = tip if isinstance(tip, str) else None
        for each in lines if isinstance(lines, list) else ():
            if isinstance(each, list):
                uuid, parent, begins = each
                link = Link(parent if isinstance(parent, str) else None, begins is True)
                branches._links[str(uuid)] = link
        return branches

    @property
    def out(self) -> set[str]:
        """The ids of lines that were taken back."""
        return self._out

    def follows(self, line: Line) -> bool:
        """Whether what a line names as the one before it is known, or it names none."""
        parent = parent_of(line)
        return parent is None or parent in self._links or not is_linked(line)

    def add(self, line: Line) -> bool:
        """Add a line, and return whether lines before it went out, or came back, because of it."""
        uuid = name(line, "uuid")
        if uuid is None or not is_linked(line):
            return False
        parent = parent_of(line)
        self._links[uuid] = Link(parent, _is_turn(line) or is_boundary(line))
        if is_boundary(line):
            self._relink(line)
        if line.get("type") not in ("user", "assistant"):
            return False
        tip, self._tip = self._tip, uuid
        if tip is None or parent == tip or not self._leaves(tip, parent):
            return False
        before, self._out = self._out, self._taken_back()
        return before != self._out

    def _relink(self, boundary: Line) -> None:
        """Let messages that a compaction preserved follow its summary, as the runtime does.

        Where the summary came along with the boundary, messages follow that.
        """
        segment = preserved_segment(boundary)
        if segment is None or segment.anchor == name(boundary, "uuid"):
            return
        if segment.head in self._links:
            self._links[segment.head] = Link(segment.anchor, begins=False)

    def _leaves(self, tip: str, parent: str | None) -> bool:
        """Whether a message after `parent` leaves a turn behind on the way from the former tip.

        Goes back from both by turns until they meet, so it costs what lies between.
        """
        left: dict[str, None] = {tip: None}
        joined: dict[str, None] = {}
        back, forth = self._before(tip), parent
        while forth is not None or back is not None:
            if forth is not None and forth not in joined:
                if forth in left:
                    return self._is_cut(left, until=forth) or not self._out.isdisjoint(joined)
                joined[forth] = None
                forth = self._before(forth)
            else:
                forth = None
            if back is not None and back not in left:
                if back in joined:
                    return self._is_cut(left, until=None) or not self._out.isdisjoint(joined)
                left[back] = None
                back = self._before(back)
            else:
                back = None
        return True

    def _before(self, uuid: str) -> str | None:
        link = self._links.get(uuid)
        return None if link is None else link.parent

    def _is_cut(self, left: Mapping[str, None], until: str | None) -> bool:
        for each in left:
            if each == until:
                return False
            if each in self._links and self._links[each].begins:
                return True
        return False

    def _taken_back(self) -> set[str]:
        chain, complete = self._chain()
        places: dict[str, _Place] = {}
        for uuid, link in self._links.items():
            place: _Place = "in"
            if uuid not in chain:
                if link.parent is not None:
                    place = places.get(link.parent, "unknown")
                elif not complete:
                    place = "unknown"
                if place == "in" and link.begins:
                    place = "out"
            places[uuid] = place
        return {uuid for uuid, place in places.items() if place == "out"}

    def _chain(self) -> tuple[set[str], bool]:
        """Return the ids from the last message back, and whether they reach the start."""
        chain: set[str] = set()
        uuid = self._tip
        while uuid is not None and uuid in self._links and uuid not in chain:
            chain.add(uuid)
            uuid = self._links[uuid].parent
        return chain, uuid is None


class PreservedSegment(NamedTuple):
    """Messages that a compaction preserved: the first, the last, and the summary before them."""

    head: str
    tail: str
    anchor: str


def preserved_segment(boundary: Line) -> PreservedSegment | None:
    """Return what a boundary says that it preserved."""
    metadata = mapping(boundary, "compact_metadata", "compactMetadata") or {}
    fields = mapping(metadata, "preserved_segment", "preservedSegment") or {}
    head, tail = name(fields, "head_uuid", "headUuid"), name(fields, "tail_uuid", "tailUuid")
    anchor = name(fields, "anchor_uuid", "anchorUuid")
    return (
        None
        if head is None or tail is None or anchor is None
        else PreservedSegment(head, tail, anchor)
    )


def _is_turn(line: Line) -> bool:
    """Whether a person says something in a line: no result of a tool, nothing of the runtime's."""
    message = line.get("message")
    if line.get("type") != "user" or line.get("isMeta") is True or not isinstance(message, dict):
        return False
    content = message.get("content")
    return isinstance(content, str) or (
        isinstance(content, list)
        and any(isinstance(each, dict) and each.get("type") != "tool_result" for each in content)
    )
