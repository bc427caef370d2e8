"""Which statements are pinned, and as what: by labels, modal verbs and values."""

import re
from typing import Final, cast

from contextgauge.compaction.carried.statements.passages import Statement, kind_of_label
from contextgauge.compaction.carried.statements.single_valued import words_of
from contextgauge.compaction.carried.statements.subjects import Facet, facets, possible_aspects
from contextgauge.compaction.messages import PinKind


def _phrases(alternatives: str) -> re.Pattern[str]:
    """Return a pattern of phrases, grouped by first letter: each word is tried with a few only."""
    by_letter: dict[str, list[str]] = {}
    for each in alternatives.split(" | "):
        by_letter.setdefault(each[0], []).append(each[1:])
    groups = (f"{letter}(?:{'|'.join(rest)})" for letter, rest in by_letter.items())
    return re.compile(rf"\b(?:{'|'.join(groups)}|\A(?:only|no))\b")


_CONSTRAINT: Final = _phrases(
    r"never | must(?:n't)? | shall | do not | don't | cannot | can't | may not | shouldn't | "
    r"should not | won't accept | is not to | are not to | always | forbid(?:den)? | prohibited | "
    r"not allowed | disallowed | no (?:more|less|fewer|later|earlier) than | "
    r"at (?:most|least|all times) | under no circumstances | "
    r"without (?:\w+ ){0,3}(?:approval|permission|consent|asking|sign-off) | "
    r"needs? (?:\w+ ){0,2}(?:approval|permission|consent|sign-off) | off[- ]limits | hands off | "
    r"untouched | unchanged | intact | avoid | ensure | make sure | be sure | is required | "
    r"are required | requires? | mandatory | not negotiable | non-negotiable | "
    r"stays? (?:away|within|under|below|in|off) | "
    r"keep (?:\w+ ){1,6}(?:under|below|within|above|away|out|free|secret|private|confidential) | "
    r"no-?body | no one (?:else )? | nothing (?:else|but) | may only | can only | should only | "
    r"uses? only | only (?:only|use|run|touch|edit|change|write|if|when|after|with) | unless | "
    r"stop and | has to | have to be | needs (?:an?|to) | is (?:not )?permitted | "
    r"are (?:not )?permitted | refrain | leave (?:\w+ ){1,5}(?:alone|as (?:it|they)) | "
    r"no \w+ (?:without|before|until|ever)"
)

_PREFERENCE: Final = re.compile(
    r"\b(?:prefer(?:s|red|ence)?|would rather|i'd rather|rather (?:get|have|see)|i(?:'d| would) "
    r"(?:like|love|appreciate)|i (?:want|like|dislike|hate|love)|(?:user|we) (?:wants?|likes?)|"
    r"from now on|going forward|in (?:the )?future|by default|favou?r|stick (?:to|with)|"
    r"instead of|rather than|on second thought|(?:is|are) (?:fine|good enough))\b"
)
_GOAL: Final = re.compile(
    r"\b(?:next steps?|next up|current task|(?:we|i)(?:'re| are|'m| am) (?:now )?(?:in|on|at|"
    r"working)|working (?:on|branch)|(?:the |our |my )?(?:goal|objective|aim|plan) is|in progress|"
    r"still (?:open|failing|missing|to do)|remains? to|remaining|awaiting|open question|"
    r"(?:is|are|currently) (?:failing|broken|blocked)|fails? on|we need to|the task is)\b"
)
_POLITE: Final = r"(?:(?:please|now|then|next|also|and|ok(?:ay)?|so|finally|first)[,: ]+){0,3}"
_WORK: Final = re.compile(
    rf"{_POLITE}(?:can you|could you|would you|will you|i need|help|add|block|build|check|clean|"
    r"compare|compute|configure|convert|copy|create|debug|delete|deploy|describe|design|document|"
    r"draft|drop|explain|extract|fetch|find|fix|generate|implement|improve|install|integrate|"
    r"investigate|list|look|merge|migrate|modify|open|optimi[sz]e|port|prepare|profile|provide|"
    r"read|refactor|remove|rename|replace|restructure|revert|review|rewrite|run|search|sort|"
    r"split|start|stop|summari[sz]e|tell|test|translate|try|validate|verify|wire)\b"
    r"(?!(?: [\w'-]+){0,3} (?:is|are|must|should|shall|has|have|may|needs?|can|cannot|goes|moved|"
    r"lives?|runs?|will)\b)"
)
"""Something to be done: what it names a value with is a matter of its own."""

_REQUEST: Final = re.compile(
    rf"{_POLITE}(?:let's|change|extend|give|make|move|report|send|set|show|support|switch|update|upgrade|use|"
    r"write)\b"
)
"""Work as well, where it gives nothing a value."""

