"""What can be read and is probably not meant, and queues whose settings nobody reads."""

from __future__ import annotations

import pytest
from configuration_catalog import CATALOG, SHIPPED

from pumice.api import meta, scheduling
from pumice.framework import configuration


def tiered(actions: str, *plugins: str) -> str:
    listed = "".join(f"  - {plugin}\n" for plugin in plugins)
    return f'actions: "{actions}"\ntiers:\n- plugins:\n{listed}'


GANG, PREDICATES, PRIORITY = "name: gang", "name: predicates", "name: priority"

CASES = {
    "capacity beside proportion": (
        tiered("allocate", GANG, PREDICATES, "name: capacity", "name: proportion"),
        [(2, 'plugins "capacity" (line 6) and "proportion" (line 7) both set what a queue deserves')],
    ),
    "preempt with nobody starving": (
        tiered("allocate, preempt", "{name: gang, enableJobStarving: false}", PREDICATES),
        [(1, "no plugin says which jobs starve (JobStarving), so preempt will do nothing")],
    ),
    "preempt without victims": (
        tiered("allocate, preempt", "{name: gang, enablePreemptable: false}", PREDICATES),
        [(1, 'no plugin offers victims (Preemptable), so action "preempt" will do nothing')],
    ),
    "reclaim without victims": (
        tiered("allocate, reclaim", "{name: gang, enableReclaimable: false}", PREDICATES, PRIORITY),
        [(1, 'no plugin offers victims (Reclaimable), so action "reclaim" will do nothing')],
    ),
    "gang form beside the plain one": (
        tiered("allocate, preempt, gangpreempt", GANG, PREDICATES, PRIORITY),
        [(1, 'actions "preempt" and "gangpreempt" are both listed')],
    ),
    "gang form without victims": (
        tiered("allocate, gangreclaim", GANG, PREDICATES),
        [(1, 'no plugin offers victims (UnifiedEvictable), so action "gangreclaim" will do nothing')],
    ),
    "gang not listed": (tiered("enqueue, allocate", PREDICATES), [(2, 'plugin "gang" is in no tier')]),
    "gang without JobReady": (
        tiered("allocate", "{name: gang, enableJobReady: false}", PREDICATES),
        [(2, 'plugin "gang" (line 4) has JobReady off')],
    ),
    "allocate not listed": (tiered("backfill", GANG, PREDICATES), [(1, 'action "allocate" is not listed')]),
    "enqueue too late": (
        tiered("allocate, enqueue", GANG, PREDICATES),
        [(1, 'action "enqueue" is listed after "allocate"')],
    ),
    "predicates not listed": (tiered("allocate", GANG), [(2, 'plugin "predicates" is in no tier')]),
    "idle switch": (
        tiered("allocate", GANG, "{name: predicates, enableJobOrder: true}"),
        [(5, 'plugin "predicates" has nothing that enableJobOrder could switch on')],
    ),
    "idle hierarchy": (
        tiered("allocate", GANG, PREDICATES, "{name: proportion, enableHierarchy: true}"),
        [(6, 'plugin "proportion" has nothing that enableHierarchy could switch on')],
    ),
    "a switch that has its point": (tiered("allocate", "{name: gang, enableJobReady: true}", PREDICATES), []),
    "an idle switch turned off": (tiered("allocate", GANG, "{name: predicates, enableJobOrder: false}"), []),
    "hierarchical capacity": (tiered("allocate", GANG, PREDICATES, "{name: capacity, enableHierarchy: true}"), []),
    "a full set": (
        tiered("enqueue, allocate, preempt, reclaim, backfill", PRIORITY, GANG, "name: conformance", PREDICATES),
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_probably_not_meant_is_accepted_with_a_warning(name):
    text, expected = CASES[name]
    warnings = configuration.load(text, CATALOG).warnings
    assert [warning.line for warning in warnings] == [line for line, _ in expected], warnings
    for warning, (_, fragment) in zip(warnings, expected, strict=True):
        assert fragment in warning.message


def queue(name: str, **spec) -> scheduling.Queue:
    return scheduling.Queue(metadata=meta.ObjectMeta(name=name), spec=scheduling.QueueSpec(**spec))


QUEUES = (
    queue("plain"),
    queue("d", deserved={"cpu": "4"}),
    queue("w", weight=3),
    queue("c", capability={"cpu": "4"}),
    queue("g", guarantee=scheduling.Guarantee(resource={"cpu": "1"})),
)
SETTINGS = {
    "proportion": (SHIPPED, [(13, "queue/d.spec.deserved")]),
    "capacity": (SHIPPED.replace("proportion", "capacity"), [(13, "queue/w.spec.weight")]),
    "both": (SHIPPED + "  - name: capacity\n", []),
    "neither": (tiered("allocate", GANG, PREDICATES), [(0, "queue/c.spec.capability"), (0, "queue/g.spec.guarantee")]),
}


@pytest.mark.parametrize("listed", SETTINGS)
def test_settings_of_queues_that_nobody_reads_are_named(listed):
    text, expected = SETTINGS[listed]
    found = configuration.object_warnings(configuration.load(text, CATALOG), QUEUES)
    assert [(problem.line, problem.key) for problem in found] == expected
    assert all(not str(problem).startswith("line 0") for problem in found)
