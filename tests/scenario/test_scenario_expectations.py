"""Every other section of an expectation, where it holds and where it does not."""

from __future__ import annotations

import pytest
from scenario_clusters import by_name, pod

from pumice.scenario.view import Counts, Recorded


def group(name, phase="", queue="", **status):
    namespace, short = name.split("/")
    spec = {"queue": queue} if queue else {}
    return {
        "metadata": {"name": short, "namespace": namespace},
        "spec": spec,
        "status": {"phase": phase, **status} if phase else {},
    }


GROUPS = by_name(
    group(
        "a/one",
        "Running",
        "q",
        running=2,
        conditions=[{"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready"}],
    ),
    group("a/two", "", "q"),
    group("b/three", "Inqueue"),
)
QUEUES = {
    "q": {"metadata": {"name": "q"}, "status": {"allocated": {"cpu": "1500m", "memory": "1Gi"}, "state": "Closed"}},
    "default": {"metadata": {"name": "default"}},
}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("podgroups: {a/one: {phase: Running, running: 2, succeeded: 0, failed: 0}}", True),
        ("podgroups: {a/two: {phase: Pending, running: 0}}", True),
        ("podgroups: {a/one: {condition: {Scheduled: {status: 'True', reason: tasks in gang are ready}}}}", True),
        ("podgroups: {a/one: {phase: Pending}}", False),
        ("podgroups: {a/one: {running: 3}}", False),
        ("podgroups: {a/two: {phase: Inqueue}}", False),
        ("podgroups: {a/none: {phase: Pending}}", False),
        ("podgroups: {a/two: {condition: {Scheduled: {}}}}", False),
        ("queues: {q: {state: Closed, allocated: {cpu: 1.5, memory: 1024Mi, nvidia.com/gpu: 0}}}", True),
        ("queues: {default: {state: Open, allocated: {cpu: 0}, inqueue: 1, pending: 0}}", True),
        ("queues: {q: {pending: 1, running: 1, inqueue: 0, unknown: 0, completed: 0}}", True),
        ("queues: {q: {state: Open}}", False),
        ("queues: {q: {allocated: {cpu: 1}}}", False),
        ("queues: {q: {pending: 2}}", False),
        ("queues: {default: {inqueue: 0}}", False),
        ("queues: {none: {state: Open}}", False),
        ("queues: {q: {condition: {Any: {}}}}", False),
    ],
)
def test_groups_and_queues(rule, holds, mismatches):
    assert (mismatches(f"{{{rule}}}", pod_groups=GROUPS, queues=QUEUES) == []) is holds


NODES = {
    "n1": {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}},
    },
    "n2": {"metadata": {"name": "n2", "labels": {"zone": "a"}}, "status": {"allocatable": {"cpu": "4"}}},
    "n3": {"metadata": {"name": "n3", "labels": {"zone": "b"}}, "status": {}},
}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("n1: {pods: 2}", True),
        ("n1: {used: {cpu: '2.5', pods: 2}}", True),
        ("n1: {idle: {cpu: -500m, memory: 4Gi, pods: 108}}", True),
        ("n1: {used: {nvidia.com/gpu: 0}}", True),
        ("n2: {pods: 0, used: {cpu: 0}, idle: {cpu: 4}}", True),
        ("n*: {idle: {nvidia.com/gpu: 0}}", True),
        ("n1: {pods: 3}", False),
        ("n1: {used: {cpu: 2}}", False),
        ("n1: {idle: {cpu: 0}}", False),
        ("n*: {pods: 2}", False),
        ("m*: {pods: 0}", False),
    ],
)
def test_nodes_count_pods_bound_there_that_have_not_finished(rule, holds, cluster, mismatches):
    cluster["a/g-1"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    finished = by_name(pod("a/done", "n1", "Succeeded", "1"), pod("a/dead", "n1", "Failed", "1"))
    assert (mismatches(f"{{nodes: {{{rule}}}}}", pods=cluster | finished, nodes=NODES) == []) is holds


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("{binds: 3, evictions: 0, statusWrites: 5}", True),
        ("{binds: '<= 3', statusWrites: '>= 5'}", True),
        ("{binds: '>=1'}", True),
        ("{binds: 2}", False),
        ("{binds: '<= 2'}", False),
        ("{binds: '>= 4'}", False),
    ],
)
def test_counts_compare(rule, holds, mismatches):
    assert (mismatches(f"{{counts: {rule}}}", counts=Counts(binds=3, status_writes=5)) == []) is holds


