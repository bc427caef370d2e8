"""The things that have one value at a time, and the words that speak of them.

This is vocabulary, general to software projects: it decides which statements may replace one
another. What no aspect covers is never replaced but by the same words.
"""

import re
from typing import Final, NamedTuple


class Aspect(NamedTuple):
    """A thing with one value at a time: the words that speak of it, and kinds of its value.

    `plain` are words that narrow nothing down, so they are no part of a scope. Where `narrowing`
    is given, a scope consists of such words only.
    """

    name: str
    terms: re.Pattern[str]
    values: tuple[str, ...]
    plain: frozenset[str]
    narrowing: frozenset[str] | None


def _aspect(name: str, terms: str, values: str, plain: str = "", only: str | None = None) -> Aspect:
    return Aspect(
        name,
        re.compile(rf"(?i)\b(?:{terms})"),
        tuple(values.split()),
        words_of(plain),
        None if only is None else words_of(only),
    )


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


ASPECTS: Final = (
    _aspect(
        "spending",
        r"budget|allowance|bill\b|fees?\b|spend(?:ing)?\b|costs?\b|expenses?\b|expenditure|outlay|price|cap(?:ped)?\b"
        r"|ceiling|limit",
        "money",
        "budget allowance spend spending cost expense expenditure outlay price cap capped ceiling "
        "limit exceed "
        "stay total overall below under above pass approval amount",
    ),
    _aspect(
        "timezone",
        r"time|timestamp|clock|zone|report|log|date|schedule",
        "zone",
        only="log server cron database meeting calendar invoice backup test api email",
    ),
    _aspect(
        "date",
        r"deadline|due|date|launch|releas|ship|schedul|freeze|milestone|timing|go-?live|cut-?over"
        r"|deliver|demo|review|freeze|move|fixed|finish|complete|by\b|ends?\b|opens?\b|starts?\b|begins?\b|closes?\b",
        "date",
        "deadline due date target timing day time scheduled schedule milestone moved "
        "move plan past "
        "fixed lands land finish completed final",
    ),
    _aspect(
        "weekday",
        r"report|meeting|stand-?up|sync|review|deploy|send|every|on\b|to\b",
        "weekday",
        "day send",
    ),
    _aspect(
        "name",
        r"code-?name|code name|we call\b|call(?:ed|ing)\b|label|designat|(?:re)?name[ds]?\b"
        r"|nickname|refer to",
        "code capitals quoted title",
        "codename codenamed call code name named called calling label designated designation named "
        "internal internally "
        "effort nickname refer",
    ),
    _aspect(
        "on-call",
        r"on-?call|on call|pager|rotation|support duty|escalation|on duty",
        "person",
        only="primary secondary weekend night database frontend backend network security",
    ),
    _aspect(
        "approval",
        r"approv|sign(?:s|ed)?[ -]?off|consent|permission",
        "person",
        "approve approval approver approved approving sign signs signed off sign-off consent "
        "permission else first only",
    ),
    _aspect(
        "reviewer",
        r"review(?:er|s|ed)?\b",
        "person",
        "review reviewer reviewed",
    ),
    _aspect(
        "assignee",
        r"lead\b|maintain|assign|owner\b|owns\b|in charge|responsible|contact\b|manager",
        "person",
        "lead maintain maintainer assigned assignee owner own owns charge responsible contact",
    ),
    _aspect(
        "branch",
        r"branch|rebase|check(?:ed)? out|switched|worktree",
        "branch",
        only="release production main default hotfix staging documentation",
    ),
    _aspect(
        "commit",
        r"commit|based on|branched|rebase|head\b|base\b",
        "hash",
        only="release production main default hotfix staging bad good",
    ),
    _aspect("next step", r"next (?:steps?|up)\b", "rest", only=""),
    _aspect(
        "style",
        r"answers?\b|repl(?:y|ies)\b|responses?\b|respond|style|tone|voice|writ|explanations?\b"
        r"|summar|messages?\b|prose",
        "tone",
        only="commit documentation comment summary email changelog report test title error blog "
        "release ticket",
    ),
    _aspect("indentation", r"indent", "indentation", only=""),
    _aspect(
        "units",
        r"metric|imperial|si\b|us customary|report|show|use\b|give|measure|units?\b",
        "units",
        only="distance temperature weight height",
    ),
    _aspect(
        "example language",
        r"examples?\b|snippets?\b|samples?\b|answer in|reply in|respond in|write in",
        "language",
        only="test documentation frontend backend script ticket email",
    ),
    _aspect(
        "code",
        r"code\b|key\b|password|passphrase|passcode|pin\b|token|secret|safe ?word",
        "code",
        "code new rotated rotation done current now disclose reveal share shared leak confirmation",
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
        "url endpoint host live base address domain",
    ),
    _aspect(
        "version",
        r"python|node|java|ruby|go\b|rust|postgres\w*|mysql|redis|kafka|version|sdk|runtime|django"
        r"|react|numpy|pandas|database|compiler|library|framework|api\b|pin|use\b|target",
        "version",
        "version pin pinned runtime run running target",
    ),
    _aspect(
        "progress",
        r"phase|steps?\b|stage|milestone|progress",
        "fraction",
        "phase step stage milestone progress done complete",
    ),
    _aspect(
        "limit",
        r"at most|at least|no (?:more|less|fewer) than|max|min|limit|under\b|below|within|cap|up to"
        r"|exceed|time[sd]? ?out|length|port\b|interval",
        "amount",
        "timeout out after length size limit maximum minimum max min cap capped exceed "
        "within below under most least port",
    ),
)

