"""Files of rules: what they may say, and what is said of those that say something else."""

import tomllib

import pytest

from streams.core.alerts.check import check_plan, targets_of_content
from streams.core.alerts.rules import (
    AlertPlan,
    Exhaustion,
    Failed,
    LostRules,
    Patterns,
    Pressure,
    Stalled,
    Thrashing,
)
from streams.core.sections import Fault

TARGET = '[[targets]]\nname = "ops"\nurl = "https://hooks.example/x"\n'
PRESSURE = '[[rules]]\nname = "full"\nwhen = "pressure"\nat_percent = 80\ntargets = ["ops"]\n'

WHOLE = """
max_age = "10m"
memory = "file"
page = "https://ctx.example.com:8642/team/"

[[targets]]
name = "ops"
url_env = "OPS_URL"
secret_file = "/run/secrets/ops"
ca_file = "ca.pem"
timeout = "5s"
give_up_after = "2h"

[[targets]]
name = "slack"
format = "slack"
url_file = "/run/secrets/slack"

[[rules]]
name = "nearly full"
when = "pressure"
at_percent = 80
targets = ["ops", "slack"]
models = ["claude-*", "!*haiku*"]
sessions = "a*"
agents = ["builder"]
chains = ["main"]

[[rules]]
name = "failed"
when = "failed"
outcomes = ["failed"]
targets = "ops"

[[rules]]
name = "any failure"
when = "failed"
targets = "ops"

[[rules]]
name = "silent"
when = "stalled"
after = "2m"
targets = "ops"

[[rules]]
name = "often"
when = "thrash"
count = 3
within = "1h"
targets = "ops"

[[rules]]
name = "no room"
when = "exhausted"
targets = "ops"
"""


def plan(text: str) -> AlertPlan:
    checked, faults = check_plan(tomllib.loads(text))
    assert faults == []
    assert checked is not None
    return checked


def test_lost_rules_are_alerted_from_one_on_unless_the_file_gives_more() -> None:
    rule = '[[rules]]\nname = "lost"\nwhen = "rules_lost"\ntargets = "ops"\n'
    assert [each.condition for each in plan(TARGET + rule).rules] == [LostRules(1)]
    assert plan(f"{TARGET}{rule}at_least = 3").rules[0].condition == LostRules(3)
    (fault,) = faults(f"{TARGET}{rule}at_least = 0")
    assert fault.path == ("rules", 0, "at_least")


def faults(text: str) -> list[Fault]:
    checked, wrong = check_plan(tomllib.loads(text))
    assert checked is None
    return wrong


def test_a_file_with_every_option_is_read() -> None:
    alert_plan = plan(WHOLE)
    ops, slack = alert_plan.targets
    assert (ops.format, ops.timeout_ms, ops.give_up_after_ms) == ("json", 5_000, 7_200_000)
    assert alert_plan.pending_ms == 7_200_000, "what is tried for so long is read again for so long"
    assert (slack.format, slack.url_file) == ("slack", "/run/secrets/slack")
    assert [rule.condition for rule in alert_plan.rules] == [
        Pressure(80),
        Failed(frozenset({"failed"})),
        Failed(frozenset({"failed", "blocked"})),
        Stalled(120_000),
        Thrashing(3, 3_600_000),
        Exhaustion(
            frozenset(
                {
                    "prompt_too_long",
                    "blocking_limit",
                    "rapid_refill_breaker",
                    "model_context_window_exceeded",
                    "hard_limit",
                    "compaction_window",
                }
            )
        ),
    ]
    first = alert_plan.rules[0]
    assert first.models == Patterns(("claude-*", "!*haiku*"))
    assert first.targets == ("ops", "slack")
    assert [rule.kind for rule in alert_plan.rules[1:4]] == ["failed", "failed", "stalled"]
    assert alert_plan.memory == "file"
    assert alert_plan.page == "https://ctx.example.com:8642/team"
    assert alert_plan.link("a/b(1) Ä") == (
        "https://ctx.example.com:8642/team/#/session/a%2Fb(1)%20%C3%84"
    )
    assert alert_plan.memory_ms == 600_000 + 3_600_000


