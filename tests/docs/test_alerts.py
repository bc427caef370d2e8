"""docs/ALERTS.md matches the code: rules parse, signatures verify, facts are complete."""

import re
import tomllib
from collections.abc import Callable
from typing import get_args

from streams import codec
from streams.core.alerts.check import check_plan
from streams.core.alerts.rules import AlertKind, Pressure
from streams.edge.alerts.webhooks import _FINAL, signature_of
from streams.flow.control.alerts.webhook_bodies import body_of, body_of_test
from tests.core.alerts.test_watch import Watched, at, rule
from tests.docs.test_docs import DOCS, _blocks, _rows, _section

TEXT = (DOCS / "ALERTS.md").read_text(encoding="utf-8")


def test_first_example_is_a_valid_rules_file() -> None:
    example, _, page = _blocks(TEXT, "toml")
    plan, faults = check_plan(tomllib.loads(page + example))
    assert faults == []
    assert plan is not None
    assert f'"link": "{plan.link("5b1f0c2e")}"' in TEXT
    assert {rule.kind for rule in plan.rules} == {"pressure", "failed", "stalled"}


def test_verification_example_accepts_only_valid_signatures() -> None:
    _, example = _blocks(TEXT, "python")
    names: dict[str, Callable[[bytes, dict[str, str], bytes], bool]] = {}
    exec(example, names)  # noqa: S102 -- the document's own example
    headers = {
        "webhook-id": "an-id",
        "webhook-timestamp": "1793534400",
        "webhook-signature": signature_of(b"key", "an-id", 1_793_534_400, b"{}"),
    }
    assert names["is_genuine"](b"key", headers, b"{}")
    assert not names["is_genuine"](b"key", headers, b"{ }")
    assert not names["is_genuine"](b"another", headers, b"{}")


def test_every_kind_and_its_facts_are_listed() -> None:
    kinds = [row[0].strip("`") for row in _rows(_section(TEXT, "Rules")) if "`" in row[0]]
    assert kinds == list(get_args(AlertKind))
    facts = {
        row[0].strip("`"): re.findall(r"`(\w+)`", row[1])
        for row in _rows(_section(TEXT, "Payload"))
        if row[0] != "`kind`"
    }
    assert list(facts) == list(get_args(AlertKind))
    (alert,) = Watched(rule(Pressure(50))).take(at(60, 1, "a"))
    assert list(alert.facts) == facts["pressure"]


def test_example_body_has_the_fields_of_a_sent_body() -> None:
    (example,) = _blocks(TEXT, "json")
    (alert,) = Watched(rule(Pressure(50))).take(at(60, 1, "a"))
    keys = list(codec.loads(body_of(alert, "json", None)))
    assert list(codec.loads(example)) == keys
    assert list(codec.loads(body_of_test("ops", "json", "id", 0, None))) == keys


def test_final_status_codes_are_listed() -> None:
    (codes,) = re.findall(r"does\s+not\s+retry\s+((?:\d{3},\s+)+\d{3}\s+and\s+\d{3})", TEXT)
    assert {int(code) for code in re.findall(r"\d{3}", codes)} == _FINAL
