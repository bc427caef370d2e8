"""The check of what else reads records, where it runs: alerts, decisions, OpenTelemetry."""

from collections.abc import Iterator

from streams.flow.doctor.checks.progress import lag
from streams.flow.doctor.facts import Expected, Facts, known
from streams.flow.doctor.findings import Result, check, ok, warning
from streams.flow.doctor.words import counted, listed


@check("readers.lag")
def readers_lag(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Alerts, compactions of the service, and events at a collector are as late as what waits."""
    begun = known(facts.kafka.readers)
    for name, reader in begun.items():
        progress, hosts = reader.progress, reader.group.hosts
        start = f"Start `contextgauge {expected.readers[name]}`"
        waiting = sum(part.waiting for part in progress.values())
        if not hosts and waiting:
            text = f"no worker is in the group {name}, and {counted(waiting, 'record')} wait"
            remedy = f"{start}. If it is not needed any more, Kafka forgets the group in a week"
            yield warning(text, remedy, name, {"waiting": waiting})
            continue
        remedy = f"{start}, or wait if it runs and this number falls; more of them help"
        for result in lag("record", expected.events.name, facts, progress, remedy):
            if result.severity != "ok":
                yield result._replace(subject=name)
    if begun:
        yield ok(f"nothing waits for {listed(sorted(begun))}")
    else:
        yield ok("no worker besides the projection reads records")


CHECKS = (readers_lag,)
