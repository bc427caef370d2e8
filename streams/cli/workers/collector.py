"""How a worker's process looks for garbage: among what is young, and seldom."""

import gc

_YOUNG_OBJECTS = 100_000
"""How many more objects there are when the young ones are looked through, some 5 ms of work. By
default it is 700, and a batch's messages, all still needed, are looked through again and again:
a sixth of the time of a derive worker."""

_YOUNG_ROUNDS = 10
"""Rounds until those that survived one are looked through too, as by default."""

_NEVER = 2**31 - 1


def look_among_the_young() -> None:
    """Let the process's collector look through young objects, and never through all of them.

    Sessions hold no cycles, and nor do messages or records: what is dropped goes at once, by its
    count. To look through all that lives would find nothing and stop a worker of a million sessions
    for seconds; `membership` does so when one has failed, for errors hold the frames they came by.
    """
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_ROUNDS, _NEVER)
