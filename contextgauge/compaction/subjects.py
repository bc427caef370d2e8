"""What a statement is about, so that a newer one can replace an older one in other words.

A facet is one thing that can have one value at a time: an aspect (spending limit, date, owner on
call …), a scope (`trip`, `staging database`: the words that say whose), and a value, normalised:
numbers in words, money, dates, hashes, versions. Two statements conflict where aspect and scope
agree and the aspect has one value at a time. Prohibitions without such a value never conflict:
a second one is one more.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple


class Facet(NamedTuple):
    """One thing that a statement gives a value to; `start` and `end` are the value's place."""

    aspect: str
    scope: frozenset[str]
    value: str
    start: int = 0
    end: int = 0

    @property
    def key(self) -> str:
        """The facet without its value, as it is stored with a pin."""
        return f"{self.aspect}:{' '.join(sorted(self.scope))}"


_MONTHS: Final = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_NUMBER_WORDS: Final = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split()
    )
} | dict(
    zip(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(),
        range(20, 100, 10),
        strict=True,
    )
)
_SCALES: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "k": 1_000, "m": 10**6}
_WORDED: Final = rf"(?:(?:{'|'.join([*_NUMBER_WORDS, *list(_SCALES)[:3], 'and'])})\b[ -]?){{1,10}}"
_DIGITS: Final = r"\d{1,12}(?:[,_]\d{3}){0,4}(?:\.\d{1,6})?"

