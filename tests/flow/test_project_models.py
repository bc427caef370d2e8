"""Aggregates by model are capped: the first models of the log have a name, the rest are `other`."""

from schemas.views import MAX_MODELS, Aggregates
from streams.codec import view_codec
from tests.core.history import History
from tests.doubles.view_store import FaultyViews
from tests.flow.project_kit import Logged, batches, on_log, project_all, stored, wanted


async def test_models_are_counted_by_name_up_to_a_cap() -> None:
    """The same ones however often the projector begins again."""
    history = History()
    records = [Logged(history.boundary(model=f"model-{n}")) for n in range(MAX_MODELS + 20)]
    again = [Logged(history.boundary(model=f"model-{n}")) for n in (0, MAX_MODELS + 5)]
    log = on_log([*records, *again])
    store = FaultyViews()
    for batch in batches(log, range(0, len(log), 30)):
        await project_all(store, [batch])
    stats = stored(store).stats
    assert stored(store) == wanted(log)
    by_model = [name for name in stats if name.startswith(b"model:")]
    assert len(by_model) == MAX_MODELS + 1
    other = view_codec.decode(Aggregates, stats[b"model:other"])
    first = view_codec.decode(Aggregates, stats[b"model:model-0"])
    assert other.automatic.succeeded + other.manual.succeeded == 21
    assert first.automatic.succeeded + first.manual.succeeded == 2
