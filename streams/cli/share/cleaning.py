"""Texts without what says whose they are: secrets, paths, addresses, names of users and projects.

Known by their shape, so it is a precaution and no proof: a name that looks like any other word is
not recognised.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from contextgauge.compaction.summarisers.redaction import AFTER_ESCAPE, Redaction

_HOST: Final = r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
_DRIVE: Final = rf"(?:\b|{AFTER_ESCAPE})[A-Za-z]:"

_HEX: Final = r"[0-9A-Fa-f]"
_GROUPS: Final = rf"{_HEX}{{1,4}}(?::{_HEX}{{1,4}})"

_IPV6: Final = (
    rf"(?:(?<![\w:.])|(?<=[A-Za-z0-9]:)(?={_HEX}{{4}}:)|{AFTER_ESCAPE})"
    rf"(?=[A-Fa-f:]{{0,38}}[0-9])(?=(?:{_HEX}{{0,2}}:){{0,7}}{_HEX}{{3}})"  # not `[1::2]`
    rf"(?:{_GROUPS}{{7}}|(?:{_GROUPS}{{0,5}})?::(?:{_GROUPS}{{0,5}})?)"
    r"(?:\.[0-9]{1,5})?(?!\w|:[\w:]|\.[0-9])"  # with a port, as tcpdump has it
)

_MAC: Final = (
    rf"(?:(?<![\w:-])|(?<=[A-Za-z]:)|{AFTER_ESCAPE})"
    rf"(?:{_HEX}{{1,2}}(?:[:-]{_HEX}{{1,2}}){{5}}(?![\w:-])|{_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}}(?![\w.]))"
)

_ADDRESS: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'`<>()\[\]{}\\]{1,2000}"
    rf"|(?:[\w.+-]{{1,64}}@)?{_HOST}:[\w~.-]{{1,100}}/[\w./~-]{{1,300}}"  # as scp has it
    rf"|[\w.+-]{{1,64}}@{_HOST}"
    r"|(?<![0-9.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9]|\.[0-9])"
    rf"|{_IPV6}|{_MAC}"
)

_REPOSITORY: Final = re.compile(r"[:/]([\w.-]{1,64})/([\w.-]{1,64})\.git\b")
"""Whose a repository is, and its name, in the address that it is fetched from."""

_HOME: Final = re.compile(
    rf"(?:/(?:home|Users|export/home)/|{_DRIVE}[\\/]{{1,2}}Users[\\/]{{1,2}})([\w.@-]{{1,64}})"
)
"""The user of a home directory."""

_ROOT: Final = rf"(?:{_DRIVE}[\\/]{{1,2}}|\\\\[\w.-]|(?:(?<![\w./<])|{AFTER_ESCAPE})~?/)"
"""A drive, a share, the root or a home."""

_PART: Final = r"(?:[\w.@+%=~#-]|\\{1,2}[ ]){1,255}"

_SPACED: Final = r"[\w.@+%=~# -]{1,255}"

_PATH: Final = re.compile(
    rf"(?<=[\"']){_ROOT}(?:{_SPACED}[\\/]{{1,2}}){{1,40}}{_SPACED}/?(?=\\?[\"'])"
    rf"|{_ROOT}(?:{_PART}[\\/]{{1,2}}){{0,40}}{_PART}/?"
)
"""Absolute: of a relative one nothing tells whose it is. `</div>` and URLs are none.

Spaces belong to it where they are escaped, or where it is all that is between quotes.
"""

_OWNER: Final = re.compile(
    r"(?m)^[bcdlps-](?:[r-][w-][xsStT-]){3}[.+@]?[ ]{1,9}[0-9]{1,9}[ ]{1,9}([\w.@-]{1,64})[ ]"
)
"""Whose a file is, in a long listing of `ls`."""

_LEAST_NAME: Final = 3
"""Letters and digits: shorter names are parts of words everywhere."""


def names_of(texts: Iterable[str], folders: Iterable[str], own: Iterable[str]) -> frozenset[str]:
    """Return names of people and projects: of homes, files, repositories, folders, and `own`."""
    names: set[str] = set()
    for text in (*texts, *folders):
        names.update(_HOME.findall(text), _OWNER.findall(text))
        names.update(name for pair in _REPOSITORY.findall(text) for name in pair)
    names.update(re.split(r"[\\/]+", folder.rstrip("\\/"))[-1] for folder in folders)
    return frozenset(
        each for each in names.union(own) if sum(map(str.isalnum, each)) >= _LEAST_NAME
    )


class Cleaning:
    """Cleans texts, and counts what it took out. `names` are taken out wherever they are words."""

    def __init__(self, names: Iterable[str]) -> None:
        self._redaction = Redaction()
        self._counts: Counter[str] = Counter()
        ordered = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        start = rf"(?:(?<![^\W_])|{AFTER_ESCAPE})"
        self._names = re.compile(rf"(?i){start}(?:{ordered})(?![^\W_])") if ordered else None

    def text(self, text: str) -> str:
        """Return a text without secrets, addresses, paths and names."""
        text = self._redaction.text(text)
        for pattern, kind in ((_ADDRESS, "address"), (_PATH, "path"), (self._names, "name")):
            if pattern is not None:
                text, number = pattern.subn(f"[{kind}]", text)
                self._counts[kind] += number
        return text

    @property
    def removed(self) -> dict[str, int]:
        """How often each kind was taken out; of secrets, how many different ones."""
        return {"secret": self._redaction.count, **self._counts}
