"""What can be read and is probably not meant, and queues whose settings nobody reads."""

from __future__ import annotations

import pytest
from configuration_catalog import CATALOG, SHIPPED

from pumice.api import documents, meta, scheduling
from pumice.framework import configuration, registry
from pumice.framework.configuration import reading


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


SHUFFLED = "nobody is evicted whom {} would name"
MEASURED = 'plugin "{}" (line 6) goes by the load of nodes, and metrics names no source (type, address)'
INSTALLED = {
    "shuffle not listed": (tiered("allocate", GANG, PREDICATES, "name: tdm"), [SHUFFLED.format("tdm")]),
    "shuffle listed": (tiered("allocate, shuffle", GANG, PREDICATES, "name: tdm"), []),
    "nothing to shuffle": (tiered("allocate, shuffle", GANG, PREDICATES), []),
    "loads of no source": (tiered("allocate", GANG, PREDICATES, "name: usage"), [MEASURED.format("usage")]),
    "loads of no type": (
        tiered("allocate", GANG, PREDICATES, "name: usage") + "metrics: {address: http://p}\n",
        [MEASURED.format("usage")],
    ),
    "loads of a source": (
        tiered("allocate", GANG, PREDICATES, "name: usage") + "metrics: {type: prometheus}\n",
        [],
    ),
    "an unknown source": (
        tiered("allocate", GANG, PREDICATES) + "metrics: {type: promeheus}\n",
        ['unknown source of metrics "promeheus"; did you mean "prometheus"?'],
    ),
    "an action of the documentation alone": (
        tiered("elect, allocate", GANG, PREDICATES),
        ['"elect": Volcano\'s documentation names it and its code does not read it'],
    ),
}


@pytest.mark.parametrize("name", INSTALLED)
def test_what_is_listed_and_will_do_nothing_is_accepted_with_a_warning(name):
    text, expected = INSTALLED[name]
    warnings = configuration.load(text, registry.installed().catalog()).warnings
    assert len(warnings) == len(expected), warnings
    assert all(part in warning.message for warning, part in zip(warnings, expected, strict=True))


def test_a_warning_stands_beside_the_key_that_a_flat_map_has():
    text = 'plugins: "gang, priority"\nactions: "backfill, allocate"\n'
    flat = configuration.load(text, CATALOG).warnings
    assert {(each.line, each.key) for each in flat} == {(1, "plugins")}
    text = text.replace("gang", "predicates").replace(", allocate", "")
    assert [(each.line, each.key) for each in configuration.load(text, CATALOG).warnings] == [(2, "actions")]


def test_of_too_many_warnings_only_the_first_are_kept():
    draft = reading.Draft(documents.load_all("actions: allocate", "file")[0], CATALOG, lenient=False)
    for number in range(reading.MOST_PROBLEMS + 9):
        draft.warn(("actions",), str(number))
    assert [warning.message for warning in draft.warnings] == [str(n) for n in range(reading.MOST_PROBLEMS)]


def queue(name: str, **spec) -> scheduling.Queue:
    return scheduling.Queue(metadata=meta.ObjectMeta(name=name), spec=scheduling.QueueSpec(**spec))


QUEUES = (
    queue("plain"),
    queue("d", deserved={"cpu": "4"}),
    queue("w", weight=3),
    queue("none", weight=0),  # as good as not given
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