_VALUES: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "money": rf"(?i)[$€£¥] ?{_DIGITS} ?(?:k|m|million|thousand)?\b|(?:\b{_DIGITS} ?"
        rf"(?:k|thousand|million)? ?|\b{_WORDED})(?:dollars|euros?|pounds|bucks|usd|eur|gbp)\b",
        "date": rf"(?i)\b\d{{4}}-\d\d?-\d\d?\b|\b(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?\b"
        rf"(?:,? \d{{4}}\b)?|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})\b(?: \d{{4}}\b)?"
        r"|\b\d\d?[/.]\d\d?[/.]\d{2,4}\b|\b(?:end of|early|mid|late) (?:\w+ )?"
        rf"(?:{_MONTHS}|week|month|quarter|year)\b|\bQ[1-4](?: \d{{4}})?\b|\b(?:tomorrow|tonight)\b",
        "weekday": r"(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bweekdays\b",
        "zone": r"\b(?:UTC|GMT|[ECMP][SD]T|CES?T|BST|IST|JST|AEST)\b(?:[+-]\d{1,2})?"
        r"|(?i:\b(?:pacific|eastern|central|mountain|local|zulu)(?: standard| daylight)? time\b)"
        r"|\b[A-Z][A-Za-z]{1,20}/[A-Z][A-Za-z_]{1,30}\b(?:/[A-Z]\w{1,30})?",
        "url": r"https?://[^\s,;)\"'>]{1,500}|\b[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,5}:\d{2,5}\b"
        r"|\b[a-z0-9-]{1,63}\.(?:internal|local|com|org|net|io|dev|test|example)\b",
        "region": r"\b(?:us|eu|ap|sa|ca|me|af|il|asia|europe|northamerica|australia)-"
        r"(?:gov-)?(?:north|south|east|west|central)(?:north|south|east|west)?-?\d{1,2}[a-z]?\b",
        "branch": r"\b[A-Za-z][\w.-]{0,60}(?:/[\w.-]{1,80}){1,4}|(?<=branch )[`'\"]?"
        r"[\w.-]{1,80}[\d_-][\w.-]{0,80}|\b(?:main|master|develop|trunk)\b",
        "hash": r"\b(?=[0-9a-f]{0,39}\d)[0-9a-f]{7,40}\b|(?<=commit )`?[0-9a-f]{7,40}\b",
        "code": r"\b(?=[\w-]{0,40}\d)(?=\w{0,40}[A-Za-z_-])[A-Za-z0-9]{1,24}(?:[-_][A-Za-z0-9]{1,24})"
        r"{0,4}\b",
        "capitals": r"\b[A-Z][A-Z0-9]{2,}(?:[-_][A-Z0-9]{1,20}){0,3}\b",
        "person": r"\b(?!The |This |That |Our |My |Use |Ask |Only |Please |Never )[A-Z][a-z'’]{1,20}"
        r"(?: [A-Z][a-z'’]{1,20}){1,2}\b|(?<!\w)@[A-Za-z][\w-]{1,38}",
        "quoted": r"[\"“'‘`][^\"”'’`\n]{1,60}[\"”'’`]",
        "title": r"(?<=[a-z,] )[A-Z][a-z]{2,20}\b",
        "version": r"(?i)\b(?:python|node(?:\.js)?|java|ruby|go|golang|rust|php|postgres(?:ql)?|mysql"
        r"|mariadb|sqlite|redis|kafka|mongo(?:db)?|django|react|vue|angular|ubuntu|debian|swift"
        r"|kotlin|terraform|kubernetes|version|release) (v?\d{1,4}(?:\.\d{1,5}){0,3})\b"
        r"|\bv\d{1,4}(?:\.\d{1,5}){0,3}\b|\b\d{1,4}\.\d{1,5}(?:\.\d{1,5})?\b",
        "units": r"(?i)\b(?:metric|imperial|SI|US customary)\b",
        "language": r"\b(?:Python|JavaScript|TypeScript|Java|Kotlin|Swift|Rust|Go|Golang|Ruby|PHP|"
        r"Perl|Scala|Haskell|Elixir|Erlang|Clojure|Lua|Julia|Dart|Zig|Bash|SQL|C\+\+|C#|F#|"
        r"English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Japanese|Chinese|Korean)"
        r"(?!\w)",
        "fraction": r"(?i)\b\d{1,3}(?: ?- ?\d{1,3})? (?:of|out of) \d{1,3}\b|\b\d{1,3}/\d{1,3}\b"
        r"|(?<=phase )\d{1,3}\b|(?<=stage )\d{1,3}\b",
        "tone": r"(?i)\b(?:terse|brief|short|concise|succinct|compact|long|verbose|detailed|thorough|"
        r"exhaustive|formal|informal|casual|playful|warm|friendly|light|dry|neutral|technical|"
        r"simple|plain|humorous|funny|witty|polite|direct|blunt|professional|conversational|"
        r"academic|upbeat|cheerful|serious|gentle|chatty)\b(?:(?:,| and|, and)? "
        r"(?:terse|brief|short|concise|verbose|detailed|formal|casual|playful|warm|friendly|light|"
        r"dry|simple|plain|humorous|polite|direct|professional)\b)*"
        r"|\b(?!(?:answer|response|reply|writing|coding|code|preferred|the|a|an|this|that|same|my|your|its)\b)"
        r"[\w-]{2,30}(?= (?:style|tone|voice)\b)|(?<=style is )[\w-]{2,30}",
        "amount": rf"(?i)\b(?:{_DIGITS}|{_WORDED})(?: ?%| ?(?:k|m|g)i?b\b| ?(?:milli|micro)?"
        r"seconds?\b| ?m?s\b| minutes?\b| hours?\b| days?\b| weeks?\b| characters?\b| columns?\b"
        r"| lines?\b| words?\b| tokens?\b| requests?\b| retries\b| attempts?\b| workers?\b"
        r"| items?\b| files?\b| bytes?\b)|(?<=port )\d{2,5}\b",
        "rest": r"(?is)(?:step|up)s?(?: is| are|:) .{1,200}",
    }.items()
}


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
        _words(plain),
        None if only is None else _words(only),
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASPECTS: Final = (
    _aspect(
        "spending",
        r"budget|spend(?:ing)?\b|costs?\b|expenses?\b|expenditure|outlay|price|cap(?:ped)?\b"
        r"|ceiling|limit",
        "money",
        "budget spend spending cost expense expenditure outlay price cap capped ceiling limit exceed "
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
        r"|deliver|demo|review|freeze|move|fixed|finish|complete|by\b",
        "date",
        "deadline due date target timing day time scheduled schedule milestone moved move plan past "
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
        r"code-?name|code name|call(?:ed|ing)\b|label|designat|(?:re)?name[ds]?\b|nickname|refer to",
        "code capitals quoted title",
        "codename code name named called calling label designated designation named internal internally "
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
        "permission nobody else first only",
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
    _aspect("units", r"metric|imperial|SI\b|US customary", "units", only=""),
    _aspect(
        "example language",
        r"examples?\b|snippets?\b|samples?\b|answer in|reply in|respond in|write in",
        "language",
        only="test documentation frontend backend script ticket email",
    ),
    _aspect(
        "code",
        r"code\b|password|passphrase|passcode|pin\b|token|secret|safe ?word",
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
        "timeout out after length size limit maximum minimum max min cap capped exceed within below under most least port",
    ),
)

_STOP: Final = _words(
    "a an and any all also am are as at be been being but by can could did do does doing done each "
    "either ever every for from had has have having he her here him his how i if in into is it its "
    "just let may me might must my need needs never no nor not now of off on once one only onto or "
    "other our out over own per please rather same she shall should so some still such than that "
    "the their them then there these they this those through to too under until up us use used user "
    "users using very want wants was we were what when where which while who whom whose why will "
    "with within without would you your yours project effort currently current new newer latest "
    "update updated change changed quick today week month year moment team's please keep kept make "
    "made going go goes forward instead longer anymore always set sets remain remains is's we're "
    "we've it's that's don't doesn't can't won't i'd i'm i'll let's prefer prefers preferred like "
    "called than time times way thing things belong belongs been explicit ahead hard safety rule "
    "constraint fact goal state preference note reminder old previous former went raise raised lower "
    "lowered increase increased decrease decreased reduce reduced extend extended slip slipped "
    "postponed upgrade upgraded rename renamed switch switched bump bumped move moved more less fewer "
    "most least thing what says actually correction"
)

_ALIASES: Final = {
    "prod": "production", "docs": "documentation", "doc": "documentation", "db": "database",
    "ship": "release", "shipping": "release", "travel": "trip", "field-trip": "trip",
    "journey": "trip", "go-live": "launch", "golive": "launch", "launching": "launch",
    "releasing": "release", "deployment": "deploy", "deploying": "deploy", "repo": "repository",
    "config": "configuration", "env": "environment", "auth": "authentication",
    "stage": "staging", "dev": "development", "dinner": "meal", "lunch": "meal",
}  # fmt: skip

_QUALIFIERS: Final = _words(
    "primary secondary backup fallback replica staging production development test testing qa "
    "preview canary sandbox unit integration conference travel trip team marketing infrastructure "
    "internal external public private admin read write first second third weekly daily monthly "
    "design security frontend backend mobile web legal finance hosting cloud training soft hard"
)
"""Words that set one thing apart from another of its name: never taken as the same scope."""

_FORMER: Final = re.compile(
    r"(?i)\b(?:old|previous|former|earlier|no longer|retired|was|were|from)\b"
)
_UPDATE: Final = re.compile(
    r"(?i)\b(?:now|update[ds]?|moved|changed?|changes|instead|no longer|anymore|from now on|new|"
    r"going forward|switch(?:ed)?|rotated|raised|lowered|increased?|reduced?|extended|"
    r"postponed|correction|actually|revised|rebased|replaces?|renamed|bumped|upgraded?)\b"
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'’-]{0,40}")


def is_update(text: str) -> bool:
    """Return whether a statement says itself that something changed."""
    return _UPDATE.search(text) is not None


_PHRASES: Final = _words(
    "code refer on support sign in check checked based next answer reply respond write safe at no "
    "up time times timed us switch switched go"
)
"""First words of the terms that are phrases."""


@lru_cache(maxsize=8_192)
def _possible(word: str) -> int:
    """Return a bit for each aspect that a word may belong to: cheaper than all patterns."""
    bits = 0
    for index, aspect in enumerate(_ASPECTS):
        parts = (word, *word.split("-"))
        if word in _PHRASES or any(aspect.terms.match(part) for part in parts):
            bits |= 1 << index
    return bits


def facets(text: str) -> list[Facet]:
    """Return what a statement gives a value to, in order of the table of aspects."""
    result: list[Facet] = []
    spans: list[tuple[int, int]] = []
    possible = 0
    for word in _WORD.findall(text):
        possible |= _possible(word.lower())
    for index, aspect in enumerate(_ASPECTS):
        if not possible >> index & 1 or not aspect.terms.search(text):
            continue
        if (match := _value(text, aspect.values, spans)) is None:
            continue
        start, end, value = match
        spans.append((start, end))
        name = _limit_name(text, value) if aspect.name == "limit" else aspect.name
        result.append(Facet(name, frozenset(), value, start, end))
    words = _scope_words(text, [(each.start, each.end) for each in result])
    return [each._replace(scope=_scope(words, each.aspect)) for each in result]


_LEAST: Final = re.compile(r"(?i)\b(?:at least|min(?:imum)?|no (?:fewer|less) than)\b")
_TIME: Final = re.compile(r"second|minute|hour|day|week|m?s$")


def _limit_name(text: str, value: str) -> str:
    """Return the aspect of a limit: limits of different units or directions are different ones."""
    unit = value.rsplit(" ", 1)[-1].strip("0123456789.")
    unit = "time" if _TIME.match(unit) else _singular(unit) or "number"
    return f"limit of {'least ' if _LEAST.search(text) else ''}{unit}"


def _value(
    text: str, kinds: Iterable[str], taken: list[tuple[int, int]]
) -> tuple[int, int, str] | None:
    """Return the place and the normalised form of the first current value of these kinds."""
    for kind in kinds:
        matches = [
            match
            for match in _VALUES[kind].finditer(text)
            if not any(match.start() < end and start < match.end() for start, end in taken)
        ]
        current = [
            match
            for match in matches
            if not _FORMER.search(text[max(0, match.start() - 24) : match.start()])
        ]
        if chosen := current[:1] or matches[-1:]:
            match = chosen[0]
            group = 1 if match.re.groups and match[1] else 0
            return *match.span(group), normalised(match[group])
    return None


def _scope_words(text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    spans = list(spans)
    return [
        match[0]
        for match in _WORD.finditer(text)
        if not any(match.start() < end and start < match.end() for start, end in spans)
    ]


_BY_NAME: Final = {each.name: each for each in _ASPECTS}


def _scope(words: Iterable[str], aspect: str) -> frozenset[str]:
    _, _, _, plain, narrowing = _BY_NAME[aspect.split(" of ")[0]]
    scope = set()
    for word in words:
        for part in _parts(word.lower().replace("’", "'")):
            base = _singular(part)
            if not _STOP.isdisjoint((part, base)) or not plain.isdisjoint((part, base)):
                continue
            scope.add(_ALIASES.get(base, base))
    return frozenset(scope) if narrowing is None else narrowing & scope


def _parts(word: str) -> list[str]:
    word = word.removesuffix("'s").removesuffix("s'").strip("'-")
    if word in _ALIASES or "-" not in word:
        return [word]
    return [each for each in word.split("-") if each]


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        if word.endswith("ies"):
            return word[:-3] + "y"
        return word[:-2] if word.endswith(("shes", "ches", "xes", "sses")) else word[:-1]
    return word


def normalised(value: str) -> str:
    """Return a value in one form: digits for numbers in words, no separators, lower case."""
    text = value.lower().strip("`'\"“”‘’ ")
    text = re.sub(r"(?<=\d)[,_](?=\d{3})", "", text)
    words = re.findall(r"\d+(?:\.\d+)?|[a-z]+|[^\sa-z\d]", text)
    if any(word in _NUMBER_WORDS or word in _SCALES for word in words) and not re.search(
        r"[-_/]", text
    ):
        text = _in_digits(words)
    return " ".join(text.split())


def _in_digits(words: list[str]) -> str:
    total, part, seen, result = 0.0, 0.0, False, []
    for word in words:
        if word in _NUMBER_WORDS:
            part, seen = part + _NUMBER_WORDS[word], True
        elif re.fullmatch(r"\d+(?:\.\d+)?", word):
            part, seen = part + float(word), True
        elif word in _SCALES and seen:
            if _SCALES[word] == 100:  # noqa: PLR2004 -- two hundred thousand
                part *= 100
            else:
                total, part = total + part * _SCALES[word], 0.0
        elif word != "and":
            if seen:
                result.append(f"{total + part:g}")
                total, part, seen = 0.0, 0.0, False
            result.append(word)
    if seen:
        result.append(f"{total + part:g}")
    return " ".join(result)


def same_scope(newer: frozenset[str], older: frozenset[str]) -> bool:
    """Return whether two scopes mean one thing: equal, or one says it in fewer words."""
    if newer == older:
        return True
    if not newer or not older:
        return False
    if not (newer <= older or older <= newer):
        return False
    return _QUALIFIERS.isdisjoint(newer ^ older)
