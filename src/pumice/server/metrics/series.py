"""The metrics as data: Volcano's names, so that its dashboards and alerts keep working, and a few of our own.

Latencies are milliseconds. Series about jobs and queues go with their objects. Names are exactly these; where the exposition format wants `_total` at the end
of a counter and Volcano's name has none, the series is untyped.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Type = Literal["histogram", "counter", "gauge"]
Sample = tuple[str, tuple[str, ...], float]
"""A number as it is now: its metric, the values of its labels, and how much."""


class Series(msgspec.Struct, frozen=True):
    """One metric; `buckets` are least, greatest and number of a geometric row."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, float, int] | None = None


def _histogram(name: str, labels: tuple[str, ...], buckets: tuple[float, float, int], text: str) -> Series:
    return Series(f"volcano_{name}", "histogram", labels, text, buckets)


def _gauge(name: str, labels: tuple[str, ...], text: str) -> Series:
    return Series(f"volcano_{name}", "gauge", labels, text)


def _counter(name: str, labels: tuple[str, ...], text: str) -> Series:
    return Series(f"volcano_{name}", "counter", labels, text)


def _of_queue(what: str, text: str) -> tuple[Series, Series, Series]:
    return (
        _gauge(f"queue_{what}_milli_cpu", _QUEUE, f"{text}: millicores"),
        _gauge(f"queue_{what}_memory_bytes", _QUEUE, f"{text}: bytes of memory"),
        _gauge(
            f"queue_{what}_scalar_resources",
            ("queue_name", "resource"),
            f"{text}: other resources, in thousandths; pods, storage and volumes in whole units",
        ),
    )


_QUEUE: Final = ("queue_name",)
_JOB: Final = ("job_name", "queue", "job_namespace")

SERIES: Final[tuple[Series, ...]] = (
    _histogram("e2e_scheduling_latency_milliseconds", (), (1, 5000, 20), "one cycle"),
    _histogram("open_session_duration_milliseconds", (), (1, 5000, 20), "opening of a session, plugins included"),
    _histogram(
        "e2e_job_scheduling_latency_milliseconds",
        (),
        (100, 120_000, 30),
        "from the creation of a group to the moment one of its pods was given a node, once per pod",
    ),
    _gauge("e2e_job_scheduling_duration", _JOB, "the same, in milliseconds, for the latest pod of each group"),
    _gauge("e2e_job_scheduling_start_time", _JOB, "creation of a group, in seconds since 1970"),
    _gauge("e2e_job_scheduling_last_time", _JOB, "when a pod of a group was last given a node, in seconds since 1970"),
    _histogram(
        "plugin_scheduling_latency_milliseconds",
        ("plugin", "OnSession"),
        (0.1, 100, 15),
        "OnSessionOpen or OnSessionClose of one plugin",
    ),
    _histogram("action_scheduling_latency_milliseconds", ("action",), (1, 2000, 20), "one action in one cycle"),
    _histogram(
        "task_scheduling_latency_milliseconds",
        ("stage",),
        (50, 60_000, 30),
        "from the creation of a pod until it was Watched, Assumed (given a node), PreBound (its volumes ready), Bound",
    ),
    _histogram(
        "scheduling_stage_duration_milliseconds",
        ("stage",),
        (0.1, 500, 20),
        "Predicate and Scoring of all nodes that changed, PreBind (volumes) and Bind (the request) of one attempt",
    ),
    _gauge("pod_preemption_victims", (), "victims of the latest preemption"),
    _counter("total_preemption_attempts", (), "searches for victims by preempt and gangpreempt"),
    _counter("eviction_transactions_total", ("action",), "plans that evicted at least one pod"),
    _gauge("unschedule_task_count", ("job_id",), "pods that a group lacks to its minimum, 0 once it has them"),
    _gauge("unschedule_job_count", (), "groups with waiting pods that lack pods to their minimum"),
    _gauge("job_share", ("job_ns", "job_id"), "dominant share of a group (plugin drf)"),
    _counter("job_retry_counts", ("job_id",), "cycles in which a group with waiting pods was looked at and not ready"),
    *_of_queue("allocated", "what a queue holds"),
    *_of_queue("request", "what a queue holds and its waiting pods ask for"),
    *_of_queue("deserved", "what a queue is due (plugins proportion and capacity)"),
    *_of_queue("inqueue", "what was let in and is not taken yet (plugins proportion and capacity)"),
    *_of_queue("capacity", "capability of a queue (plugin capacity)"),
    *_of_queue("real_capacity", "what a queue may hold, guarantees of others considered (plugin capacity)"),
    _gauge("queue_share", _QUEUE, "part of its due that a queue holds (plugins proportion and capacity)"),
    _gauge("queue_weight", _QUEUE, "weight of a queue"),
    _gauge("queue_overused", _QUEUE, "1 if a queue holds all it is due (plugins proportion and capacity)"),
    Series("pumice_configuration_valid", "gauge", (), "1 if the configuration that is there now is in force"),
    Series("pumice_leading", "gauge", (), "1 while this process decides"),
    Series(
        "pumice_api_server_silence_seconds",
        "gauge",
        (),
        "age of the last sign of life of the API server: an answer about the Lease, a list, a line of a watch; quiet clusters without a Lease reach 60",
    ),
    Series(
        "pumice_overdue_seconds",
        "gauge",
        ("part",),
        "for how long a part of the process has not begun what was due, without the time in which the process did not run; from 5 on it is told, at 30 the process ends",
    ),
    Series(
        "pumice_busy_seconds",
        "gauge",
        ("part",),
        "for how long what a part of the process does now has been going on, such as one cycle; see --cycle-deadline",
    ),
    Series(
        "pumice_start_time_seconds",
        "gauge",
        (),
        "when the process was started, in seconds since 1970; it changes with every restart",
    ),
    Series("pumice_changes_waiting", "gauge", (), "events of watches that have come in and no cycle has taken in"),
    Series(
        "pumice_oldest_bind_seconds",
        "gauge",
        (),
        "for how long the oldest bind that was decided has had no answer, 0 if none is on its way; those that wait for volumes do not count",
    ),
    Series(
        "pumice_stalls_total", "counter", ("part",), "how often it was told that a part of the process does not go on"
    ),
    Series(
        "pumice_cycles_total",
        "counter",
        ("outcome",),
        "cycles by outcome: decided (also where something broke down), skipped (nothing had changed)",
    ),
    Series(
        "pumice_breakdowns_total",
        "counter",
        ("action", "plugin"),
        "exceptions and wrong answers of actions and plugins, once per cycle for each function and each job it was asked about; a name is empty where it is not known",
    ),
    Series(
        "pumice_retreats_total",
        "counter",
        ("way",),
        "fast ways that were left because of an exception, with the same decisions at the cost of time: rounds (turns taken together), blocks (many shapes evaluated at once), letting in (groups voted on together), task order (tasks of all jobs sorted at once); each cause is logged once",
    ),
    Series(
        "pumice_broken_functions",
        "gauge",
        ("plugin", "point"),
        "functions of plugins that broke down in the last cycle, or are at rest because they did in the cycles before",
    ),
    Series(
        "pumice_evictions_total",
        "counter",
        ("action", "queue", "claimant_queue"),
        "pods evicted, by action, their queue and the queue they were evicted for; that is empty where they make room for nobody",
    ),
    Series("pumice_recording_bytes_total", "counter", (), "bytes written to the recording (--record)"),
    Series("pumice_recording_seconds_total", "counter", (), "processor time of the thread that writes the recording"),
    Series(
        "pumice_recording_dropped_total",
        "counter",
        (),
        "cycles, and steps of a standby, that are missing in the recording: the folder could not be written to, or not fast enough",
    ),
    Series("pumice_watch_synced", "gauge", ("watch",), "1 if a watch has had a complete list"),
    Series("pumice_watch_objects", "gauge", ("watch",), "objects that a watch follows"),
    Series("pumice_watch_lists_total", "counter", ("watch",), "complete lists of a watch"),
    Series("pumice_watch_errors_total", "counter", ("watch",), "failures of a watch that it recovered from"),
    Series(
        "pumice_writes_total",
        "counter",
        ("verb",),
        "writes and reads sent for decisions; `queue` is the status of a queue",
    ),
    Series("pumice_write_failures_total", "counter", ("verb",), "those that failed"),
    Series("pumice_writes_waiting", "gauge", (), "writes that wait to be sent or answered"),
    Series(
        "pumice_events_total",
        "counter",
        ("outcome",),
        "Kubernetes Events sent, and dropped since they failed or were beyond a budget",
    ),
)

