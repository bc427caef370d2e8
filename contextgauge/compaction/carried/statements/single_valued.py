"""The things that have one value at a time, and the words that speak of them.

This is vocabulary, general to software projects: it decides which statements may replace one
another. What no aspect covers is never replaced but by the same words.
"""

import re
from typing import Final, NamedTuple


class Aspect(NamedTuple):
    """A thing with one value at a time: the words that speak of it, and kinds of its value.

    `plain` are words in which it is said: they do not tell one such thing from another.
    """

    name: str
    terms: re.Pattern[str]
    values: tuple[str, ...]
    plain: frozenset[str]


def _aspect(name: str, terms: str, values: str, plain: str = "") -> Aspect:
    return Aspect(name, re.compile(rf"(?i)\b(?:{terms})"), tuple(values.split()), words_of(plain))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


ASPECTS: Final = (
    _aspect(
        "spending",
        r"budget|allowance|bill\b|fees?\b|spend(?:ing)?\b|costs?\b|expenses?\b|expenditure|outlay|price|cap(?:ped)?\b"
        r"|ceiling|limit",
        "money",
        "budget allowance spend spending cost expense expenditure outlay cap capped ceiling "
        "limit exceed exceeding stay total overall below under above at pass approval "
        "explicit need not never no up",
    ),
    _aspect(
        "timezone",
        r"time|timestamp|clock|zone|report|log|date|schedule",
        "zone",
        "time timestamp timezone clock zone report reported status put show display every",
    ),
    _aspect(
        "date",
        r"deadline|due|date|launch|releas|ship|schedul|freeze|milestone|timing|go-?live|cut-?over"
        r"|deliver|demo|review|freeze|move|fixed|finish|complete|by\b|ends?\b|opens?\b|starts?\b|begins?\b|closes?\b",
        "date",
        "deadline due date target timing day time scheduled schedule plan past fixed land not "
        "do doe",
    ),
    _aspect(
        "weekday",
        r"week|report|meeting|stand-?up|demo|review|moved?\b",
        "weekday",
        "day send user",
    ),
    _aspect(
        "name",
        r"code-?name|code name|we call\b|call(?:ed|ing)\b|label|designat|(?:re)?name[ds]?\b"
        r"|nickname|refer to",
        "code capitals quoted title",
        "codename codenamed call code name named calling called label designated designation "
        "nickname refer by",
    ),
    _aspect(
        "on-call",
        r"on-?call|on call|pager|rotation|support duty|escalation|on duty",
        "person",
        "call pager rotation owner own belong take carry over duty escalation handling week",
    ),
    _aspect(
        "approval",
        r"approv|sign(?:s|ed)?[ -]?off|consent|permission",
        "person",
        "approve approval approver approved approving sign signed off sign-off consent permission "
        "else first only may need from nobody no by",
    ),
    _aspect(
        "branch",
        r"branch|rebase|check(?:ed)? out|switched|worktree",
        "branch",
        "branch base based rebase rebased onto old development parked active working work still "
        "not push unpushed yet",
    ),
    _aspect(
        "commit",
        r"commit|based on|branched|rebase|head\b|base\b",
        "hash",
        "commit branch branched base based rebase everything current work working",
    ),
    _aspect("next step", r"next (?:steps?|up)\b", "rest", "next step up after"),
    _aspect(
        "style",
        r"answers?\b|repl(?:y|ies)\b|responses?\b|respond|style|tone|voice|writ|explanations?\b"
        r"|summar|messages?\b|prose",
        "tone",
        "answer reply response respond style tone voice user get give want give stick briefly",
    ),
    _aspect("indentation", r"indent", "indentation", "indentation indent"),
    _aspect(
        "units",
        r"metric|imperial|si\b|us customary|report|show|use\b|give|measure|units?\b",
        "units",
        "unit measure measurement report show give get stick answer reply response want",
    ),
    _aspect(
        "example language",
        r"examples?\b|snippets?\b|samples?\b|answer in|reply in|respond in|write in",
        "language",
        "example snippet sample write code language user not other",
    ),
    _aspect(
        "code",
        r"code\b|key\b|password|passphrase|passcode|pin\b|token|secret|safe ?word",
        "code",
        "code rotated rotation done disclose reveal share shared leak retired no "
        "longer work user never not under circumstance with maintenance old previous",
    ),
    _aspect(
        "region",
        r"region|runs?\b|running|hosted|deploy|located|lives?\b|datacent|zone|cluster|database|mov"
        r"|migrat",
        "region",
        "region run running hosted located live zone",
    ),
    _aspect(
        "address",
        r"url|endpoint|hosts?\b|lives?\b|base\b|address|domain|server|api\b",
        "url",
        "url base live",
    ),
    _aspect(
        "version",
        r"python|node|java|ruby|go\b|rust|postgres\w*|mysql|redis|kafka|version|sdk|runtime|django"
        r"|react|numpy|pandas|database|compiler|library|framework|api\b|pin|use\b|target",
        "version",
        "version pin pinned run running target",
    ),
    _aspect(
        "progress",
        r"phase|steps?\b|stage|milestone|progress",
        "fraction",
        "phase progress platform",
    ),
    _aspect(
        "limit",
        r"at most|at least|no (?:more|less|fewer) than|max|min|limit|under\b|below|within|cap|up to"
        r"|exceed|time[sd]? ?out|length|port\b|interval",
        "amount",
        "length limit maximum minimum max min cap capped exceed within below under most least "
        "port after up not never no",
    ),
)

AMOUNT: Final = _aspect("amount", "", "count")
"""A number with a unit that a statement gives to something of which no other aspect speaks."""

STOP: Final = words_of(
    "a an the here and also am are as at be been being but by can could did do does each for from "
    "had has have having i if in into is it its just may might must now of on only onto or our "
    "please rather shall should so some such that them then there they these this those to too "
    "until us use using was we were what when which while who whose will with would you i'm i'd "
    "i'll we're we've it's that's let let's always ever every all any keep kept make made set "
    "remain remains want wants prefer preferred prefers like new newer latest update updated "
    "change changed changes current currently instead anymore quick go goes going forward switch "
    "switched move moved raise raised lower lowered increase increased decrease decreased reduce "
    "reduced extend extended slipped postponed upgrade upgraded rename renamed bump bumped "
    "correction actually"
)
"""Words of grammar and of change: all others tell one thing from another."""

ALIASES: Final = {
    "prod": "production", "docs": "documentation", "doc": "documentation", "db": "database",
    "ship": "release", "shipping": "release", "travel": "trip", "field-trip": "trip",
    "go-live": "launch", "launching": "launch", "releasing": "release", "internally": "internal",
    "deployment": "deploy", "deploying": "deploy", "repo": "repository", "env": "environment",
    "config": "configuration", "deploys": "deploy", "lines": "line",
}  # fmt: skip
