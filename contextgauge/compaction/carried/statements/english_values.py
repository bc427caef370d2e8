"""Values in English text: money, dates, time zones, names, hashes, versions, and one form of each.

Each pattern is bounded, so reading a statement takes linear time.
"""

import re
from typing import Final

_MONTHS: Final = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_NUMBER_WORDS: Final = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "k": 1_000, "m": 10**6}
_WORDED: Final = rf"(?:(?:{'|'.join([*_NUMBER_WORDS, *list(_SCALES)[:3], 'and'])})\b[ -]?){{1,10}}"
_DIGITS: Final = r"\d{1,12}(?:[,_]\d{3}){0,4}(?:\.\d{1,6})?"

VALUES: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "money": rf"(?i)[$€£¥] ?{_DIGITS} ?(?:k|m|million|thousand)?\b|(?:\b{_DIGITS} ?"
        rf"(?:k|thousand|million)? ?|\b{_WORDED})(?:dollars|euros?|pounds|bucks|usd|eur|gbp)\b",
        "date": rf"(?i)\b\d{{4}}-\d\d?-\d\d?\b|\b\d\d-\d\d\b(?: \((?:{_MONTHS}) \d{{1,2}}\))?"
        rf"|\b(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?\b"
        rf"(?:,? \d{{4}}\b)?|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})\b(?: \d{{4}}\b)?"
        r"|\b\d\d?[/.]\d\d?[/.]\d{2,4}\b|\b(?:end of|early|mid|late) (?:\w+ )?"
        rf"(?:{_MONTHS}|week|month|quarter|year)\b|\bQ[1-4](?: \d{{4}})?\b"
        r"|\b(?:tomorrow|tonight)\b",
        "weekday": r"(?i)\b(?<!every )(?<!each )(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
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
        "code": r"(?<![\w.][./:])\b(?=[\w-]{0,40}\d)(?=\w{0,40}[A-Za-z_-])[A-Za-z0-9]{1,24}"
        r"(?:[-_][A-Za-z0-9]{1,24}){0,4}\b",
        "capitals": r"\b[A-Z][A-Z0-9]{2,}(?:[-_][A-Z0-9]{1,20}){0,3}\b",
        "person": r"\b(?!The |This |That |Our |My |Use |Ask |Only |Please |Never )"
        r"[A-Z][a-z'\u2019]{1,20}(?: [A-Z][a-z'\u2019]{1,20}){1,2}\b|(?<!\w)@[A-Za-z][\w-]{1,38}",
        "quoted": r"[\"“'\u2018`][^\"”'\u2019`\n]{1,60}[\"”'\u2019`]",
        "title": r"(?<=[a-z,] )[A-Z][a-z]{2,20}\b",
        "version": r"(?i)\b(?:python|node(?:\.js)?|java|ruby|go|golang|rust|php|postgres(?:ql)?"
        r"|mysql|mariadb|sqlite|redis|kafka|mongo(?:db)?|django|react|vue|angular|ubuntu|debian|swift"
        r"|kotlin|terraform|kubernetes|version|release) (v?\d{1,4}(?:\.\d{1,5}){0,3})\b"
        r"|(?<![\w./:-])v\d{1,4}(?:\.\d{1,5}){0,3}\b|\b\d{1,4}\.\d{1,5}(?:\.\d{1,5})?\b",
        "units": r"(?i)\b(?:metric|imperial|SI|US customary|miles|kilomet(?:er|re)s|feet|celsius"
        r"|fahrenheit|kelvin|kilograms|pounds)\b",
        "indentation": r"(?i)\b(?:tabs?|(?:\w{1,5}[ -])?spaces?)\b",
        "language": r"\b(?:Python|JavaScript|TypeScript|Java|Kotlin|Swift|Rust|Go|Golang|Ruby|PHP|"
        r"Perl|Scala|Haskell|Elixir|Erlang|Clojure|Lua|Julia|Dart|Zig|Bash|SQL|C\+\+|C#|F#|"
        r"English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Japanese|Chinese|Korean)"
        r"(?!\w)",
        "fraction": r"(?i)\b\d{1,3}(?: ?- ?\d{1,3})? (?:of|out of) \d{1,3}\b|\b\d{1,3}/\d{1,3}\b"
        r"|(?<=phase )\d{1,3}\b|(?<=stage )\d{1,3}\b",
        "tone": r"(?i)\b(?:terse|brief|short|concise|succinct|compact|long|verbose|detailed|"
        r"thorough|exhaustive|formal|informal|casual|playful|warm|friendly|light|dry|neutral|technical|"
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
        "count": rf"\b{_DIGITS} ?[A-Za-z]{{1,16}}\b",
        "rest": r"(?is)(?:step|up)s?(?: is| are|:) .{1,200}",
    }.items()
}


def normalised(value: str) -> str:
    """Return a value in one form: digits for numbers in words, no separators, lower case."""
    text = value.lower().strip("`'\"“”\u2018\u2019 ")
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
