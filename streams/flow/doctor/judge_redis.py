"""Judges Redis: whether it keeps what it is given, and has room for it."""

import math
from collections.abc import Mapping

from schemas.topics import MIB
from streams.flow.doctor.catalogue import CheckId, Figures, Report
from streams.flow.doctor.facts import Facts
from streams.flow.doctor.words import age, listed, size
from streams.ports.inspection import Failure, StoreFacts

_LEAST_VERSION = (6, 2)

_FULL = 0.9
_FILLING = 0.75
"""Above it there is little time to make room."""

_WASTEFUL = 1.5
_WORTH_BYTES = 256 * MIB
"""A small Redis always seems fragmented: its own code is most of it."""

_SLOW_MS = 20.0
_SKEW_MS = 1_000
"""Ages are told in seconds."""

_CHECKS: tuple[CheckId, ...] = (
    "redis.version",
    "redis.role",
    "redis.cluster",
    "redis.persistence",
    "redis.eviction",
    "redis.memory",
    "redis.fragmentation",
    "redis.latency",
    "redis.rights",
    "clock.redis",
)

_START = (
    "Is it running? `contextgauge stack up` starts Kafka and Redis on this machine; for another "
    "correct CONTEXTGAUGE_REDIS_URL"
)
_ACCESS = "Correct the user and password in the settings of Redis, its TLS files, or the user's ACL"


def judge_redis(report: Report, facts: Facts) -> None:
    """Judge Redis, and the difference of clocks."""
    store = facts.store
    if isinstance(store, Failure):
        if store.kind == "away":
            report.add("redis.reachable", "error", store.text, mend=_START)
            report.skip("Redis is away", "redis.access", *_CHECKS)
        else:
            report.ok("redis.reachable", "it answers")
            report.add("redis.access", "error", f"refused: {store.text}", mend=_ACCESS)
            report.skip("Redis refuses us", *_CHECKS)
        return
    report.ok("redis.reachable", "it answers")
    report.ok("redis.access", "it lets us in")
    _latency(report, store)
    _rights(report, store)
    _clock(report, store)
    if isinstance(store.info, Failure):
        report.skip(f"INFO: {store.info.text}", *[item for item in _CHECKS if not report.has(item)])
        return
    info = store.info
    _version(report, info)
    _role(report, info)
    _cluster(report, info)
    _persistence(report, store, info)
    _eviction(report, store, info)
    views = facts.views
    is_building = not isinstance(views, Failure) and views.generations.next is not None
    _memory(report, info, is_building=is_building)


def _version(report: Report, info: Mapping[str, str]) -> None:
    told = info.get("redis_version", "")
    version = tuple(int(part) for part in told.split(".")[:2] if part.isdigit())
    if not version:
        report.skip("INFO tells no version", "redis.version")
    elif version < _LEAST_VERSION:
        report.add("redis.version", "error", f"Redis {told}", mend="Upgrade it to 6.2 or later")
    else:
        report.ok("redis.version", f"Redis {told}", figures={"version": told})


def _role(report: Report, info: Mapping[str, str]) -> None:
    role = info.get("role", "master")
    if role == "master":
        report.ok(
            "redis.role", "it takes writes", figures={"replicas": _number(info, "connected_slaves")}
        )
    else:
        master = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        report.add(
            "redis.role",
            "error",
            f"it is a replica of {master}",
            mend=f"Set CONTEXTGAUGE_REDIS_URL to the master, {master}",
        )


def _cluster(report: Report, info: Mapping[str, str]) -> None:
    if info.get("cluster_enabled") == "1":
        report.add(
            "redis.cluster",
            "error",
            "it is a node of a Redis Cluster",
            mend="Set CONTEXTGAUGE_REDIS_URL to a single Redis (cluster-enabled no)",
        )
    else:
        report.ok("redis.cluster", "it is a single Redis")


def _config(store: StoreFacts, name: str) -> str | None:
    """Return a setting; None where CONFIG is not allowed, as in most managed services."""
    return None if isinstance(store.configs, Failure) else store.configs.get(name)


def _set(setting: str, value: str) -> str:
    return (
        f"`redis-cli CONFIG SET {setting} {value}`, and `{setting} {value}` in redis.conf; in a "
        "managed service, its parameter of this name"
    )


def _persistence(report: Report, store: StoreFacts, info: Mapping[str, str]) -> None:
    check: CheckId = "redis.persistence"
    if info.get("loading") == "1":
        report.add(
            check,
            "warning",
            "it is reading its file, and answers nobody until it has",
            mend="Wait: INFO persistence tells loading_eta_seconds",
        )
        return
    if info.get("aof_last_write_status", "ok") != "ok":
        report.add(
            check,
            "error",
            "the last write to its append-only file failed: it refuses writes",
            mend="Make room on its disk, and look at its log",
        )
        return
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        report.add(
            check,
            "error",
            "its last snapshot failed: by default it refuses writes until one succeeds",
            mend="Make room on its disk and memory for the fork, then `redis-cli BGSAVE`",
        )
        return
    if info.get("aof_enabled") != "1":
        snapshots = _config(store, "save")
        told = (
            "a restart goes back to its last snapshot"
            if snapshots or snapshots is None
            else "a restart empties it"
        )
        report.add(
            check,
            "warning",
            f"appendonly is off: {told}",
            mend=_set("appendonly", "yes"),
        )
        return
    fsync = _config(store, "appendfsync")
    if fsync == "no":
        report.add(
            check,
            "warning",
            "appendfsync=no: a machine's crash loses what its system has not written yet, up to "
            "half a minute; the workers read it again from the log",
            mend=_set("appendfsync", "everysec"),
        )
    else:
        report.ok(check, "append-only file" + (f", appendfsync={fsync}" if fsync else ""))


