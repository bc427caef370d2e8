"""Redis's errors as the project's own, named by the reaction that they demand.

Redis repeats the arguments of a command that it does not know: the password of an AUTH or a HELLO
that was renamed, or that an old server or a proxy lacks, and a view's content. They are cut out.
"""

import asyncio
import re
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterCrossSlotError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from contextgauge.documents import document
from contextgauge.errors import ConfigError, RetryError, StopError, WrongServerError
from contextgauge.tls import refusal

OTHER_SERVER: Final = (
    "CLUSTERDOWN",  # a node of a cluster that lost its majority, or is not part of it yet
    "LOADING",  # it starts
    "MASTERDOWN",  # a replica without its primary, which is not to answer with old data
    "NOREPLICAS",  # a primary without its replicas: they may have another one by now
    "READONLY",  # a replica
    "UNBLOCKED",  # it became a replica while a client waited for data
)
"""Codes of replies of a server that does not serve this request, where another one may.

After a failover the name in the URL leads to another server, but existing connections do not.
"""

_FOR_NOW = ("BUSY", "MISCONF", "UNKILLABLE")
"""Codes of replies by which the right Redis refuses for now: a slow script, a full disk, …"""

_ARGUMENTS = re.compile(r",? with args beginning with:.*", re.DOTALL)

_NO_RIGHT = ("ACL failure in script", "The user executing the script can't")
"""How a script is refused a command, in Redis 7 and in Redis 6."""


class OtherServerReply(RedisConnectionError):  # noqa: N818 -- named for what was received
    """A reply with a code of `OTHER_SERVER`. For the driver, the connection is broken."""

    def __str__(self) -> str:
        return f"{self.status_code} {super().__str__()}"


TIMEOUT_S: Final = 5.0
"""A reply later than this counts as lost: a script of the largest batch takes milliseconds."""


async def replied(doing: str, answer: Awaitable[Any]) -> Any:  # noqa: ANN401 -- of Redis
    """Wait for a reply within the time limit. Raises RetryError, ConfigError or StopError."""
    with _translated(doing):
        async with asyncio.timeout(TIMEOUT_S):
            return await answer


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """Turn what redis-py raises into RetryError, ConfigError or StopError."""
    try:
        with arguments_hidden():
            yield
    except (AuthenticationError, AuthorizationError, NoPermissionError) as error:
        raise ConfigError(_not_allowed(doing, error)) from error
    except TimeoutError as error:
        raise RetryError(f"Redis does not answer while {doing}") from error
    except OtherServerReply as error:
        raise WrongServerError(f"Redis refuses for now, {doing}: {error}") from error
    except (RedisConnectionError, RedisTimeoutError, OSError) as error:
        if isinstance(error.__cause__, ConfigError):  # of a file that is read when connecting
            raise error.__cause__ from None
        refused = refusal(error, "CONTEXTGAUGE_REDIS_", "the host in CONTEXTGAUGE_REDIS_URL")
        if refused is not None:
            raise ConfigError(f"Redis, {doing}: {refused}") from error
        raise RetryError(f"Redis is away while {doing}: {error}") from error
    except ResponseError as error:
        raise _refused(doing, error) from error
    except InvalidResponse as error:
        raise ConfigError(
            f"Redis, {doing}: the server there is not Redis ({error}): correct "
            "CONTEXTGAUGE_REDIS_URL"
        ) from error
    except RedisError as error:
        raise StopError(f"Redis, {doing}: {error}") from error


@contextmanager
def arguments_hidden() -> Iterator[None]:
    """Cut the arguments of a command out of Redis's error, wherever it is shown."""
    try:
        yield
    except RedisError as error:
        each: BaseException | None = error
        while each is not None:
            each.args = tuple(
                _ARGUMENTS.sub("", part) if isinstance(part, str) else part for part in each.args
            )
            each = each.__cause__ or each.__context__
        raise


def _not_allowed(doing: str, error: RedisError) -> str:
    text = str(error).rstrip(".")
    if not isinstance(error, AuthenticationError | AuthorizationError):
        rights = document("CONNECTING.md")
        return f"Redis refuses {doing}: {text}. Give its user the rights of {rights}"
    return (
        f"Redis refuses {doing}: {text}. Correct the user and password in CONTEXTGAUGE_REDIS_URL, "
        "or CONTEXTGAUGE_REDIS_USERNAME and CONTEXTGAUGE_REDIS_PASSWORD (or what its file holds)"
    )


def _refused(doing: str, error: ResponseError) -> Exception:
    text = str(error)
    if text.startswith("unknown command") and "HELLO" in text:
        return ConfigError(
            f"Redis refuses {doing}: {text}. Put ?protocol=2 behind CONTEXTGAUGE_REDIS_URL; it "
            "must be 6.2 or later"
        )
    if text.startswith(_NO_RIGHT):
        return ConfigError(_not_allowed(doing, error))
    if isinstance(error, OutOfMemoryError):
        return RetryError(
            f"Redis is out of memory while {doing}: raise its maxmemory or free some; nothing is "
            "lost meanwhile, the views only fall behind"
        )
    if isinstance(error, AskError | ClusterCrossSlotError):  # MOVED is a kind of ASK to the driver
        return ConfigError(
            f"Redis refuses {doing}: {text}. It is a node of a Redis Cluster, which is not "
            "supported: name a single Redis in CONTEXTGAUGE_REDIS_URL"
        )
    if isinstance(error, TryAgainError) or text.startswith(_FOR_NOW):
        return RetryError(f"Redis refuses for now, {doing}: {text}")
    return StopError(f"Redis refuses {doing}: {text}")
