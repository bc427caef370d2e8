"""R4 in a session as long as any: what is written again is known as long as it goes on."""

from streams.core.derivation.known_causes import BLOCK, KEPT, cause_hash, is_known
from tests.core.derivation.state_kit import with_causes
from tests.core.given import SESSION, Given, user


def test_r4_a_line_that_is_written_again_is_known_for_as_long_as_a_new_one() -> None:
    told = Given()
    old = user("old")
    told.take(old)
    rest = KEPT - BLOCK
    told.session().known = with_causes(range(rest), told.session().known)
    before = told.chain().total
    told.take(old)
    assert told.chain().total == before
    told.session().known = with_causes(range(rest, 2 * rest), told.session().known)
    assert is_known(told.session().known, cause_hash(old["uuid"]))
    told.take(old)
    assert told.chain().total == before
    assert [record.data.session_id for record in told.records].count(SESSION) == len(told.records)
