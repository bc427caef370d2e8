"""One deployment to a key prefix: a worker notes its own, and stops where another is noted."""

import asyncio

import pytest

from contextgauge.errors import ConfigError
from streams.flow.common.deployment import check_topics, claim, hold
from streams.flow.common.ports import WorkerPorts
from streams.ports.deployment import Deployment
from tests.doubles.deployment import DeploymentNotes
from tests.flow.control.control_kit import until_so
from tests.flow.derive_kit import Figures, HastyClock, board
from tests.patience import PATIENCE_S

OURS, THEIRS = Deployment("cluster", ""), Deployment("cluster", "b.")


@pytest.fixture
def ports() -> WorkerPorts:
    return WorkerPorts(
        telemetry=Figures(), health=board(), clock=HastyClock(), stop=asyncio.Event()
    )


async def test_the_first_worker_notes_its_deployment_once_redis_is_there(
    ports: WorkerPorts,
) -> None:
    notes = DeploymentNotes(away=2)
    await claim(ports, notes, OURS, "cg")
    assert notes.deployment == OURS
    await claim(ports, notes, OURS, "cg")


async def test_a_worker_of_another_deployment_stops_before_it_writes_and_says_what_to_do(
    ports: WorkerPorts,
) -> None:
    notes = DeploymentNotes(THEIRS)
    with pytest.raises(ConfigError) as error:
        await claim(ports, notes, OURS, "cg")
    assert notes.deployment == THEIRS
    for words in ("cg:*", "b.context.events", "CONTEXTGAUGE_KEY_PREFIX", "rebuild --claim"):
        assert words in str(error.value)


async def test_a_running_worker_stops_where_another_has_taken_the_keys(
    ports: WorkerPorts,
) -> None:
    notes = DeploymentNotes(OURS, away=3)
    holding = asyncio.create_task(hold(ports, notes, OURS, "cg"))
    await until_so(lambda: notes.claims >= 5)
    await notes.replace(THEIRS)
    with pytest.raises(ConfigError):
        await asyncio.wait_for(holding, PATIENCE_S)


async def test_an_emptied_redis_is_noted_again(ports: WorkerPorts) -> None:
    notes = DeploymentNotes(OURS)
    holding = asyncio.create_task(hold(ports, notes, OURS, "cg"))
    notes.deployment = None
    await until_so(lambda: notes.deployment is not None)
    ports.stop.set()
    await asyncio.wait_for(holding, PATIENCE_S)
    assert notes.deployment == OURS


def test_a_reader_that_names_other_topics_is_refused_and_an_older_redis_is_read() -> None:
    check_topics("", None, "cg")
    check_topics("b.", THEIRS, "cg")
    with pytest.raises(ConfigError, match=r"rebuild --claim"):
        check_topics("", THEIRS, "cg")
