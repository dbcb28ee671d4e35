"""Plain tables are those of vcctl: its columns, in its order, with its widths; what it does not print well is made better without moving anything."""

from __future__ import annotations

import command_objects as objects
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.meta import ObjectMeta
from pumice.cli.volcano import columns, flow_rows, gang_rows, job_rows, pod_rows, queue_rows, start_rows


def text(table, items):
    return "\n".join(columns.text(table, items, objects.NOW))


# -- jobs ------------------------------------------------------------------------------------------------------------


def go_table(rows, widths):
    """Format as Go's `%-Ns` does: pad to the width, never cut."""
    return [
        "".join(f"{cell!s}{' ' * max(0, width - len(str(cell)))}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


JOB_HEADINGS = [
    "Name",
    "Creation",
    "Phase",
    "JobType",
    "Replicas",
    "Min",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Unknown",
    "RetryCount",
]
JOB_WIDTHS = [15, 12, 12, 12, 6, 10, 10, 12, 10, 12, 10]


@given(
    st.lists(
        st.tuples(
            st.text("abc-", min_size=1, max_size=60),
            st.integers(0, 9999),
            st.sampled_from(["Pending", "Running", "Terminating"]),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_jobs_are_padded_exactly_as_vcctl_pads_them(drawn):
    made = [
        objects.job(name, phase=phase, replicas=(count, 1), status={"minAvailable": 2, "running": count})
        for name, count, phase in drawn
    ]
    rows = [JOB_HEADINGS] + [
        [name, "2025-12-31", phase, "Batch", count + 1, 2, 0, count, 0, 0, 0, 0] for name, count, phase in drawn
    ]
    widest = max(4, *(len(name) for name, _, _ in drawn)) + 3
    assert columns.text(job_rows.COLUMNS, made, objects.NOW) == go_table(rows, [widest, *JOB_WIDTHS])


def test_job_table_as_it_is_printed():
    made = [
        objects.job("train", replicas=(4, 2), status={"minAvailable": 4, "running": 4, "pending": 2}),
        objects.job(
            "a-much-longer-name",
            "research",
            phase="Completed",
            labels={"volcano.sh/job-type": "MPI"},
            status={"succeeded": 4, "retryCount": 1},
        ),
        {"metadata": {"name": "new", "namespace": "default"}},
    ]
    assert text((job_rows.NAMESPACE, *job_rows.COLUMNS), made) == (
        "Namespace   Name                 Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     RetryCount\n"
        "default     train                2025-12-31     Running     Batch       6           4     2         4         0           0         0           0         \n"
        "research    a-much-longer-name   2025-12-31     Completed   MPI         4           0     0         0         4           0         0           1         \n"
        "default     new                                             Batch       0           0     0         0         0           0         0           0         "
    )


CAUSE = "queue research holds 16 of its 20 nvidia.com/gpu, the job asks for 8 more"


def waiting_jobs():
    waits = objects.job("bert", phase="Pending", status={"minAvailable": 4})
    waits["status"]["state"]["message"] = CAUSE
    return [objects.job("a-much-longer-name"), waits]


@pytest.mark.parametrize("everywhere", [False, True])
def test_cause_stands_behind_the_columns_of_vcctl_and_moves_none(everywhere):
    jobs = waiting_jobs()
    table = job_rows.table(jobs, everywhere=everywhere, terminal=0)
    first = (job_rows.NAMESPACE,) if everywhere else ()
    before = columns.text((*first, *job_rows.COLUMNS), jobs, objects.NOW)
    lines = columns.text(table, jobs, objects.NOW)
    assert all(line.startswith(alone.rstrip()) for line, alone in zip(lines, before, strict=True))
    assert [line[len(before[0]) :].strip() for line in lines] == ["Reason", "", CAUSE]
    nobody = job_rows.table(jobs[:1], everywhere=everywhere, terminal=80)
    assert nobody == (*first, *job_rows.COLUMNS), "where nothing waits the table is vcctl's, on a terminal too"


def test_terminal_of_eighty_characters_shows_the_cause_before_its_edge():
    jobs = waiting_jobs()
    lines = columns.text(job_rows.table(jobs, everywhere=False, terminal=80), jobs, objects.NOW)
    assert [line.rstrip() for line in lines] == [
        "Name                Phase    Min  Running  Reason",
        "a-much-longer-name  Running  0    0",
        f"bert                Pending  4    0        {CAUSE}",
    ]
    assert job_rows.table(jobs, everywhere=False, terminal=300) == (*job_rows.COLUMNS, job_rows.REASON)


@given(st.lists(objects.jobs(), min_size=1, max_size=5), st.booleans(), st.integers(0, 300), st.booleans())
def test_no_job_however_odd_breaks_the_choice_of_columns(made, everywhere, terminal, follows):
    table = job_rows.table(made, everywhere=everywhere, terminal=terminal, follows=follows)
    assert len(columns.text(table, made, objects.NOW)) == len(made) + 1


@given(st.lists(objects.jobs(), min_size=1, max_size=5))
def test_no_job_however_odd_breaks_the_table_or_the_terminal(made):
    lines = columns.text((job_rows.NAMESPACE, *job_rows.COLUMNS, *job_rows.WIDE), made, objects.NOW)
    assert len(lines) == len(made) + 1
    assert all(line.isprintable() for line in lines)


def test_jobs_are_chosen_by_queue_scheduler_and_part_of_the_name():
    made = [
        objects.job("bert-1", queue="a"),
        objects.job("bert-2", schedulerName="other"),
        objects.job("llama"),
    ]

    def chosen(**wanted):
        return [columns.name(each) for each in job_rows.chosen(made, **wanted)]

    assert chosen() == ["bert-1", "bert-2", "llama"]
    assert chosen(queue_name="a") == ["bert-1"]
    assert chosen(queue_name="default") == ["bert-2", "llama"]
    assert chosen(scheduler="volcano", part="bert") == ["bert-1"]
    assert chosen(part="ert-") == ["bert-1", "bert-2"]


# -- queues ----------------------------------------------------------------------------------------------------------


def test_queue_table_as_it_is_printed():
    made = [
        objects.queue("default", weight=3, parent="root"),
        objects.queue("research", state="Closing", parent="default"),
        objects.queue("fresh", state=""),
        objects.queue("a-queue-whose-name-is-longer-than-its-column", parent="a-long-parent"),
    ]
    groups = [
        objects.group("g1", phase="Running"),
        objects.group("g2", "default", "Inqueue"),
        objects.group("g3", "research", ""),
        objects.group("g4", "research", "Completed"),
        objects.group("g5", "research", "Unknown"),
        objects.group("g6", "gone", "Running"),
        objects.group("g7", "research", "Strange"),
    ]
    assert text(queue_rows.table(queue_rows.counted(groups)), made) == (
        "Name                                         Weight  State   Parent        Inqueue Pending Running Unknown Completed\n"
        "default                                      3       Open    root          1       0       1       0       0       \n"
        "research                                     1       Closing default       0       1       0       1       1       \n"
        "fresh                                        1       Open                  0       0       0       0       0       \n"
        "a-queue-whose-name-is-longer-than-its-column 1       Open    a-long-parent 0       0       0       0       0       "
    )


def test_queues_that_fit_have_the_widths_of_vcctl():
    heading, row = columns.text(queue_rows.table({}), [objects.queue("q", parent="root")], objects.NOW)
    assert heading == "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed"
    assert row == "q                        1       Open    root    0       0       0       0       0       "


def test_wide_queues_say_amounts():
    made = objects.queue(capability={"cpu": "4"}, deserved={"cpu": 2, "memory": "1Gi"}, reclaimable=False)
    assert [columns.row(queue_rows.WIDE, made, objects.NOW)] == [
        ("false", "<none>", "cpu=2,memory=1Gi", "<none>", "cpu=4", "60m")
    ]


# -- pods ------------------------------------------------------------------------------------------------------------

WAITING = {
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "restartCount": 3,
    "lastState": {"terminated": {"finishedAt": "2025-12-31T23:59:00Z"}},
}


@pytest.mark.parametrize(
    ("status", "cells"),
    [
        ({"containerStatuses": [{"ready": True, "state": {"running": {}}}]}, ("1/1", "Running", "0")),
        ({"containerStatuses": [WAITING]}, ("0/1", "CrashLoopBackOff", "3 (60s ago)")),
        ({"phase": "Pending"}, ("0/1", "Pending", "0")),
        ({"phase": ""}, ("0/1", "Unknown", "0")),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 7}}}]},
            ("0/1", "ExitCode:7", "0"),
        ),
        ({"containerStatuses": [{"state": {"terminated": {"signal": 9, "exitCode": 137}}}]}, ("0/1", "Signal:9", "0")),
        ({"reason": "Evicted", "phase": "Failed"}, ("0/1", "Evicted", "0")),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, ("0/1", "Init:0/0", "0")),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [{"state": {"terminated": {"exitCode": 1}}, "restartCount": 2}],
            },
            ("0/1", "Init:ExitCode:1", "2"),
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            ("0/1", "Init:ErrImagePull", "0"),
        ),
        ({"initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]}, ("0/1", "Running", "0")),
    ],
)
def test_state_of_a_pod_is_told_in_a_word(status, cells):
    made = objects.pod("p", **status)
    assert columns.row(pod_rows.COLUMNS, made, objects.NOW) == ("p", *cells, "60m")


