"""How every view store gives the documents of one moment, as an audit reads them."""

from schemas.topics import DAY_MS
from streams.ports import Entry, PartitionDocuments, SessionDocuments, ViewChanges
from tests.contract.stores import NOTHING, StoreUnderTest, store_under_test

under_test = store_under_test

FULL = ViewChanges(
    leaving={},
    views={b"a": b"view", b"b": b"other"},
    compactions={(b"a", b"%d" % n): b"document %d" % n for n in range(600)},
    entries=[
        ("events", b"a", Entry(0, b"e0")),
        ("readings", b"a", Entry(1, b"r1")),
        ("events", b"a", Entry(4, b"e4")),
    ],
    recent={b"a": 5, b"b": 7},
    pressure={b"a": 45.67},
    idle={b"a": 10, b"b": 10},
    stats={b"total": b"t"},
    live=[Entry(0, b"l0"), Entry(4, b"l4")],
    agents={(b"g", b"a"): 5},
)

NO_SESSIONS = {"recent": 0, "pressure": 0, "idle": 0, "left": 0}
EMPTY = SessionDocuments(None, {}, [], [], {})


async def test_what_is_not_there_has_no_position(under_test: StoreUnderTest) -> None:
    nothing = PartitionDocuments({}, [], NO_SESSIONS)
    assert await under_test.store.partition_documents(1, 0) == (None, nothing)
    assert await under_test.store.session_documents(1, 0, [b"a"]) == (None, [EMPTY])


async def test_documents_come_with_their_position(under_test: StoreUnderTest) -> None:
    store = under_test.store
    await under_test.apply(None, 0)
    await under_test.apply(0, 5, FULL)
    position, sessions = await store.session_documents(1, 0, [b"a", b"none", b"b"])
    compactions = {name: document for (_, name), document in FULL.compactions.items()}
    events, readings = [Entry(0, b"e0"), Entry(4, b"e4")], [Entry(1, b"r1")]
    a, b = (
        SessionDocuments(
            b"view", compactions, events, readings, {"recent": 5, "pressure": 45.67, "idle": 10}
        ),
        SessionDocuments(b"other", {}, [], [], {"recent": 7, "idle": 10}),
    )
    assert (position, sessions) == (5, [a, EMPTY, b])
    await under_test.apply(5, 6, NOTHING._replace(leaving={b"b": DAY_MS}))
    sizes = {"recent": 1, "pressure": 1, "idle": 1, "left": 1}
    expected = PartitionDocuments({b"total": b"t"}, FULL.live, sizes)
    assert await store.partition_documents(1, 0) == (6, expected)
    left = EMPTY._replace(scores={"left": DAY_MS})
    assert await store.session_documents(1, 0, [b"b"]) == (6, [left])


async def test_names_of_sessions_come_in_pieces(under_test: StoreUnderTest) -> None:
    store = under_test.store
    await under_test.apply(None, 0)
    recent = {b"%d" % number: number for number in range(1_000)}
    await under_test.apply(0, 5, NOTHING._replace(recent=recent))
    cursor, names = await store.session_names(1, 0)
    # Its last pieces may be empty: Redis answers by slots of its table.
    assert not cursor or len(names) < len(recent)
    while cursor:
        cursor, more = await store.session_names(1, 0, cursor)
        assert len(more) < len(recent)
        names += more
    assert sorted(set(names)) == sorted(recent)