def test_omitted_options_have_defaults() -> None:
    alert_plan = plan(TARGET + PRESSURE)
    assert (alert_plan.max_age_ms, alert_plan.memory_ms, alert_plan.memory) == (
        900_000,
        900_000,
        "auto",
    )
    (target,) = alert_plan.targets
    assert (target.timeout_ms, target.give_up_after_ms) == (10_000, 3_600_000)


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (PRESSURE, ("targets",), "is missing: write at least one [[targets]]"),
        (TARGET, ("rules",), "is missing: write at least one [[rules]]"),
        (TARGET + "rules = 3", ("targets", 0, "rules"), "is not known here"),
        ("rules = 3\n" + TARGET, ("rules",), "is not a list of tables"),
        (f"max_age = 3\n{TARGET}{PRESSURE}", ("max_age",), 'is 3: give a time such as "90s"'),
        (f'max_age = "9d"\n{TARGET}{PRESSURE}', ("max_age",), "1s to 7d"),
        (f'memory = "disk"\n{TARGET}{PRESSURE}', ("memory",), "one of auto, redis, file"),
        (f"maxage = 3\n{TARGET}{PRESSURE}", ("maxage",), "(did you mean 'max_age'?)"),
        (TARGET.replace('name = "ops"', "") + PRESSURE, ("targets", 0, "name"), "is missing"),
        (TARGET.replace('"ops"', '"ö"') + PRESSURE, ("targets", 0, "name"), "is not a valid name"),
        (TARGET.replace('"ops"', "7") + PRESSURE, ("targets", 0, "name"), "is not a string"),
        (TARGET + TARGET + PRESSURE, ("targets", 1, "name"), "'ops' is there already"),
        (TARGET + PRESSURE + PRESSURE, ("rules", 1, "name"), "'full' is there already"),
        (
            TARGET + TARGET.replace("ops", "other") + PRESSURE,
            ("targets", 1, "name"),
            "no rule sends anything to 'other'",
        ),
        (TARGET.replace("https", "ftp") + PRESSURE, ("targets", 0, "url"), "https:// or http://"),
        (
            '[[targets]]\nname = "ops"\n' + PRESSURE,
            ("targets", 0, "url"),
            "is missing: set it, or url_env or url_file",
        ),
        (
            TARGET + 'url_env = "X"\n' + PRESSURE,
            ("targets", 0, "url_env"),
            "is set, and url is too: keep one of them",
        ),
        (
            TARGET + 'secret_env = "X"\nsecret_file = "y"\n' + PRESSURE,
            ("targets", 0, "secret_file"),
            "is set, and secret_env is too",
        ),
        (TARGET + 'format = "teams"\n' + PRESSURE, ("targets", 0, "format"), "json, slack"),
        (TARGET + PRESSURE.replace('"pressure"', '"pressur"'), ("rules", 0, "when"), "pressure'?"),
        (TARGET + PRESSURE.replace('when = "pressure"', ""), ("rules", 0, "when"), "is missing"),
        (TARGET + PRESSURE.replace("80", "101"), ("rules", 0, "at_percent"), "is 101: give a"),
        (TARGET + PRESSURE.replace("80", "true"), ("rules", 0, "at_percent"), "whole number"),
        (
            TARGET + PRESSURE.replace("at_percent = 80", ""),
            ("rules", 0, "at_percent"),
            "is missing: give a whole number, 1 to 100",
        ),
        (TARGET + PRESSURE.replace('["ops"]', '["opps"]'), ("rules", 0, "targets"), "'ops'?"),
        (TARGET + PRESSURE.replace('["ops"]', "[]"), ("rules", 0, "targets"), "is not a list"),
        (TARGET + PRESSURE.replace('["ops"]', "[1]"), ("rules", 0, "targets"), "is not a list"),
        (
            TARGET + PRESSURE.replace('targets = ["ops"]', ""),
            ("rules", 0, "targets"),
            "is missing: name one or more of ops",
        ),
        (TARGET + PRESSURE + "within = 3", ("rules", 0, "within"), "is not known here"),
        (
            TARGET + '[[rules]]\nname = "f"\nwhen = "failed"\ntargets = "ops"\noutcomes = ["fail"]',
            ("rules", 0, "outcomes"),
            "has 'fail' (did you mean 'failed'?)",
        ),
        (
            TARGET + '[[rules]]\nname = "s"\nwhen = "stalled"\ntargets = "ops"\nafter = "1h"',
            ("rules", 0, "after"),
            "is not below max_age",
        ),
        (
            TARGET + '[[rules]]\nname = "s"\nwhen = "stalled"\ntargets = "ops"',
            ("rules", 0, "after"),
            "is missing: give a time",
        ),
    ],
)
def test_a_fault_is_reported_with_its_location(
    text: str, path: tuple[str | int, ...], said: str
) -> None:
    problems = {fault.path: fault.problem for fault in faults(text)}
    assert path in problems
    assert said in problems[path]


def test_all_faults_are_reported_at_once() -> None:
    wrong = faults('[[targets]]\n[[rules]]\nname = "x"\nwhen = "thrash"\n')
    assert [fault.path[-1] for fault in wrong] == ["name", "url", "count", "within", "targets"]
    assert "name one or more of the targets" not in wrong[-1].problem


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("ctx.example", "is not an address of a web page: write https://host/, or http://"),
        ("ftp://ctx.example/", "is not an address of a web page: write https://host/, or http://"),
        ("https:///x", "is not an address of a web page: write https://host/, or http://"),
        ("https://[x/", "is not an address of a web page: write https://host/, or http://"),
        (
            "https://ctx.example:x/",
            "is not an address of a web page: write https://host/, or http://",
        ),
        (
            "https://ctx example/",
            "is not an address of a web page: write https://host/, or http://",
        ),
        (
            "https://me:pw@ctx.example/",
            "has more than an address: leave out user, password, ? and #",
        ),
        (
            "https://ctx.example/#token=x",
            "has more than an address: leave out user, password, ? and #",
        ),
        ("https://ctx.example/?x", "has more than an address: leave out user, password, ? and #"),
    ],
)
def test_an_invalid_page_address_is_a_fault(page: str, said: str) -> None:
    assert faults(f'page = "{page}"\n' + TARGET + PRESSURE) == [Fault(("page",), said)]


def test_without_a_page_there_is_no_link() -> None:
    assert plan(TARGET + PRESSURE).link("s") is None


def test_targets_that_are_right_are_known_whatever_is_wrong_elsewhere() -> None:
    text = TARGET + '[[targets]]\nname = "half"\n' + "[[rules]]\n"
    targets, faults = targets_of_content(tomllib.loads(text))
    assert ([each.name for each in targets], faults) == (["ops"], [])
