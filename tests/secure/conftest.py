"""One secured Kafka and Redis for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.conftest import require
from tests.secure.documented import kafka_acls, redis_acl
from tests.secure.services import PASSWORD, Secured


@pytest.fixture(scope="package")
def secured_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The authorities and certificates; services are started by those who need them."""
    made: list[Secured] = []

    def make() -> str:
        made.append(Secured(tmp_path_factory.mktemp("secured")))
        return ""

    require(make)
    yield made[0]
    made[0].stop()


@pytest.fixture(scope="package")
def secured_kafka(secured_folder: Secured) -> Secured:
    """A Kafka with a listener of every kind, users and access control."""
    require(secured_folder.start_kafka)
    return secured_folder


@pytest.fixture(scope="package")
def secured_redis(secured_folder: Secured) -> Secured:
    """A Redis with TLS and users, and one that asks for clients' certificates."""
    require(secured_folder.start_redis)
    require(lambda: secured_folder.start_redis(mutual=True))
    return secured_folder


@pytest.fixture(scope="package")
def granted(secured_kafka: Secured, secured_redis: Secured) -> Secured:
    """Kafka and Redis with the document's users and their rights, and none besides."""
    secured_kafka.acl(*kafka_acls())
    for user in ("projector", "reader", "controller"):
        rules = redis_acl(user, password=PASSWORD)
        secured_redis.redis().execute_command("ACL", "SETUSER", user, "reset", *rules)  # type: ignore[no-untyped-call]  # redis-py
    return secured_kafka
