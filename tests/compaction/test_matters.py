"""Newer values replace older ones of the same thing only: what is about another thing stays."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextgauge.compaction import Compactor, History, ModelCall
from contextgauge.compaction.carried.pins import carry
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.extractive import floor
from contextgauge.compaction.messages import Carried, Message
from tests.compaction.conversations import said
from tests.compaction.matters import DIFFERENT, SAME

TIGHT_TOKENS = 110
"""A line of the task, the headings, and two or three statements."""


def _turns(*texts: str) -> list[Message]:
    turns = ["Hello there.", *texts, *["Go on."] * 20]
    messages: list[Message] = []
    for index, text in enumerate(turns):
        messages += [said("user", text, id=f"u{index}"), said("assistant", f"Done: {index}. " * 30)]
    return messages


async def _compacted(*texts: str) -> tuple[str, list[str]]:
    history = History(_turns(*texts))
    await Compactor().compact(history, ModelCall(window_tokens=200_000))
    marker = next(each.compaction for each in history.active if each.compaction)
    return marker.summary, [each.text for each in marker.carried.pins]


def _tight(*texts: str) -> str:
    messages = _turns(*texts)
    carried = carry(Carried(), messages)
    return floor(messages, carried, number=1, budget_tokens=TIGHT_TOKENS, counter=ESTIMATE)


def _sentences(text: str) -> list[str]:
    return [each.rstrip(".") for each in text.split(". ")]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
async def test_statements_about_different_things_both_stay(first: str, second: str) -> None:
    for older, newer in ((first, second), (second, first)):
        text, pins = await _compacted(older, newer)
        for sentence in (*_sentences(older), *_sentences(newer)):
            assert sentence in text
            assert sentence in _tight(older, newer)
        assert " ".join(pins) == f"{older} {newer}"


@pytest.mark.parametrize(("older", "newer"), SAME)
async def test_newer_value_of_the_same_thing_replaces_the_older_one(older: str, newer: str) -> None:
    text, pins = await _compacted(older, newer)
    value = newer.removeprefix("Next up: ")
    for each in (text, " ".join(pins), _tight(older, newer)):
        assert value in each
        assert older not in each
    assert len(pins) == 1


@pytest.mark.parametrize(
    "contexts",
    [
        ("For Anna: {}.", "For Ben: {}."),
        ("On staging, {}.", "On production, {}."),
        ("In a.py, {}.", "In b.py, {}."),
        ("[web] {}.", "[app] {}."),
        ("Für Kunde Müller: {}.", "Für Kunde Maier: {}."),
        ("{} for task 12.", "{} for task 13."),
        ("{} in Berlin.", "{} in Paris."),
        ("{}, on weekdays.", "{}, on weekends."),
        ("{} (web).", "{} (app)."),
        ("{} if idle.", "{} if busy."),
        ("{} with cache.", "{} without cache."),
        ("{} but never in x.", "{} but never in y."),
    ],
)
def test_values_of_one_thing_in_different_contexts_both_stay(contexts: tuple[str, str]) -> None:
    for pair in SAME:
        if pair[0].startswith("Next step"):
            continue
        turns = [
            context.format(each.rstrip(".")) for context, each in zip(contexts, pair, strict=True)
        ]
        pins = carry(Carried(), _turns(*turns)).pins
        bodies = [each.rstrip(".").rpartition(": ")[2] for each in pair]
        assert len(pins) == len(turns)
        assert all(body in pin.text for body, pin in zip(bodies, pins, strict=True))


RULES = [
    "Rule {n}: always keep {name} under {value} lines and never rename it.",
    "Keep {name} under {value} lines.",
    "The timeout of {name} is {value} seconds.",
    "Table {name} has at most {value} columns.",
    "From now on, {name} has a limit of {value} requests.",
    "The budget of {name} is ${value}.",
    "Set the port of {name} to {value}.",
    "The deadline for {name} is 2026-12-{value}.",
]
NAMES = st.one_of(
    st.from_regex(r"[a-z]{3,8}_[a-z0-9]{1,4}\.(py|ts|go)", fullmatch=True),
    st.from_regex(r"[A-Z]{2,4}-[0-9]{1,4}", fullmatch=True),
    st.from_regex(r"(src|lib)/[a-z]{3,9}", fullmatch=True),
    st.from_regex(r"(client|task|room) [0-9]{1,4}", fullmatch=True),
    st.from_regex(r"[A-Z][a-zäöüß]{3,9}x", fullmatch=True),
)


@given(
    st.sampled_from(RULES),
    st.lists(NAMES, min_size=2, max_size=24, unique_by=str.lower),
)
@example(RULES[0], [f"file_{index}.py" for index in range(60)])
@example(RULES[1], [f"file {index}" for index in range(96)])
def test_a_rule_for_each_of_many_names_stays(rule: str, names: list[str]) -> None:
    rules = [
        rule.format(n=index, name=name, value=10 + index % 90) for index, name in enumerate(names)
    ]
    messages = _turns(*rules)
    carried = carry(Carried(), messages)
    assert [each.text for each in carried.pins] == rules
    text = floor(messages, carried, number=1, budget_tokens=None, counter=ESTIMATE)
    assert all(each in text for each in rules)


async def test_later_statements_are_marked_as_later_in_every_section() -> None:
    text, _ = await _compacted(
        "The output folder should be /srv/out/invoices.",
        "Write output to /srv/exports/2026 from now on.",
        "Use PostgreSQL as the database.",
        "Switch to SQLite.",
    )
    assert text.startswith("[Compaction 1. The user's numbered turns win, later over earlier.]")
    lines = text.splitlines()
    numbers = [
        next(int(line.partition(". ")[0]) for line in lines if each in line)
        for each in ("/srv/out", "/srv/exports", "PostgreSQL", "SQLite")
    ]
    assert numbers == sorted(set(numbers))


async def test_a_continued_line_stays_with_its_beginning() -> None:
    text, _ = await _compacted("Keep a.py short. Never rename it.", "Keep b.py short. Log it.")
    assert "Keep a.py short. Never rename it." in text
    assert "Keep b.py short. Log it." in text


async def test_what_a_newer_value_does_not_touch_stays() -> None:
    text, _ = await _compacted(
        "Always keep a.py under 300 lines and never rename it.",
        "Always keep a.py under 400 lines.",
    )
    assert "Always keep a.py under [replaced later] and never rename it." in text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Migrate the billing service to PostgreSQL 16.", "request"),
        ("The migration is in progress.", "goal"),
        ("Start the web server, and use port 8080.", "request"),
        ("Next: rewrite the index in src/a.py.", "request"),
        ("Switch to SQLite.", "request"),
        ("hmm, on second thought python 3.12 is fine", "preference"),
        ("Create the red button and always make it 40 px wide.", "constraint"),
        ("Test coverage must be at least 80%.", "constraint"),
        ("The service listens on port 8080.", "fact"),
    ],
)
def test_work_is_a_request_whatever_values_it_names(text: str, kind: str) -> None:
    (pin,) = carry(Carried(), [said("user", text, id="u")]).pins
    assert (pin.kind, pin.text) == (kind, text)