def test_pod_table_as_it_is_printed():
    made = [
        objects.pod("train-0", labels={"volcano.sh/job-name": "train", "volcano.sh/queue-name": "q"}, node="n1"),
        objects.pod("train-worker-10", phase="Pending"),
    ]
    assert text(pod_rows.COLUMNS, made) == (
        "Name                   Ready      Status         Restart  Age        \n"
        "train-0                0/1        Running        0        60m        \n"
        "train-worker-10        0/1        Pending        0        60m        "
    )
    assert text(pod_rows.WIDE, made[:1]).splitlines()[1].split() == ["default", "n1", "train", "q"]


def test_pods_of_a_queue_are_those_labelled_and_those_annotated():
    made = [
        objects.pod("a", labels={"volcano.sh/queue-name": "q"}),
        objects.pod("b", annotations={"scheduling.volcano.sh/queue-name": "q"}),
        objects.pod("c", labels={"volcano.sh/queue-name": "r"}),
        objects.pod("d"),
        objects.pod("e", annotations={"volcano.sh/queue-name": "q"}),  # of a queue whose name may not be a label
    ]
    assert text(pod_rows.WIDE, made[4:]).splitlines()[1].split()[-1] == "q"
    metadata = [msgspec.convert(each["metadata"], ObjectMeta) for each in made]
    assert [each.name for each in metadata if pod_rows.in_queue("q")(each)] == ["a", "b", "e"]
    assert pod_rows.outside(made, "q") == "r"
    assert pod_rows.outside(made[:2], "q") == ""