def _eviction(report: Report, store: StoreFacts, info: Mapping[str, str]) -> None:
    policy = _config(store, "maxmemory-policy") or info.get("maxmemory_policy")
    evicted = _number(info, "evicted_keys")
    if policy is None:
        report.skip("neither CONFIG nor INFO tells the policy", "redis.eviction")
    elif policy != "noeviction":
        lost = f", and {evicted:,} keys were since it started" if evicted else ""
        report.add(
            "redis.eviction",
            "error",
            f"maxmemory-policy={policy}: keys may be thrown away{lost}",
            mend=_set("maxmemory-policy", "noeviction"),
            figures={"evicted_keys": evicted},
        )
    elif evicted:
        report.add(
            "redis.eviction",
            "warning",
            f"noeviction now, but {evicted:,} keys were thrown away since it started",
            mend="A project worker that misses one builds the views anew by itself; "
            "`redis-cli CONFIG RESETSTAT` sets the count back",
            figures={"evicted_keys": evicted},
        )
    else:
        report.ok("redis.eviction", "noeviction", figures={"evicted_keys": 0})


def _memory(report: Report, info: Mapping[str, str], *, is_building: bool) -> None:
    used, limit = _number(info, "used_memory"), _number(info, "maxmemory")
    # Of a service that hides what Redis needs for itself, all counts as data.
    data = _number(info, "used_memory_dataset") or used
    machine = _number(info, "total_system_memory")
    figures: Figures = {"used_bytes": used, "limit_bytes": limit}
    room = limit or machine
    told = f"{size(used)} used" + (f" of {size(room)}" if room else "")
    if not limit:
        told += ", all that the machine has: maxmemory is not set" if machine else ", no maxmemory"
    part = used / room if room else 0.0
    if part >= _FILLING:
        report.add(
            "redis.memory",
            "error" if part >= _FULL else "warning",
            f"{told} ({part:.0%})",
            mend="Raise maxmemory, give the machine more memory, or lower "
            "CONTEXTGAUGE_SESSION_IDLE_DAYS; a rebuild needs twice the room",
            figures=figures,
        )
    elif room and not is_building and used + data > room:
        report.add(
            "redis.memory",
            "warning",
            f"{told} ({part:.0%}): too little for a rebuild, which holds the views twice, "
            f"{size(used + data)} in all",
            mend="Raise maxmemory before a rebuild; the workers begin one by themselves where "
            "documents are lost, and it would stand still",
            figures=figures,
        )
    elif not limit:
        report.add(
            "redis.memory",
            "note",
            told,
            mend="Set maxmemory to what the machine can spare, so that Redis refuses writes "
            "before the system ends it",
            figures=figures,
        )
    else:
        report.ok("redis.memory", f"{told} ({part:.0%})", figures=figures)
    held = _number(info, "used_memory_rss")
    ratio = held / used if used else 1.0
    if held >= _WORTH_BYTES and ratio >= _WASTEFUL:
        report.add(
            "redis.fragmentation",
            "warning",
            f"{size(held)} held for {size(used)} used ({ratio:.1f} times)",
            mend=_set("activedefrag", "yes"),
        )
    else:
        report.ok("redis.fragmentation", f"{size(held)} held for {size(used)} used")


def _latency(report: Report, store: StoreFacts) -> None:
    if not store.pings_ms:
        report.skip("no ping was answered", "redis.latency")
        return
    usual = sorted(store.pings_ms)[len(store.pings_ms) // 2]
    told = f"a round trip takes {usual:.1f} ms, {max(store.pings_ms):.1f} ms at most"
    figures: Figures = {"median_ms": round(usual, 3), "most_ms": round(max(store.pings_ms), 3)}
    if usual >= _SLOW_MS:
        report.add(
            "redis.latency",
            "warning",
            told,
            mend="Run workers and Redis in one place; `redis-cli SLOWLOG GET` tells what keeps it",
            figures=figures,
        )
    else:
        report.ok("redis.latency", told, figures=figures)


def _rights(report: Report, store: StoreFacts) -> None:
    denied = store.denied
    if isinstance(denied, Failure):
        report.skip(f"cannot be tried without MULTI: {denied.text}", "redis.rights")
    elif denied:
        first = next(iter(denied.values()))
        report.add(
            "redis.rights",
            "error",
            f"{listed(list(denied), 8)} refused: {first}",
            mend="If it is a matter of rights, `redis-cli ACL SETUSER NAME +COMMAND ~PREFIX:*` for "
            "the user of the settings; else see the other findings on Redis",
            figures={"denied": len(denied)},
        )
    else:
        report.ok("redis.rights", "all commands that are used are allowed")


def _clock(report: Report, store: StoreFacts) -> None:
    clock = store.clock
    if isinstance(clock, Failure):
        report.skip(f"TIME: {clock.text}", "clock.redis")
        return
    apart = math.fabs(clock.ahead_ms)
    way = "ahead of" if clock.ahead_ms > 0 else "behind"
    figures: Figures = {"ahead_ms": clock.ahead_ms, "uncertainty_ms": clock.uncertainty_ms}
    if apart - clock.uncertainty_ms > _SKEW_MS:
        report.add(
            "clock.redis",
            "warning",
            f"Redis's clock is {age(int(apart))} {way} this machine's",
            mend="Set both clocks by NTP",
            figures=figures,
        )
    else:
        report.ok(
            "clock.redis", f"within {max(int(apart), clock.uncertainty_ms)} ms", figures=figures
        )


def _number(info: Mapping[str, str], name: str) -> int:
    value = info.get(name, "0")
    return int(value) if value.lstrip("-").isdigit() else 0
