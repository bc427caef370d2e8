"""`/v1/sessions/{id}/rules`: what was found of the user's rules after the latest compaction."""

import pytest

from schemas.records import Record
from tests.core.history import History
from tests.serve.kit import GrowingViews, api_over

HISTORY = History()
FIRST = [HISTORY.boundary(number=1), HISTORY.reading(30_000)]
SUB = HISTORY.boundary(number=9, chain="a1")
SECOND = HISTORY.boundary(number=2)
CHECK = HISTORY.pins_checked(SECOND, 3, ("Never push to main.",))


@pytest.mark.parametrize(
    ("records", "rules"),
    [
        ([HISTORY.reading(5)], None),
        ([SUB], None),
        ([*FIRST, SUB], (FIRST[0].id, 1, None, None, None)),
        ([*FIRST, SUB, SECOND], (SECOND.id, 2, None, None, None)),
        ([*FIRST, SUB, SECOND, CHECK], (SECOND.id, 2, 3, 1, ["Never push to main."])),
    ],
)
async def test_the_rules_are_those_of_the_latest_compaction_of_main(
    records: list[Record], rules: tuple[object, ...] | None
) -> None:
    views = GrowingViews(partitions=1)
    views.add(*records)
    api = api_over(views)
    async with api.client:
        answer = (await api.json("/v1/sessions/s-1/rules"))["rules"]
    names = ("boundary_id", "number", "pins_kept", "pins_lost", "lost_pins")
    assert (answer and tuple(answer[name] for name in names)) == rules
