"""The dashboard and the alert rules: every metric and every label that they name exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from pumice.cache import effects
from pumice.manifests import monitoring
from pumice.server.metrics import series

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
METRIC = re.compile(r"\b((?:pumice|volcano)_[a-z0-9_]+)\b(?:\{([^}]*)\})?")
ENDS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
SCRAPED = {"instance", "le"}  # added by Prometheus, and by histograms
RECORDED = {f"{each.name}{end}": each for each in (*series.SERIES, *series.CONTROLLERS) for end in ENDS[each.type]}
VALUES = {"verb": set(effects.VERBS.values()), "outcome": {"sent", "dropped"}}


def dashboard():
    return json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))


def alerts():
    (group,) = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return group["rules"]


def expressions():
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield pytest.param(target["expr"], target["legendFormat"], id=f"{panel['title']} {target['refId']}")
    for alert in alerts():
        yield pytest.param(alert["expr"], alert["annotations"]["summary"], id=alert["alert"])


def unknown(expression, text):
    """Name what an expression, or the text shown with it, takes for a metric or a label of one, and is none."""
    metrics = METRIC.findall(expression)
    missing = [name for name, _ in metrics if name not in RECORDED]
    known = SCRAPED.union(*(RECORDED[name].labels for name, _ in metrics if name in RECORDED))
    chosen = [pair.partition("=")[0] for _, chosen in metrics for pair in chosen.split(",") if pair]
    grouped = [label.strip() for labels in re.findall(r"\bby \(([^)]*)\)", expression) for label in labels.split(",")]
    shown = re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", text)
    return missing + [label for label in (*chosen, *grouped, *shown) if label not in known]


@pytest.mark.parametrize(("expression", "text"), list(expressions()))
def test_every_metric_and_label_that_is_named_exists(expression, text):
    assert METRIC.search(expression)
    for label, value in re.findall(r'(\w+)="([^"]*)"', expression):
        assert value in VALUES[label]
    assert unknown(expression, text) == []


@pytest.mark.parametrize(
    ("expression", "text", "named"),
    [
        ("sum(pumice_leadership)", "", ["pumice_leadership"]),
        ("volcano_e2e_scheduling_latency_milliseconds", "", ["volcano_e2e_scheduling_latency_milliseconds"]),
        ("max by (queue) (volcano_queue_share)", "", ["queue"]),
        ('rate(pumice_writes_total{kind="bind"}[5m])', "", ["kind"]),
        ("pumice_leading", "{{pod}}", ["pod"]),
        ("pumice_watch_synced", "{{ $labels.watcher }}", ["watcher"]),
    ],
)
def test_one_that_does_not_exist_would_be_found(expression, text, named):
    assert unknown(expression, text) == named


def test_graphs_do_not_overlap_and_alerts_have_names_of_their_own():
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard()["panels"]]
    assert len(set(places)) == len(places) == len(monitoring.PANELS)
    names = [alert["alert"] for alert in alerts()]
    assert len(set(names)) == len(names) == len(monitoring.ALERTS)
    assert {alert["labels"]["severity"] for alert in alerts()} <= {"critical", "warning", "info"}
