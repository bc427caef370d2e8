"""R4 in a session as long as any: what is written again is known as long as it goes on."""

from streams.core.derivation.known_causes import BLOCK, KEPT, cause_hash, is_known
from tests.core.derivation.state_kit import with_causes
from tests.core.given import SESSION, Given, user


def test_r4_a_line_that_is_written_again_is_known_for_as_long_as_a_new_one() -> None:
    given = Given()
    old = user("old")
    given.take(old)
    rest = KEPT - BLOCK
    given.session().known = with_causes(range(rest), given.session().known)
    before = given.chain().total
    given.take(old)
    assert given.chain().total == before
    given.session().known = with_causes(range(rest, 2 * rest), given.session().known)
    assert is_known(given.session().known, cause_hash(old["uuid"]))
    given.take(old)
    assert given.chain().total == before
    assert [record.data.session_id for record in given.records].count(SESSION) == len(given.records)