_HEDGE: Final = re.compile(
    r"\b(?:maybe|perhaps|what if|suppose|hypothetical|considering|wondering|thinking (?:of|"
    r"about)|for example|e\.g\.|imagine|might (?:want|be)|would it|should (?:we|i)|could we)\b"
)
_REMEMBER: Final = re.compile(r"\b(?:remember|keep in mind|note that|for the record|fyi|beware)\b")
_IDENTIFIER: Final = re.compile(
    r"https?://\S|\b[0-9a-f]{7,40}\b|\b[A-Z]{2,}[A-Z0-9]*-\d+\b"
    r"|\b\w+/[\w/.-]+\.\w+"
    r"|[$€£]\d|\b\d{4}-\d\d-\d\d\b|\bv?\d+\.\d+(?:\.\d+)?\b|\b\d{1,3}(?:\.\d{1,3}){3}\b"
)
_MAIL: Final = re.compile(r"[\w.+-]@[\w-]+\.\w")
_STATES: Final = re.compile(
    r"\b(?:is|are|was moved|lives?|runs?|uses?|has|have|belongs?|moved|named|called|located|"
    r"hosted|points?|listens?)\b"
)
_LABELLED: Final = re.compile(r"[\w '-]{1,60}:")

_KIND_OF_ASPECT: Final[dict[str, PinKind]] = {
    "spending": "constraint",
    "timezone": "constraint",
    "approval": "constraint",
    "style": "preference",
    "units": "preference",
    "indentation": "preference",
    "example language": "preference",
    "weekday": "preference",
    "branch": "goal",
    "commit": "goal",
    "next step": "goal",
    "progress": "goal",
}


_CUES: Final[dict[str, frozenset[str]]] = {
    "constraint": words_of(
        "never must mustn't shall not don't cannot can't shouldn't won't always forbid forbidden "
        "prohibited disallowed no most least times circumstances without need needs limits "
        "off-limits hands untouched unchanged intact avoid ensure sure required require requires "
        "mandatory negotiable non-negotiable stay stays keep nothing only unless stop has "
        "have permitted refrain leave"
    )
    | {"nobody"},
    "preference": words_of(
        "prefer prefers preferred preference rather like love appreciate want dislike hate wants "
        "likes now forward future default favor favour stick instead second fine good"
    ),
    "goal": words_of(
        "next current working we're i'm am are goal objective aim plan progress still remains "
        "remain remaining awaiting open failing broken blocked fail fails need task"
    ),
    "hedge": words_of(
        "maybe perhaps what suppose hypothetical considering wondering thinking example e imagine "
        "might would should could"
    ),
    "remember": words_of("remember mind note record fyi beware"),
}
"""Words without one of which a pattern cannot match: most statements have none."""

_PATTERNS: Final = {
    "constraint": _CONSTRAINT,
    "preference": _PREFERENCE,
    "goal": _GOAL,
    "hedge": _HEDGE,
    "remember": _REMEMBER,
}
_WORD: Final = re.compile(r"[a-z][a-z'-]*")
_MARK: Final = re.compile(r"[0-9@/]")


def kind_of(statement: Statement) -> tuple[PinKind, list[Facet]]:
    """Return as what a statement is carried, and what it gives a value to."""
    text = statement.text
    if text.endswith("?"):
        return "request", []
    lower = text.lower()
    says = _Says(lower.replace("\u2019", "'") if "\u2019" in lower else lower)
    labelled = kind_of_label(statement.label) if statement.label else None
    work = _WORK.match(says.lower) is not None
    if work and labelled is None and not says.any("constraint"):
        return "request", []
    hedged = labelled is None and says.any("hedge")
    given = [] if hedged or work else facets(text, possible_aspects(says.words))
    if labelled and labelled != "fact":
        forbids = labelled in {"goal", "request"} and says.any("constraint")
        return "constraint" if forbids else cast("PinKind", labelled), given
    kind = _by_words(says, given, fact=labelled is not None)
    if kind == "statement" and not hedged and _MARK.search(text):
        states = _LABELLED.match(says.lower) or _STATES.search(says.lower)
        stated = states and (_IDENTIFIER.search(text) or _MAIL.search(text))
        return ("fact" if stated else kind), given
    return kind, given


class _Says:
    """Which of the patterns a statement, in lower case, matches."""

    def __init__(self, lower: str) -> None:
        self.lower = lower
        self.words: list[str] = _WORD.findall(lower)

    def any(self, name: str) -> bool:
        possible = not _CUES[name].isdisjoint(self.words)
        return possible and _PATTERNS[name].search(self.lower) is not None


def _by_words(says: _Says, given: list[Facet], *, fact: bool) -> PinKind:
    """Return the kind by a statement's words; `fact`: it is labelled as one."""
    if says.any("constraint"):
        return "constraint"
    if kind := next((_KIND_OF_ASPECT.get(each.aspect) for each in given), None):
        return kind
    if says.any("preference"):
        return "preference"
    if not fact and says.any("goal"):
        return "goal"
    if not fact and not given and _REQUEST.match(says.lower):
        return "request"
    return "fact" if fact or given or says.any("remember") else "statement"
