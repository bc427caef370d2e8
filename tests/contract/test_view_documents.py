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

EMPTY = SessionDocuments(None, {}, [], [])


async def test_what_is_not_there_has_no_position(under_test: StoreUnderTest) -> None:
    nothing = PartitionDocuments({}, [], {}, {}, {}, {})
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
        SessionDocuments(b"view", compactions, events, readings),
        SessionDocuments(b"other", {}, [], []),
    )
    assert (position, sessions) == (5, [a, EMPTY, b])
    await under_test.apply(5, 6, NOTHING._replace(leaving={b"b": DAY_MS}))
    expected = PartitionDocuments(
        {b"total": b"t"}, FULL.live, {b"a": 5}, {b"a": 45.67}, {b"a": 10}, {b"b": DAY_MS}
    )
    assert await store.partition_documents(1, 0) == (6, expected)
    assert await store.session_documents(1, 0, [b"b"]) == (6, [EMPTY])
