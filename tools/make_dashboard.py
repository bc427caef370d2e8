"""Generate the Grafana dashboard, `deploy/grafana/contextgauge.json`, from its panels.

    python tools/make_dashboard.py

A test fails if the file is out of date, if an expression cannot be parsed, or if it uses an
unknown metric.
"""

import json
from pathlib import Path
from typing import Any

from tools.dashboard_panels import ROWS, Panel

DOCUMENT = Path(__file__).parents[1] / "deploy" / "grafana" / "contextgauge.json"

SCHEMA_VERSION = 39
"""Of Grafana 11; later versions migrate it."""

_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS = 24
_HEIGHT = 8
_STAT_HEIGHT = 4


def document() -> str:
    """Return the dashboard's JSON."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1},
                "panels": [],
            }
        )
        y += 1
        x, tallest = 0, 0
        for panel in row:
            height = _STAT_HEIGHT if panel.kind == "stat" else _HEIGHT
            if x + panel.width > _COLUMNS or (tallest and height != tallest):
                x, y, tallest = 0, y + tallest, 0
            place = {"x": x, "y": y, "w": panel.width, "h": height}
            panels.append(_panel(panel, len(panels) + 1, place))
            x, tallest = x + panel.width, height
        y += tallest
    return json.dumps(_dashboard(panels), indent=2) + "\n"


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red is not None:
        steps.append({"color": "red", "value": panel.red})
    overrides = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for name, colour in (panel.colours or {}).items()
    ]
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    if panel.kind == "timeseries":
        defaults["custom"] = {
            "fillOpacity": 30 if panel.stacked else 5,
            "stacking": {"mode": "normal" if panel.stacked else "none"},
            "thresholdsStyle": {"mode": "off" if panel.red is None else "line"},
        }
        options: dict[str, Any] = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    else:
        options = {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "area",
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.what,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": overrides},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _DATASOURCE,
                "expr": expression,
                "legendFormat": legend or "__auto",
                "range": True,
            }
            for index, (legend, expression) in enumerate(panel.queries)
        ],
    }


def _dashboard(panels: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "uid": "contextgauge",
        "title": "contextgauge",
        "description": "Context windows of AI agents, and the pipeline that derives them.",
        "tags": ["contextgauge"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                    "current": {},
                    "hide": 0,
                },
                {
                    "name": "job",
                    "label": "Job",
                    "type": "query",
                    "datasource": _DATASOURCE,
                    "definition": "label_values(contextgauge_worker_build, job)",
                    "query": {
                        "query": "label_values(contextgauge_worker_build, job)",
                        "refId": "jobs",
                    },
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                    "hide": 0,
                },
            ]
        },
        "panels": panels,
    }


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