# -- flows -----------------------------------------------------------------------------------------------------------


def test_flows_and_templates_as_they_are_printed():
    flow = {
        "metadata": {"name": "nightly", "namespace": "default", "creationTimestamp": objects.CREATED},
        "status": {"state": {"phase": "Running"}, "runningJobs": ["a"]},
        "spec": {"flows": [{}, {}]},
    }
    template = {"metadata": {"name": "t", "namespace": "research"}}
    assert text(flow_rows.FLOWS, [flow, template]) == (
        "Name       Namespace    Phase      Age          \n"
        "nightly    default      Running    60m          \n"
        "t          research                <unknown>    "
    )
    assert text(flow_rows.TEMPLATES, [template]) == "Name    Namespace    \nt       research     "
    assert columns.row(flow_rows.WIDE_FLOWS, flow, objects.NOW) == ("2", "0", "1", "0", "0", "0", "retain")


def forecast(name, reason, message, queue="", at="2026-01-01T10:00:00Z"):
    condition = {
        "type": "StartForecast",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }
    metadata = {"name": name, "namespace": "a", "creationTimestamp": "2026-01-01T09:00:00Z"}
    return {"metadata": metadata, "spec": {"minMember": 4, "queue": queue}, "status": {"conditions": [condition]}}


def waiting(name, phase, message=""):
    """A group that waits, and of which no start is told."""
    group = forecast(name, "", message)
    group["status"] = {"phase": phase, "conditions": group["status"]["conditions"] if message else []}
    for condition in group["status"]["conditions"]:
        condition.update(type="Unschedulable")
    return group