AMOUNT: Final = _aspect("amount", "", "count", "out after length size number count")
"""A number with a unit that a statement gives to something of which no other aspect speaks."""

STOP: Final = words_of(
    "a an and any all also am are as at be been being but by can could did do does doing done each "
    "either ever every for from had has have having he her here him his how i if in into is it its "
    "just let may me might must my need needs never no nor not now of off on once one only onto or "
    "other our out over own per please rather same she shall should so some still such than that "
    "the their them then there these they this those through to too under until up "
    "us use used user "
    "users using very want wants was we were what when where which while who whom whose why will "
    "with within without would you your yours project effort currently current new newer latest "
    "update updated change changed quick today week month year moment team's please keep kept make "
    "made going go goes forward instead longer anymore always set sets remain remains is's we're "
    "we've it's that's don't doesn't can't won't i'd i'm i'll let's prefer prefers preferred like "
    "called than time times way thing things belong belongs been explicit ahead hard safety rule "
    "constraint fact goal state preference note reminder old previous former went "
    "raise raised lower "
    "lowered increase increased decrease decreased reduce reduced extend extended slip slipped "
    "postponed upgrade upgraded rename renamed switch switched bump bumped move "
    "moved more less fewer "
    "most least thing what says actually correction"
)

ALIASES: Final = {
    "prod": "production", "docs": "documentation", "doc": "documentation", "db": "database",
    "ship": "release", "shipping": "release", "travel": "trip", "field-trip": "trip",
    "journey": "trip", "go-live": "launch", "golive": "launch", "launching": "launch",
    "releasing": "release", "deployment": "deploy", "deploying": "deploy", "repo": "repository",
    "config": "configuration", "env": "environment", "auth": "authentication",
    "stage": "staging", "dev": "development", "dinner": "meal", "lunch": "meal",
}  # fmt: skip

QUALIFIERS: Final = words_of(
    "primary secondary backup fallback replica staging production development test testing qa "
    "preview canary sandbox unit integration conference travel trip team marketing infrastructure "
    "internal external public private admin read write first second third weekly daily monthly "
    "design security frontend backend mobile web legal finance hosting cloud training soft hard"
)
"""Words that set one thing apart from another of its name: never taken as the same scope."""