CONTROLLERS: Final[tuple[Series, ...]] = (
    _counter("job_completed_phase_count", ("job_name", "queue_name"), "how often a job was completed"),
    _counter("job_failed_phase_count", ("job_name", "queue_name"), "how often a job has failed"),
    _counter("jobflow_succeed_phase_count", ("jobflow_namespace",), "flows of a namespace that have succeeded"),
    _counter("jobflow_failed_phase_count", ("jobflow_namespace",), "flows of a namespace that have failed"),
    *(
        _gauge(f"queue_pod_group_{phase}_count", _QUEUE, f"groups of a queue in phase {phase.capitalize()}")
        for phase in ("inqueue", "pending", "running", "unknown", "completed")
    ),
    _histogram(
        "controller_job_to_pod_creation_latency_milliseconds",
        (),
        (50, 60_000, 30),
        "from the creation of a job to that of its first pod",
    ),
    Series("pumice_controllers_leading", "gauge", (), "1 while this process runs its controllers"),
    Series("pumice_controllers_turns_total", "counter", (), "looks of controllers at an object"),
    Series("pumice_controllers_waiting", "gauge", (), "objects that wait to be looked at"),
    Series(
        "pumice_controllers_requests_total",
        "counter",
        ("verb", "resource"),
        "requests of controllers, by verb (create, patch, apply, delete, get) and resource",
    ),
    Series("pumice_controllers_request_failures_total", "counter", ("verb", "code"), "those that failed"),
    Series(
        "pumice_controllers_breakdowns_total",
        "counter",
        (),
        "exceptions of controllers, each of which cost one object a turn",
    ),
)
"""What controllers are measured by, in a process of their own or beside the scheduler."""

SHARED: Final = (
    "pumice_api_server_silence_seconds",
    "pumice_overdue_seconds",
    "pumice_busy_seconds",
    "pumice_stalls_total",
    "pumice_start_time_seconds",
    "pumice_watch_synced",
    "pumice_watch_objects",
    "pumice_watch_lists_total",
    "pumice_watch_errors_total",
    "pumice_events_total",
)
"""What is measured in a process of controllers as it is in the scheduler."""

BY_NAME: Final = {series.name: series for series in (*SERIES, *CONTROLLERS)}


def bounds(series: Series) -> tuple[float, ...]:
    """Return the upper bounds of a histogram: a geometric row from the least to the greatest."""
    if series.buckets is None:
        return ()
    least, greatest, number = series.buckets
    growth = (greatest / least) ** (1 / (number - 1))
    return tuple(least * growth**position for position in range(number))
