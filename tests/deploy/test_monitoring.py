"""Rules and dashboard: they parse, they do what they say, and all that they name is there."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, ProcessCollector

from streams.edge.telemetry.metric_catalog import COUNTERS, GAUGES, HISTOGRAMS, NAMESPACE
from tests.docs.test_docs import DOCS, ROOT, _anchors, _blocks
from tests.patience import PATIENCE_S
from tools.make_dashboard import DOCUMENT, document

PROMETHEUS = ROOT / "deploy" / "prometheus"
RULE_FILES = (PROMETHEUS / "recording.yml", PROMETHEUS / "alerts.yml")
UNIT_TESTS = Path(__file__).with_name("rules_test.yml")
RULES_TEXT = "".join(path.read_text(encoding="utf-8") for path in RULE_FILES)
DASHBOARD: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RUNBOOK = (DOCS / "RUNBOOK.md").read_text(encoding="utf-8")

ALERTS = re.findall(r"- alert: (\w+)", RULES_TEXT)
RECORDED = re.findall(r"- record: (\S+)", RULES_TEXT)


def labels_of_metrics() -> dict[str, set[str]]:
    """Return every series that the product exports, with its own labels."""
    labels = {f"{NAMESPACE}_{name}_total": set(item.labels) for name, item in COUNTERS.items()}
    labels |= {f"{NAMESPACE}_{name}": set(item.labels) for name, item in GAUGES.items()}
    for name, item in HISTOGRAMS.items():
        labels[f"{NAMESPACE}_{name}_bucket"] = {*item.labels, "le"}
        labels |= {f"{NAMESPACE}_{name}_{part}": set(item.labels) for part in ("sum", "count")}
    return labels


METRICS = labels_of_metrics()


@pytest.fixture(scope="session")
def promtool() -> str:
    """Prometheus's own tool; it comes with the distribution's package `prometheus`."""
    found = shutil.which("promtool")
    if found is None:
        missing = "there is no promtool: install the package prometheus"
        if os.environ.get("CI"):
            pytest.fail(f"{missing} (CI is set: nothing may be skipped)")
        pytest.skip(missing)
    return found


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def expressions() -> list[str]:
    return [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_the_configuration_and_all_rules_are_valid(promtool: str) -> None:
    output = run(promtool, "check", "config", str(PROMETHEUS / "prometheus.yml"))
    assert output.count("rules found") == len(RULE_FILES)
    run(promtool, "check", "rules", "--lint=all", "--lint-fatal", *map(str, RULE_FILES))


@pytest.mark.extended
def test_the_alert_rules_pass_their_unit_tests(promtool: str) -> None:
    assert "SUCCESS" in run(promtool, "test", "rules", str(UNIT_TESTS))


def test_every_alert_is_tested_firing_and_silent() -> None:
    """Each fires in a test, and does not in another or at another moment."""
    text = UNIT_TESTS.read_text(encoding="utf-8")
    assert len(ALERTS) == len(set(ALERTS)) > 20
    fires = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts", text))
    quiet = set(re.findall(r"alertname: (\w+)\}", text))
    assert set(ALERTS) - fires == set()
    assert fires | quiet <= set(ALERTS)
    assert len(quiet) >= 12


def test_every_alert_links_to_its_section_of_the_runbook() -> None:
    named = re.findall(r'runbook: "docs/RUNBOOK\.md#([\w-]+)"', RULES_TEXT)
    assert len(named) == len(ALERTS)
    assert set(named) - _anchors(RUNBOOK) == set()
    assert RULES_TEXT.count("severity: ") == len(ALERTS) + 1  # and where it is explained
    assert set(re.findall(r"labels: \{severity: (\w+)\}", RULES_TEXT)) == {"info", "ticket", "page"}


@pytest.mark.parametrize("text", [RULES_TEXT, *expressions()], ids=lambda text: text[:60])
def test_every_metric_and_label_that_is_named_is_exported(text: str) -> None:
    names = set(re.findall(rf"\b{NAMESPACE}_[a-z0-9_]+", text))
    assert names <= set(METRICS)
    for name, matchers in re.findall(rf"\b({NAMESPACE}_[a-z0-9_]+)\{{([^}}]*)\}}", text):
        labels = set(re.findall(r"(\w+)=~?\"", matchers)) - {"job"}
        assert labels <= METRICS[name], name
    assert set(re.findall(rf"\b{NAMESPACE}:[a-z0-9_:]+", text)) <= set(RECORDED)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    usual = {f"{family.name}_total" for family in registry.collect()}
    usual |= {family.name for family in registry.collect()}
    assert set(re.findall(r"\bprocess_[a-z_]+", text)) <= usual


def test_every_label_value_in_the_rules_exists_in_the_code() -> None:
    """Kinds of records, bands, workers and outcomes are words of the code."""
    text = RULES_TEXT + "".join(expressions())
    labels = {
        value
        for values in re.findall(r"\b(?:kind|band|worker|outcome|service)=~?\"([^\"$]+)\"", text)
        for value in values.split("|")
    }
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "streams").rglob("*.py"))
    code += (ROOT / "schemas" / "records.py").read_text(encoding="utf-8")
    assert {value for value in labels if f'"{value}"' not in code} == set()
    assert len(labels) > 5


def test_the_dashboard_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run tools/make_dashboard.py"


def test_the_dashboard_is_what_grafana_expects() -> None:
    assert DASHBOARD["schemaVersion"] >= 36
    assert "id" not in DASHBOARD  # of one installation only
    assert {item["name"]: item["type"] for item in DASHBOARD["templating"]["list"]} == {
        "datasource": "datasource",
        "job": "query",
    }
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in PANELS:
        assert panel["type"] in {"timeseries", "stat"}
        assert panel["description"].endswith(".")
        assert panel["datasource"]["uid"] == "${datasource}"
        assert [target["refId"] for target in panel["targets"]] == ["A", "B"][
            : len(panel["targets"])
        ]
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_prometheus_parses_every_expression_of_the_dashboard(promtool: str, tmp_path: Path) -> None:
    plain = [
        text.replace("$__rate_interval", "5m").replace('"$job"', '".*"') for text in expressions()
    ]
    assert all("$" not in text for text in plain)
    rules = [{"record": f"panel:{index}", "expr": text} for index, text in enumerate(plain)]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(plain)} rules found" in run(promtool, "check", "rules", str(file))


def test_the_documents_configuration_is_the_one_that_is_shipped() -> None:
    (block,) = _blocks((DOCS / "MONITORING.md").read_text(encoding="utf-8"), "yaml")
    text = (PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8")
    assert block == text


def test_the_document_names_every_alert() -> None:
    text = (DOCS / "MONITORING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(Contextgauge\w+)` \|", text, re.MULTILINE) == ALERTS
