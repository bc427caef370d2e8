"""Checks of Redis (is it reachable, does it keep its data, has it room) and of the clocks."""

from collections.abc import Iterator

from schemas.topics import MIB
from streams.flow.doctor.facts import AHEAD_MS, Expected, Facts, UnknownFactError
from streams.flow.doctor.findings import Result, check, error, note, ok, skipped, warning
from streams.flow.doctor.words import age, listed, number, size
from streams.ports.inspection import Configs, Failure, StoreFacts

_LEAST_VERSION = (6, 2)
"""The first with ZMSCORE."""

_FULL = 0.9
_FILLING = 0.75
"""Above this there is little time to make room."""

_FRAGMENTED = 1.5
_SMALL_BYTES = 256 * MIB
"""A smaller Redis always seems fragmented: its own code is most of its memory."""

_SLOW_MS = 20.0
_SKEW_MS = 1_000
"""Ages are shown in seconds."""


def _store(facts: Facts) -> StoreFacts:
    if isinstance(facts.store, Failure):
        if facts.store.kind == "unset":
            raise UnknownFactError(facts.store.text)
        reason = "does not answer" if facts.store.kind == "away" else "refuses access"
        raise UnknownFactError(f"Redis {reason}")
    return facts.store


def _info(facts: Facts) -> Configs:
    store = _store(facts)
    if isinstance(store.info, Failure):
        raise UnknownFactError(f"INFO: {store.info.text}")
    return store.info


def _config(facts: Facts) -> Configs:
    """Return the configuration: nothing where CONFIG is disabled, as in most managed services."""
    configs = _store(facts).configs
    return {} if isinstance(configs, Failure) else configs


def _set(config: str) -> str:
    return (
        f"`redis-cli CONFIG SET {config}`, and `{config}` in redis.conf; in a managed service, the "
        "parameter of this name"
    )


@check("redis.reachable")
def reachable(facts: Facts, _: Expected) -> Iterator[Result]:
    """All readers read Redis."""
    if isinstance(facts.store, Failure) and facts.store.kind == "unset":
        remedy = "Start one with `contextgauge stack up`, or set CONTEXTGAUGE_REDIS_URL"
        yield error(facts.store.text, remedy)
    elif isinstance(facts.store, Failure) and facts.store.kind == "away":
        yield error(
            facts.store.text,
            "Start it (`contextgauge stack up` starts Kafka and Redis on this machine), or correct "
            "CONTEXTGAUGE_REDIS_URL",
        )
    yield ok("it answers")


@check("redis.access")
def access(facts: Facts, _: Expected) -> Iterator[Result]:
    """No client can read or write what Redis refuses."""
    store = facts.store
    if isinstance(store, Failure) and store.kind in {"unset", "away"}:
        _store(facts)
    if isinstance(store, Failure):
        remedy = "Correct the Redis user and password, the TLS files, or the user's ACL"
        yield error(f"refused: {store.text}", remedy)
    yield ok("access granted")


@check("redis.version")
def version(facts: Facts, _: Expected) -> Iterator[Result]:
    """The project worker uses ZMSCORE, which Redis has since 6.2."""
    reported = _info(facts).get("redis_version", "")
    numbers = tuple(int(part) for part in reported.split(".")[:2] if part.isdigit())
    figures = {"version": reported}
    if not numbers:
        yield skipped("INFO does not report the version", figures=figures)
    elif numbers < _LEAST_VERSION:
        yield error(f"Redis {reported}", "Upgrade Redis to 6.2 or later", figures=figures)
    yield ok(f"Redis {reported}", figures)


@check("redis.role")
def role(facts: Facts, _: Expected) -> Iterator[Result]:
    """A replica rejects writes, so the views would not change."""
    info = _info(facts)
    figures = {"replicas": number(info, "connected_slaves")}
    if info.get("role", "master") != "master":
        master = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        yield error(
            f"this is a replica of {master}",
            f"Set CONTEXTGAUGE_REDIS_URL to the master, {master}",
            figures=figures,
        )
    yield ok("it accepts writes", figures)


