"""What can be wrong with Redis and with clocks: see `problems.py`."""

from schemas.topics import MIB
from streams.flow.doctor import Facts, Severity
from streams.ports.inspection import ClockReading, Failure
from tests.doctor.cases import AWAY, NO_REDIS, NOW, facts, keying, redis

NO_CONFIG = Failure("refused", "unknown command 'CONFIG'")

REDIS_PROBLEMS: list[tuple[str, Severity, Facts, str]] = [
    ("redis.reachable", "error", facts(store=AWAY), "no answer"),
    ("redis.reachable", "error", facts(store=NO_REDIS), "not configured"),
    ("redis.access", "error", facts(store=Failure("refused", "WRONGPASS")), "WRONGPASS"),
    ("redis.version", "error", redis({"redis_version": "6.0.9"}), "6.0.9"),
    ("redis.role", "error", redis({"role": "slave", "master_host": "m"}), "replica of m:?"),
    ("redis.cluster", "error", redis({"cluster_enabled": "1"}), "Redis Cluster"),
    ("redis.persistence", "warning", redis({"aof_enabled": "0"}), "a restart empties it"),
    (
        "redis.persistence",
        "warning",
        redis({"aof_enabled": "0"}, configs=NO_CONFIG),
        "its last snapshot",
    ),
    ("redis.persistence", "warning", redis({"loading": "1"}), "loading its data"),
    ("redis.persistence", "error", redis({"aof_last_write_status": "err"}), "append-only file"),
    ("redis.persistence", "error", redis({"rdb_last_bgsave_status": "err"}), "last snapshot"),
    ("redis.persistence", "warning", redis(configs={"appendfsync": "no"}), "appendfsync=no"),
    (
        "redis.eviction",
        "error",
        redis({"evicted_keys": "12"}, configs={"maxmemory-policy": "allkeys-lru"}),
        "allkeys-lru: keys may be evicted; 12 were",
    ),
    (
        "redis.eviction",
        "error",
        redis({"maxmemory_policy": "volatile-ttl"}, configs=NO_CONFIG),
        "volatile-ttl",
    ),
    ("redis.eviction", "warning", redis({"evicted_keys": "12"}), "12 keys were evicted"),
    ("redis.memory", "error", redis({"used_memory": str(950 * MIB)}), "950 MiB used of 1 GiB"),
    ("redis.memory", "warning", redis({"used_memory": str(800 * MIB)}), "(78%)"),
    ("redis.memory", "note", redis({"maxmemory": "0"}), "maxmemory is not set"),
    (
        "redis.memory",
        "warning",
        redis({"used_memory": str(600 * MIB), "used_memory_dataset": str(500 * MIB)}),
        "too little for a rebuild, which takes 1.1 GiB in all",
    ),
    (
        "redis.fragmentation",
        "warning",
        redis({"used_memory_rss": str(300 * MIB)}),
        "300 MiB held for 100 MiB used (3.0 times)",
    ),
    ("redis.latency", "warning", redis(pings_ms=(30.0, 31.0, 90.0)), "31.0 ms, at most 90.0 ms"),
    ("redis.rights", "error", redis(denied={"EVAL": "NOPERM no"}), "EVAL refused: NOPERM no"),
    ("clock.redis", "warning", redis(clock=ClockReading(-90_000, 1)), "90 s behind this machine's"),
    ("clock.redis", "warning", redis(clock=ClockReading(9_000, 1)), "9 s ahead of"),
    ("clock.kafka", "warning", keying(newest_append_ms=NOW + 30_000), "at least 30 s ahead"),
]
