"""What is wrong where topics that belong together have different numbers of partitions."""

from collections.abc import Mapping

from schemas.topics import CONTEXT_COMMANDS


def counts_differ(counts: Mapping[str, int | None]) -> str:
    """Return the error, with what to do about it.

    The topic of commands may just be deleted: it holds the requests of the last days, and
    thresholds that were set.
    """
    differing = ", ".join(f"{name} has {count}" for name, count in counts.items())
    error = (
        f"partition counts differ ({differing}): a session must have the same partition in all; "
    )
    odd = [name for name in counts if name.endswith(CONTEXT_COMMANDS.name)]
    if len({count for name, count in counts.items() if name not in odd}) == 1:
        return (
            f"{error}delete {odd[0]}, which holds only commands and thresholds of the control "
            "plane, and run `contextgauge topics create`"
        )
    return f"{error}recreate the wrong topics, or use another CONTEXTGAUGE_TOPIC_PREFIX"