@check("redis.cluster")
def cluster(facts: Facts, _: Expected) -> Iterator[Result]:
    """contextgauge does not support Redis Cluster."""
    if _info(facts).get("cluster_enabled") == "1":
        yield error(
            "this is a node of a Redis Cluster",
            "Set CONTEXTGAUGE_REDIS_URL to a single Redis (cluster-enabled no)",
        )
    yield ok("it is a single Redis")


@check("redis.persistence")
def persistence(facts: Facts, _: Expected) -> Iterator[Result]:
    """Without its append-only file Redis restarts empty, and the views must be rebuilt."""
    info, config = _info(facts), _config(facts)
    fsync = config.get("appendfsync", "unknown")
    if info.get("loading") == "1":
        yield warning(
            "it is loading its data and serves nothing until then",
            "Wait: `redis-cli INFO persistence` shows loading_eta_seconds",
        )
    elif info.get("aof_last_write_status", "ok") != "ok":
        yield error(
            "the last write to the append-only file failed: Redis rejects writes",
            "Free disk space, and see the log of Redis",
        )
    elif info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield error(
            "the last snapshot failed: by default Redis rejects writes until one succeeds",
            "Free disk space and memory for the fork, then `redis-cli BGSAVE`",
        )
    elif info.get("aof_enabled") != "1":
        effect = "empties it" if config.get("save") == "" else "restores its last snapshot"
        yield warning(f"appendonly is off: a restart {effect}", _set("appendonly yes"))
    elif fsync == "no":
        yield warning(
            "appendfsync=no: a crash of the machine loses up to half a minute, which the workers "
            "read again from the log",
            _set("appendfsync everysec"),
        )
    yield ok(f"append-only file, appendfsync={fsync}")


@check("redis.eviction")
def eviction(facts: Facts, _: Expected) -> Iterator[Result]:
    """Each evicted key makes the project worker rebuild all views; readers miss sessions."""
    info = _info(facts)
    policy = _config(facts).get("maxmemory-policy") or info.get("maxmemory_policy")
    evicted = number(info, "evicted_keys")
    figures = {"evicted_keys": evicted}
    if not policy:
        yield skipped("neither CONFIG nor INFO reports the policy", figures=figures)
    elif policy != "noeviction":
        text = f"maxmemory-policy={policy}: keys may be evicted; {evicted:,} were since the start"
        yield error(text, _set("maxmemory-policy noeviction"), figures=figures)
    elif evicted:
        yield warning(
            f"noeviction now, but {evicted:,} keys were evicted since the start",
            "A project worker that misses one rebuilds the views; `redis-cli CONFIG RESETSTAT` "
            "resets the count",
            figures=figures,
        )
    yield ok("noeviction", figures)


@check("redis.memory")
def memory(facts: Facts, _: Expected) -> Iterator[Result]:
    """A full Redis rejects writes, and the views fall behind."""
    info, views = _info(facts), facts.views
    used, limit = number(info, "used_memory"), number(info, "maxmemory")
    room = limit or number(info, "total_system_memory")
    # Where a service hides what Redis itself takes, everything counts as data.
    rebuilt = used + (number(info, "used_memory_dataset") or used)
    share = used / room if room else 0.0
    is_building = not isinstance(views, Failure) and views.generations.next is not None
    figures = {"used_bytes": used, "limit_bytes": limit}
    of_room = f" of {size(room)} ({share:.0%})" if room else ""
    text = f"{size(used)} used{of_room}" + ("" if limit else ", maxmemory is not set")
    if share >= _FILLING:
        report = error if share >= _FULL else warning
        yield report(
            text,
            "Raise maxmemory, add memory, or lower CONTEXTGAUGE_SESSION_IDLE_DAYS; a rebuild needs "
            "twice the room",
            figures=figures,
        )
    elif room and rebuilt > room and not is_building:
        yield warning(
            f"{text}: too little for a rebuild, which takes {size(rebuilt)} in all",
            "Raise maxmemory: workers start a rebuild when documents are lost, and it would not "
            "finish",
            figures=figures,
        )
    elif not limit:
        remedy = "Set maxmemory, so that Redis rejects writes before the system kills it"
        yield note(text, remedy, figures=figures)
    yield ok(text, figures)


