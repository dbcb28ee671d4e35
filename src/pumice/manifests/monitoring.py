"""A Grafana dashboard and alert rules for Prometheus, as tables of expressions over the scheduler's metrics."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_WIDTH: Final = 24  # of a dashboard, in Grafana's units
_MANY: Final = 1000  # what a queue never falls below that is not just busy
_PANEL: Final = {"w": 8, "h": 8}


class Panel(msgspec.Struct, frozen=True):
    """One graph: expressions, each with the name of its lines."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]


class Alert(msgspec.Struct, frozen=True):
    """One rule: true for so long, it is told."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str


def _quantile(part: float, series: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({part}, sum by ({labels}) (rate({series}_bucket[5m])))"


def _only_grows(series: str) -> str:
    """Give what is true of a queue that is never emptied, and longer than it was."""
    return f"min by (instance) (min_over_time({series}[5m])) > {_MANY} and max by (instance) (delta({series}[5m])) > 0"


def _by_queue(what: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"max by (queue_name) (volcano_queue_{kind}_{what})", f"{{{{queue_name}}}} {kind}")
        for kind in ("allocated", "deserved", "request")
    )


PANELS: Final = (
    Panel(
        "Groups that wait",
        "short",
        (("max(volcano_unschedule_job_count)", "groups"), ("sum(volcano_unschedule_task_count)", "pods they lack")),
    ),
    Panel(
        "From creation to a node",
        "ms",
        tuple(
            (_quantile(part, "volcano_e2e_job_scheduling_latency_milliseconds"), f"{part:.0%} of pods")
            for part in (0.5, 0.99)
        ),
    ),
    Panel("Pods bound", "ops", (('sum(rate(pumice_writes_total{verb="bind"}[5m]))', "binds"),)),
    Panel("Queues: CPU, in millicores", "short", _by_queue("milli_cpu")),
    Panel("Queues: memory", "bytes", _by_queue("memory_bytes")),
    Panel(
        "Queues: other resources, in thousandths",
        "short",
        (
            (
                "max by (queue_name, resource) (volcano_queue_allocated_scalar_resources)",
                "{{queue_name}} {{resource}}",
            ),
        ),
    ),
    Panel(
        "Queues: part of their due", "percentunit", (("max by (queue_name) (volcano_queue_share)", "{{queue_name}}"),)
    ),
    Panel(
        "Plans that evicted",
        "ops",
        (("sum by (action) (rate(volcano_eviction_transactions_total[5m]))", "{{action}}"),),
    ),
    Panel(
        "Cycles",
        "ms",
        tuple((_quantile(part, "volcano_e2e_scheduling_latency_milliseconds"), f"{part:.0%}") for part in (0.5, 0.99)),
    ),
    Panel(
        "Actions, 99%",
        "ms",
        ((_quantile(0.99, "volcano_action_scheduling_latency_milliseconds", "action"), "{{action}}"),),
    ),
    Panel(
        "Writes",
        "ops",
        (
            ("sum by (verb) (rate(pumice_writes_total[5m]))", "{{verb}}"),
            ("sum by (verb) (rate(pumice_write_failures_total[5m]))", "{{verb}} failed"),
            ("sum(pumice_writes_waiting)", "waiting"),
        ),
    ),
    Panel("Events", "ops", (("sum by (outcome) (rate(pumice_events_total[5m]))", "{{outcome}}"),)),
    Panel(
        "Overdue and busy parts",
        "s",
        (
            ("max by (instance, part) (pumice_overdue_seconds)", "{{instance}} {{part}} overdue"),
            ("max by (instance, part) (pumice_busy_seconds)", "{{instance}} {{part}} busy"),
            ("max by (instance) (pumice_oldest_bind_seconds)", "{{instance}} oldest bind"),
        ),
    ),
    Panel("Events not taken in", "short", (("max by (instance) (pumice_changes_waiting)", "{{instance}}"),)),
    Panel("Leading", "short", (("pumice_leading", "{{instance}}"),)),
    Panel(
        "Silence of the API server", "s", (("max by (instance) (pumice_api_server_silence_seconds)", "{{instance}}"),)
    ),
    Panel(
        "Breakdowns and failed watches",
        "ops",
        (
            ("sum by (action, plugin) (rate(pumice_breakdowns_total[5m]))", "{{action}} {{plugin}}"),
            ("sum by (watch) (rate(pumice_watch_errors_total[5m]))", "watch {{watch}}"),
        ),
    ),
)

ALERTS: Final = (
    Alert(
        "PumiceNobodyLeads",
        "sum(pumice_leading) < 1 or absent(pumice_leading)",
        "2m",
        "critical",
        "No scheduler decides: pods that wait stay waiting.",
    ),
    Alert(
        "PumiceStalled",
        "max by (instance, part) (pumice_overdue_seconds) > 5",
        "0m",
        "critical",
        "{{ $labels.part }} of {{ $labels.instance }} has not begun what was due {{ $value }} seconds ago; the log has all stacks, and the process ends after 30.",
    ),
    Alert(
        "PumiceCycleLong",
        "max by (instance, part) (pumice_busy_seconds) > 60",
        "0m",
        "warning",
        "What {{ $labels.part }} of {{ $labels.instance }} does has been going on for {{ $value }} seconds; the log has the stacks, and --cycle-deadline ends it.",
    ),
    Alert(
        "PumiceRestarts",
        "max by (instance) (changes(pumice_start_time_seconds[30m])) > 2",
        "0m",
        "warning",
        "{{ $labels.instance }} was started {{ $value }} times in half an hour; the last lines of the log before it say why it ended.",
    ),
    Alert(
        "PumiceBindsOverdue",
        "max by (instance) (pumice_oldest_bind_seconds) > 60",
        "1m",
        "critical",
        "{{ $labels.instance }} has decided on a pod whose bind has had no answer for {{ $value }} seconds.",
    ),
    Alert(
        "PumiceChangesPileUp",
        _only_grows("pumice_changes_waiting"),
        "5m",
        "critical",
        "Events come in faster than {{ $labels.instance }} takes them in: it decides on what is not true any more.",
    ),
    Alert(
        "PumiceWritesPileUp",
        _only_grows("pumice_writes_waiting"),
        "5m",
        "warning",
        "{{ $labels.instance }} decides faster than the API server answers: binds and statuses come late.",
    ),
    Alert(
        "PumiceControllersPileUp",
        _only_grows("pumice_controllers_waiting"),
        "5m",
        "warning",
        "More objects wait for the controllers of {{ $labels.instance }} than they look at.",
    ),
    Alert(
        "PumiceRecordingIncomplete",
        "max by (instance) (increase(pumice_recording_dropped_total[10m])) > 0",
        "0m",
        "warning",
        "Cycles of {{ $labels.instance }} are missing in its recording; the log says what is wrong with the folder.",
    ),
    Alert(
        "PumiceConfigurationRefused",
        "min(pumice_configuration_valid) == 0",
        "5m",
        "warning",
        "The configuration that is there now was refused; the last good one stays in force. The log has the lines.",
    ),
    Alert(
        "PumiceBreakdowns",
        "sum by (action, plugin) (increase(pumice_breakdowns_total[10m])) > 0",
        "0m",
        "warning",
        "Action {{ $labels.action }}, plugin {{ $labels.plugin }} let out an exception; the log has the place.",
    ),
    Alert(
        "PumiceApiServerSilent",
        "min by (instance) (pumice_api_server_silence_seconds) > 120",
        "1m",
        "critical",
        "{{ $labels.instance }} has not heard of the API server for {{ $value }} seconds.",
    ),
    Alert(
        "PumiceWatchIncomplete",
        "min by (instance, watch) (pumice_watch_synced) == 0",
        "10m",
        "warning",
        "Watch {{ $labels.watch }} of {{ $labels.instance }} has had no complete list; a permission may be missing.",
    ),
    Alert(
        "PumiceWritesFail",
        "sum(rate(pumice_write_failures_total[5m])) / sum(rate(pumice_writes_total[5m])) > 0.1",
        "10m",
        "warning",
        "More than one write of ten fails; the log says which.",
    ),
    Alert(
        "PumiceCyclesSlow",
        f"{_quantile(0.99, 'volcano_e2e_scheduling_latency_milliseconds')} > 2000",
        "15m",
        "warning",
        "One cycle of a hundred takes more than two seconds.",
    ),
    Alert(
        "PumiceEventsDropped",
        'sum(rate(pumice_events_total{outcome="dropped"}[10m])) > 1',
        "10m",
        "info",
        "Events are dropped; those of binds and evictions are in the log all the same.",
    ),
)


def dashboard() -> dict[str, Any]:
    """Give the dashboard as Grafana imports it; the data source is chosen there."""
    return {
        "title": "Pumice",
        "uid": "pumice-scheduler",
        "tags": ["kubernetes", "scheduler"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
        },
        "panels": [_panel(position, panel) for position, panel in enumerate(PANELS)],
    }


def _panel(position: int, panel: Panel) -> dict[str, Any]:
    across = _WIDTH // _PANEL["w"]
    place = {**_PANEL, "x": position % across * _PANEL["w"], "y": position // across * _PANEL["h"]}
    return {
        "id": position + 1,
        "type": "timeseries",
        "title": panel.title,
        "gridPos": place,
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend}
            for number, (expression, legend) in enumerate(panel.lines)
        ],
    }


def alert_rules() -> dict[str, Any]:
    """Give the alerts as Prometheus reads a file of rules, and as the spec of a PrometheusRule."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary},
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "pumice", "rules": rules}]}
