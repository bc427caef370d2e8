"""Values of Redis (is it reachable, does it keep its data, has it room) and of the clocks."""

from collections.abc import Iterator

from schemas.topics import MIB
from streams.flow.doctor.facts import AHEAD_MS, Expected, Facts, UnknownFactError
from streams.flow.doctor.rules import Values
from streams.flow.doctor.words import number, size
from streams.ports.inspection import Configs, Failure, StoreFacts

_LEAST_VERSION = (6, 2)

_FULL = 0.9
_FILLING = 0.75
"""Above this there is little time to make room."""

_FRAGMENTED = 1.5
_SMALL_BYTES = 256 * MIB
"""A smaller Redis always seems fragmented: its own code is most of its memory."""

_SLOW_MS = 20.0
_SKEW_MS = 1_000
"""Ages are shown in seconds."""


def _reachable(facts: Facts, _: Expected) -> Iterator[Values]:
    store = facts.store
    kind, text = (store.kind, store.text) if isinstance(store, Failure) else ("", "")
    yield {"unset": text if kind == "unset" else "", "away": text if kind == "away" else ""}


def _access(facts: Facts, _: Expected) -> Iterator[Values]:
    store = facts.store
    if isinstance(store, Failure) and store.kind in {"unset", "away"}:
        _store(facts)
    yield {"refused": store.text if isinstance(store, Failure) else ""}


def _store(facts: Facts) -> StoreFacts:
    if isinstance(facts.store, Failure):
        if facts.store.kind == "unset":
            raise UnknownFactError(facts.store.text)
        reason = "does not answer" if facts.store.kind == "away" else "refuses access"
        raise UnknownFactError(f"Redis {reason}")
    return facts.store


def _server(facts: Facts, _: Expected) -> Iterator[Values]:
    store, views = _store(facts), facts.views
    if isinstance(store.info, Failure):
        raise UnknownFactError(f"INFO: {store.info.text}")
    info = store.info
    # CONFIG is disabled in most managed services.
    config: Configs = {} if isinstance(store.configs, Failure) else store.configs
    version = info.get("redis_version", "")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    policy = config.get("maxmemory-policy") or info.get("maxmemory_policy")
    fsync = config.get("appendfsync", "unknown")
    is_building = not isinstance(views, Failure) and views.generations.next is not None
    yield {
        "version": version,
        "not_reported": not numbers,
        "too_old": numbers < _LEAST_VERSION,
        "is_replica": info.get("role", "master") != "master",
        "master": f"{info.get('master_host', '?')}:{info.get('master_port', '?')}",
        "replicas": number(info, "connected_slaves"),
        "is_cluster": info.get("cluster_enabled") == "1",
        "loading": info.get("loading") == "1",
        "append_failed": info.get("aof_last_write_status", "ok") != "ok",
        "snapshot_failed": info.get("rdb_last_bgsave_status", "ok") != "ok",
        "append_off": info.get("aof_enabled") != "1",
        "restart": "empties it" if config.get("save") == "" else "restores its last snapshot",
        "fsync": fsync,
        "never_synced": fsync == "no",
        "policy": policy,
        "unknown_policy": not policy,
        "may_evict": policy != "noeviction",
        "evicted_keys": number(info, "evicted_keys"),
        "set": "`redis-cli CONFIG SET {0}`, and `{0}` in redis.conf; in a managed service, the "
        "parameter of this name".format,
        **_memory(info, is_building=is_building),
    }


def _memory(info: Configs, *, is_building: bool) -> Values:
    used, limit = number(info, "used_memory"), number(info, "maxmemory")
    held, room = number(info, "used_memory_rss"), limit or number(info, "total_system_memory")
    # Where a service hides what Redis itself takes, everything counts as data.
    rebuilt = used + (number(info, "used_memory_dataset") or used)
    share, ratio = used / room if room else 0.0, held / used if used else 1.0
    of_room = f" of {size(room)} ({share:.0%})" if room else ""
    return {
        "used_bytes": used,
        "limit_bytes": limit,
        "memory": f"{size(used)} used{of_room}" + ("" if limit else ", maxmemory is not set"),
        "full": share >= _FULL,
        "filling": share >= _FILLING,
        "rebuilt_bytes": rebuilt,
        "cannot_rebuild": room and rebuilt > room and not is_building,
        "unlimited": not limit,
        "held_bytes": held,
        "held_ratio": ratio,
        "fragmented": held >= _SMALL_BYTES and ratio >= _FRAGMENTED,
    }


def _pings(facts: Facts, _: Expected) -> Iterator[Values]:
    pings_ms = sorted(_store(facts).pings_ms)
    if not pings_ms:
        raise UnknownFactError("no ping was answered")
    median_ms, most_ms = round(pings_ms[len(pings_ms) // 2], 3), round(pings_ms[-1], 3)
    yield {"median_ms": median_ms, "most_ms": most_ms, "slow": median_ms >= _SLOW_MS}


def _rights(facts: Facts, _: Expected) -> Iterator[Values]:
    denied = _store(facts).denied
    if isinstance(denied, Failure):
        raise UnknownFactError(f"needs MULTI: {denied.text}")
    reason = next(iter(denied.values()), "")
    yield {"commands": list(denied), "denied": len(denied), "reason": reason}


def _redis_clock(facts: Facts, _: Expected) -> Iterator[Values]:
    clock = _store(facts).clock
    if isinstance(clock, Failure):
        raise UnknownFactError(f"TIME: {clock.text}")
    apart_ms = abs(clock.ahead_ms)
    yield {
        "ahead_ms": clock.ahead_ms,
        "uncertainty_ms": clock.uncertainty_ms,
        "apart_ms": apart_ms,
        "direction": "ahead of" if clock.ahead_ms > 0 else "behind",
        "within_ms": max(apart_ms, clock.uncertainty_ms),
        "skewed": apart_ms - clock.uncertainty_ms > _SKEW_MS,
    }


def _kafka_clock(facts: Facts, _: Expected) -> Iterator[Values]:
    if isinstance(facts.kafka.cluster, Failure) and facts.kafka.cluster.kind == "unset":
        raise UnknownFactError(facts.kafka.cluster.text)
    newest_ms = getattr(facts.kafka.keying, "newest_append_ms", None)
    if newest_ms is None:
        raise UnknownFactError(
            "Kafka does not report its time, and no topic has timestamps from brokers"
        )
    ahead_ms = newest_ms - facts.now_ms
    yield {"ahead_ms": ahead_ms, "skewed": ahead_ms > AHEAD_MS}


ITEMS = {
    "reachable": _reachable,
    "access": _access,
    "server": _server,
    "pings": _pings,
    "rights": _rights,
    "redis_clock": _redis_clock,
    "kafka_clock": _kafka_clock,
}