def test_a_group_that_was_made_for_a_workload_is_listed_by_that():
    """One that people gave such a name, and that nobody owns, keeps it."""
    made, own = (forecast(f"podgroup-{uid}", "Reserved", "expected at 14:32 on n1 x4") for uid in ("u1", "u2"))
    made["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "uid": "u1", "controller": True}]
    chosen = start_rows.chosen([made, own], queue_name="", part="")
    lines = columns.text(start_rows.COLUMNS, chosen, objects.NOW)
    assert [line.split()[0] for line in lines] == ["Name", "Job/train", "podgroup-u2"]
    assert start_rows.chosen([made, own], queue_name="", part="train") == [made]


def test_groups_that_wait_are_listed_by_their_expected_start_and_those_without_one_last():
    groups = [
        forecast("unknown", "Unknown", "a/x runs without an estimate"),
        forecast("tomorrow", "Planned", "expected at 2026-01-02 02:00 on n3 x4; waits for a/x"),
        forecast("later", "Planned", "expected at 14:32:10 on n1 x2, n2 x2; waits for a/x", queue="research"),
        forecast("soon", "Reserved", "expected at 14:32 on n1 x4"),
        {"metadata": {"name": "runs", "namespace": "a"}, "spec": {}, "status": {"phase": "Running"}},
        forecast("broken", "Planned", "expected at 99:99 on n1 x4"),
        waiting("kept-out", "Pending", "not let in: queue q holds 3 of its 4 cpu; 0/0 tasks in gang unschedulable: …"),
        waiting("fresh", ""),
    ]
    groups[4]["status"]["conditions"] = [{"type": "StartForecast", "status": "False", "reason": "Started"}]
    chosen = start_rows.chosen(groups, queue_name="", part="")
    assert [line.rstrip() for line in columns.text(start_rows.COLUMNS, chosen, objects.NOW)] == [
        "Name       Queue      Size   Submitted              Expected               Basis      Nodes",
        "soon       default    4      2026-01-01T09:00:00Z   2026-01-01T14:32:00Z   Reserved   n1 x4",
        "later      research   4      2026-01-01T09:00:00Z   2026-01-01T14:32:10Z   Planned    n1 x2, n2 x2",
        "tomorrow   default    4      2026-01-01T09:00:00Z   2026-01-02T02:00:00Z   Planned    n3 x4",
        "broken     default    4      2026-01-01T09:00:00Z   unknown                Planned    n1 x4",
        "fresh      default    4      2026-01-01T09:00:00Z   unknown                Unknown    <none>",
        "kept-out   default    4      2026-01-01T09:00:00Z   unknown                Unknown    not let in: queue q holds 3 of its 4 cpu",
        "unknown    default    4      2026-01-01T09:00:00Z   unknown                Unknown    a/x runs without an estimate",
    ]
    assert [columns.name(each) for each in start_rows.chosen(groups, queue_name="research", part="")] == ["later"]
    assert [columns.name(each) for each in start_rows.chosen(groups, queue_name="", part="oo")] == ["soon"]


def native_group(name, namespace="a", queue="", **status):
    annotations = {"scheduling.volcano.sh/queue-name": queue} if queue else {}
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"metadata": metadata, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}, "status": status}


def scheduled(status, reason, message=""):
    return {"conditions": [{"type": "PodGroupScheduled", "status": status, "reason": reason, "message": message}]}


def test_gangs_of_kubernetes_are_told_with_their_pods_and_the_cause():
    waits = scheduled("False", "Unschedulable", "no node has 7 cpu free; 2/2 tasks in gang unschedulable: and more")
    groups = [
        native_group("runs", **scheduled("True", "Scheduled")),
        native_group("waits", queue="team", **waits),
        native_group("new"),
    ]
    pods = [
        {"metadata": {"name": f"p{index}", "namespace": namespace}, "spec": spec, "status": {"phase": phase}}
        for index, (namespace, group, phase) in enumerate(
            [("a", "runs", "Running"), ("a", "runs", "Succeeded"), ("b", "runs", "Running"), ("a", "waits", "Pending"), ("a", "", "Running")]
        )
        for spec in [{"schedulingGroup": {"podGroupName": group}} if group else {}]
    ]  # fmt: skip
    table = gang_rows.table(pods, everywhere=False)
    chosen = gang_rows.chosen(groups, queue_name="", part="")
    rows = {each["metadata"]["name"]: columns.row(table, each, 0) for each in chosen}
    assert [column.heading for column in table] == [
        "Name", "Queue", "Age", "Min", "Pending", "Running", "Succeeded", "Failed", "Status", "Reason",
    ]  # fmt: skip
    assert rows["runs"][3:] == ("2", "0", "1", "1", "0", "Scheduled", "")
    assert rows["waits"][3:] == ("2", "1", "0", "0", "0", "Unschedulable", "no node has 7 cpu free")
    assert rows["new"][3:] == ("2", "0", "0", "0", "0", "<none>", "")
    assert [each["metadata"]["name"] for each in gang_rows.chosen(groups, queue_name="team", part="")] == ["waits"]