EVENTS = [
    Recorded(kind="pod", namespace="a", name="g-0", reason="FailedScheduling", message="0/3 nodes are available"),
    Recorded(kind="queue", namespace="", name="q", reason="Invalid", message="spec.weight is -3"),
]


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("[{reason: FailedScheduling, object: pod/a/g-0, 'message~': '/3 nodes'}]", True),
        ("[{object: queue/q}]", True),
        ("[{reason: FailedScheduling, object: pod/a/g-*}]", True),
        ("[{reason: Invalid}, {reason: FailedScheduling}]", True),
        ("[{reason: Scheduled}]", False),
        ("[{reason: FailedScheduling, object: pod/b/g-0}]", False),
        ("[{object: pod/a/g-0, 'message~': weight}]", False),
        ("[{reason: Invalid}, {reason: Scheduled}]", False),
    ],
)
def test_each_event_must_have_been_recorded(rule, holds, mismatches):
    assert (mismatches(f"{{events: {rule}}}", events=EVENTS) == []) is holds


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("together: [a/t-*]", True),
        ("together: [a/t-*, a/s-0]", True),
        ("together: [a/s-*]", False),
        ("together: [a/g-*]", False),
        ("together: [a/x-*]", False),
        ("apart: [a/s-*]", True),
        ("apart: [a/t-*]", False),
        ("apart: [a/w-*]", False),
        ("apart: [a/x-*]", False),
        ("sameLabel: {pods: a/z-*, label: zone}", True),
        ("sameLabel: {pods: a/s-*, label: zone}", False),
        ("sameLabel: {pods: a/z-*, label: rack}", False),
        ("sameLabel: {pods: a/w-*, label: zone}", False),
        ("sameLabel: {pods: a/x-*, label: zone}", False),
    ],
)
def test_placement(rule, holds, mismatches):
    pods = by_name(
        *(
            pod(f"a/{name}", node)
            for name, node in [("t-0", "n1"), ("t-1", "n1"), ("s-0", "n1"), ("s-1", "n3"), ("z-0", "n1"), ("z-1", "n2")]
        ),
        pod("a/w-0", "n1"),
        pod("a/w-1"),
    )
    assert (mismatches(f"{{{rule}}}", pods=pods, nodes=NODES) == []) is holds


@pytest.mark.parametrize(
    ("rule", "holds"), [("a/g: 'needs 3.*has 2'", True), ("a/g: needs 4", False), ("a/none: '.*'", False)]
)
def test_explain_searches_the_explanation(rule, holds, mismatches):
    told = {"a/g": "the gang needs 3 members and has 2"}
    assert (mismatches(f"{{explain: {{{rule}}}}}", explain=lambda name: told.get(name, "")) == []) is holds


@pytest.mark.parametrize(
    ("rule", "missed"),
    [
        ("a/g*: needs", []),
        ("a/g*: needs 3", ["explain a/g2: expected needs 3, found needs 4"]),
        ("a/*: needs", ["explain a/h: expected needs, found no explanation"]),
        ("b/*: needs", ["explain b/*: expected needs, found no such pod group"]),
    ],
)
def test_explain_with_a_glob_demands_it_of_every_group_that_matches(rule, missed, mismatches):
    told = {"a/g1": "needs 3", "a/g2": "needs 4"}
    groups = {name: {} for name in (*told, "a/h")}
    assert mismatches(f"{{explain: {{{rule}}}}}", explain=lambda name: told.get(name, ""), pod_groups=groups) == missed


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("{not: {pods: {a/g-2: {bound: true}}}}", True),
        ("{not: {pods: {a/x-*: {bound: true}}}}", True),
        ("{not: {pods: {a/g-0: {bound: true}, a/g-2: {bound: true}}}}", True),
        ("{not: {not: {pods: {a/g-0: {bound: true}}}}}", True),
        ("{not: {pods: {a/g-0: {bound: true}}}}", False),
        ("{pods: {a/g-0: {bound: true}}, not: {nodes: {n1: {pods: 2}}}}", False),
    ],
)
def test_not_holds_where_something_in_it_does_not(rule, holds, cluster, mismatches):
    assert (mismatches(rule, pods=cluster, nodes=NODES) == []) is holds


def test_not_says_what_holds(cluster, mismatches):
    (told,) = mismatches("{not: {pods: {a/g-0: {bound: true}}, counts: {binds: 0}}}", pods=cluster)
    assert told == "not: expected that this does not hold, found it holds: pods a/g-0; counts binds"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{podgroups: {a/g: {fase: Running}}}", "did you mean 'phase'?"),
        ("{podgroups: {g: {phase: Running}}}", "default/g"),
        ("{queues: {q: {allocated: {cpu: abc}}}}", "not a quantity"),
        ("{queues: {q: {allocated: {cpu: true}}}}", "not a quantity"),
        ("{queues: {q: {weight: 3}}}", "unknown key 'weight'"),
        ("{nodes: {n1: {use: {cpu: 1}}}}", "did you mean 'used'?"),
        ("{counts: {bind: 3}}", "did you mean 'binds'?"),
        ("{counts: {binds: 'many'}}", "'many' is no count"),
        ("{counts: {binds: '3'}}", "'3' is no count"),
        ("{counts: {binds: '=< 3'}}", '"<= 3"'),
        ("{counts: {binds: -1}}", "0 or more"),
        ("{events: [{object: pot/a/g-0}]}", "unknown kind 'pot' in 'pot/a/g-0'; did you mean 'pod'?"),
        ("{events: [{object: pod/g-0}]}", "write pod/namespace/name"),
        ("{events: [{object: node/a/n1}]}", "write node/name"),
        ("{events: {reason: x}}", "expected a list of events"),
        ("{events: [{'message~': '['}]}", "not a regular expression"),
        ("{together: a/g-*}", "expected a list of pod patterns"),
        ("{together: [g-0]}", "default/g-0"),
        ("{sameLabel: {pods: a/g-*}}", "needs the key 'label'"),
        ("{sameLabel: {pods: a/g-*, label: zone, x: 1}}", "unknown key 'x'"),
        ("{explain: {a/g: '('}}", "not a regular expression"),
        ("{explain: {a/g: 3}}", "put quotes around it"),
    ],
)
def test_wrong_section_is_refused_when_it_is_read(text, told, refusals):
    found = refusals(text)
    assert len(found) == 1
    assert told in found[0]