@check("redis.fragmentation")
def fragmentation(facts: Facts, _: Expected) -> Iterator[Result]:
    """Memory that is held but unused is not available to others."""
    info = _info(facts)
    used, held = number(info, "used_memory"), number(info, "used_memory_rss")
    ratio = held / used if used else 1.0
    text = f"{size(held)} held for {size(used)} used"
    if held >= _SMALL_BYTES and ratio >= _FRAGMENTED:
        yield warning(f"{text} ({ratio:.1f} times)", _set("activedefrag yes"))
    yield ok(text)


@check("redis.latency")
def latency(facts: Facts, _: Expected) -> Iterator[Result]:
    """Each batch waits for some round trips."""
    pings_ms = sorted(_store(facts).pings_ms)
    if not pings_ms:
        raise UnknownFactError("no ping was answered")
    median_ms, most_ms = round(pings_ms[len(pings_ms) // 2], 3), round(pings_ms[-1], 3)
    figures = {"median_ms": median_ms, "most_ms": most_ms}
    text = f"a round trip takes {median_ms:.1f} ms, at most {most_ms:.1f} ms"
    if median_ms >= _SLOW_MS:
        remedy = "Run workers near Redis; `redis-cli SLOWLOG GET` shows slow commands"
        yield warning(text, remedy, figures=figures)
    yield ok(text, figures)


@check("redis.rights")
def rights(facts: Facts, _: Expected) -> Iterator[Result]:
    """A command that is refused in the middle of a batch stops the project worker."""
    denied = _store(facts).denied
    if isinstance(denied, Failure):
        raise UnknownFactError(f"needs MULTI: {denied.text}")
    figures = {"denied": len(denied)}
    if denied:
        yield error(
            f"{listed(denied)} refused: {next(iter(denied.values()))}",
            "If it is a matter of rights, `redis-cli ACL SETUSER NAME +COMMAND ~PREFIX:*`; "
            "otherwise see the other findings on Redis",
            figures=figures,
        )
    yield ok("all commands in use are allowed", figures)


@check("clock.redis")
def redis_clock(facts: Facts, _: Expected) -> Iterator[Result]:
    """Ages are differences between this machine's clock and others'."""
    clock = _store(facts).clock
    if isinstance(clock, Failure):
        raise UnknownFactError(f"TIME: {clock.text}")
    apart_ms = abs(clock.ahead_ms)
    figures = {"ahead_ms": clock.ahead_ms, "uncertainty_ms": clock.uncertainty_ms}
    if apart_ms - clock.uncertainty_ms > _SKEW_MS:
        direction = "ahead of" if clock.ahead_ms > 0 else "behind"
        text = f"the clock of Redis is {age(apart_ms)} {direction} this machine's"
        yield warning(text, "Synchronise both clocks by NTP", figures=figures)
    yield ok(f"within {max(apart_ms, clock.uncertainty_ms)} ms", figures)


@check("clock.kafka")
def kafka_clock(facts: Facts, _: Expected) -> Iterator[Result]:
    """Kafka applies retention and its limit on timestamps by the brokers' clocks."""
    if isinstance(facts.kafka.cluster, Failure) and facts.kafka.cluster.kind == "unset":
        raise UnknownFactError(facts.kafka.cluster.text)
    newest_ms = getattr(facts.kafka.keying, "newest_append_ms", None)
    if newest_ms is None:
        raise UnknownFactError(
            "Kafka does not report its time, and no topic has timestamps from brokers"
        )
    ahead_ms = newest_ms - facts.now_ms
    figures = {"ahead_ms": ahead_ms}
    if ahead_ms > AHEAD_MS:
        text = f"a broker's clock is at least {age(ahead_ms)} ahead of this machine's"
        remedy = "Synchronise the brokers' clocks and this machine's by NTP"
        yield warning(text, remedy, figures=figures)
    yield ok("no timestamp from a broker is ahead of this machine's clock", figures)


CHECKS = (
    reachable,
    access,
    version,
    role,
    cluster,
    persistence,
    eviction,
    memory,
    fragmentation,
    latency,
    rights,
    redis_clock,
    kafka_clock,
)
