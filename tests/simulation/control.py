"""The scenario of the control plane: the executor of compactions over the twins, by a seed."""

from tests.simulation.invariants import violations
from tests.simulation.virtual_loop import run_virtually
from tests.simulation.world import World


async def _run(world: World) -> list[str]:
    await world.run()
    return await violations(world)


def run_world(world: World) -> str | None:
    """Run a world; return what is wrong after it."""
    try:
        found = run_virtually(_run(world))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is the run's failure
        return f"{type(error).__name__}: {error}"
    return "; ".join(found) or None


def result_of(seed: int) -> str | None:
    """Return what is wrong after the run of a seed."""
    return run_world(World(seed))


def shrink(seed: int, violation: str) -> tuple[list[str], str]:
    """Return the fewest acts of a seed that still fail, and what is wrong after them."""
    world = World(seed)
    run_world(world)
    skipped: frozenset[int] = frozenset()
    size = number = world.acts
    while size:
        for begin in range(0, number, size):
            fewer = skipped | frozenset(range(begin, min(begin + size, number)))
            smaller = World(seed, fewer)
            result = None if fewer == skipped else run_world(smaller)
            if result is not None:
                skipped, world, violation = fewer, smaller, result
        size //= 2
    return world.done, violation
