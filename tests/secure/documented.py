"""What docs/CONNECTING.md says of rights, read from it: tests run with exactly these."""

import re
import shlex
from pathlib import Path

_TEXT = (Path(__file__).parents[2] / "docs" / "CONNECTING.md").read_text(encoding="utf-8")


def _blocks(info: str) -> list[str]:
    return re.findall(rf"^```{info}\n(.*?)^```$", _TEXT, re.MULTILINE | re.DOTALL)


def kafka_acls() -> list[list[str]]:
    """Return the arguments of each `kafka-acls.sh` but for the broker's address."""
    lines = [line for block in _blocks("shell acls") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines]
    assert all(words[:3] == ["kafka-acls.sh", "--bootstrap-server", "BROKER"] for words in commands)
    return [words[3:] for words in commands]


def redis_acl(user: str, key_prefix: str = "cg", password: str = "PASSWORD") -> list[str]:  # noqa: S107 -- the word in the document
    """Return the rules of a user, as `ACL SETUSER` takes them after the name."""
    lines = [line.split() for block in _blocks("text acl") for line in block.splitlines()]
    (rules,) = [words[2:] for words in lines if words[:2] == ["user", user]]
    return [
        rule.replace("~cg:", f"~{key_prefix}:").replace(">PASSWORD", f">{password}")
        for rule in rules
    ]
