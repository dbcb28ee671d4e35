"""Expectations about any object: paths, values, numbers of matches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.scenario.expectations import paths

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "namespace": "a",
        "annotations": {"volcano.sh/task-spec": "worker", "a.b": "long", "a": "short"},
        "ownerReferences": [],
    },
    "spec": {
        "tasks": [{"name": "m", "replicas": 1}, {"name": "w.x", "replicas": 3, "args": ["-c", "1"]}],
        "minResources": {"requests.cpu": "2", "cpu": "1500m", "requests": {"memory": "1Gi"}},
        "cpu": "1500m",
        "plugins": {"svc": [], "env": []},
        "suspend": False,
    },
    "status": {
        "state": {"phase": "Running"},
        "running": 3,
        "conditions": [
            {"type": "Ready", "status": "True", "message": "all 3 run"},
            {"type": "Ready", "status": "False"},
            {"type": "Odd", "status": "False", "ready": True, "count": 2, "inner": {"x": "y"}},
        ],
    },
}
PODS = {
    f"a/p-{number}": {"metadata": {"name": f"p-{number}"}, "spec": {"nodeName": f"n{number % 2}"}}
    for number in range(5)
}
STORED = {
    kinds.JOB: {"a/train": JOB},
    kinds.BATCH_JOB: {"a/old": {"status": {"succeeded": 1}}},
    kinds.POD: PODS,
    kinds.QUEUE: {"q": {"status": {"allocated": {"cpu": "4"}, "state": "Open"}}},
}

HOLDS = [
    "Job a/train: {status.state.phase: Running, status.running: 3}",
    "Job.batch.volcano.sh a/train: {exists: true}",
    "Job.batch a/old: {status.succeeded: 1}",
    "Job.batch a/train: {exists: false}",
    "Queue q: {status.state: Open}",
    "Queue.scheduling.volcano.sh q: {exists: true}",
    "Job a/train: {'spec.tasks[0].replicas': 1, 'spec.tasks[1].name': w.x}",
    "Job a/train: {'spec.tasks[name=w.x].replicas': 3}",
    "Job a/train: {'spec.tasks[name=\"w.x\"].replicas': 3}",
    "Job a/train: {'status.conditions[type=Ready].status': 'True'}",
    "Job a/train: {'status.conditions[type=Ready].status': True}",
    "Job a/train: {'status.conditions[ready=true].type': Odd}",
    "Job a/train: {'status.conditions[count=2].type': Odd}",
    "Job a/train: {'status.conditions[inner.x=y].type': Odd}",
    "Job a/train: {metadata.annotations.volcano.sh/task-spec: worker}",
    "Job a/train: {'metadata.annotations[\"volcano.sh/task-spec\"]': worker}",
    "Job a/train: {\"metadata.annotations['volcano.sh/task-spec']\": worker}",
    "Job a/train: {metadata.annotations.a.b: long}",
    "Job a/train: {metadata.annotations.a: short}",
    "Job a/train: {spec.minResources.requests.cpu: 2, spec.minResources.requests.memory: 1024Mi}",
    "Job a/train: {spec.minResources.cpu: 1.5}",
    "Job a/train: {spec.minResources: {cpu: '1.5', nvidia.com/gpu: 0, memory: null}}",
    "Job a/train: {spec: {minResources: {cpu: 1500m}}}",
    "Job a/train: {spec.minResources.nvidia.com/gpu: '0'}",
    "Job a/train: {'status.conditions[type=Ready].message~': '[0-9] run$'}",
    "Job a/train: {status.running~: '^3$'}",
    "Job a/train: {status.failed: null, nowhere.at.all: null, 'spec.tasks[7].name': null}",
    "Job a/train: {'status.conditions[type=None].status': null, status.state.phase.deeper: null}",
    "Job a/train: {status.running: 3.0, status.running~: '3'}",
    "Job a/train: {status.running: '3'}",
    "Job a/train: {spec.suspend: false}",
    "Job a/train: {spec.suspend: 'false'}",
    "Job a/train: {'spec.tasks[1].args': [-c, '1']}",
    "Job a/train: {'spec.tasks[1].args': ['-c', 1]}",
    "Job a/train: {spec.tasks: [{name: m}, {replicas: 3}]}",
    "Job a/train: {spec.tasks: [{}, {name: w.x}]}",
    "Job a/train: {metadata.ownerReferences: [], status.active: [], status.none: {}}",
    "Job a/train: {spec.plugins: {}}",
    "Job a/train: {spec.plugins: {svc: []}}",
    "Pod a/p-*: {exists: true, 'spec.nodeName~': '^n'}",
    "Pod a/p-*: {some: 3, spec.nodeName: n0}",
    "Pod */p-*: {atLeast: 2, atMost: 2, spec.nodeName: n1}",
    "Pod a/p-*: {some: 5}",
    "Pod a/p-0: {}",
    "Pod b/*: {exists: false}",
    "Queue *: {status.allocated: {cpu: 4000m}}",
]
FAILS = [
    "Job a/train: {status.state.phase: Pending}",
    "Job a/train: {status.running: 2}",
    "Job a/train: {exists: false}",
    "Job a/none: {status.running: null}",
    "Job a/none: {exists: true}",
    "Job b/*: {}",
    "Job.batch a/train: {exists: true}",
    "Job a/train: {'spec.tasks[1].name': m}",
    "Job a/train: {'status.conditions[type=Ready].status': 'False'}",
    "Job a/train: {metadata.annotations.a.b: short}",
    "Job a/train: {spec.cpu: '1.5'}",
    "Job a/train: {spec.minResources.cpu: 2}",
    "Job a/train: {spec.minResources.cpu: null}",
    "Job a/train: {spec.minResources.cpu: many}",
    "Job a/train: {status.failed: 0}",
    "Job a/train: {status.failed~: '.*'}",
    "Job a/train: {status.running: null}",
    "Job a/train: {status.state: {phase: Running, reason: x}}",
    "Job a/train: {'spec.tasks[1].args': ['1', -c]}",
    "Job a/train: {'spec.tasks[1].args': [-c]}",
    "Job a/train: {spec.tasks: [{name: m}]}",
    "Job a/train: {spec.tasks: []}",
    "Job a/train: {spec.tasks: {}}",
    "Job a/train: {status.state: Running}",
    "Job a/train: {status.state.phase: {}}",
    "Job a/train: {spec.suspend: true}",
    "Job a/train: {spec.suspend: 0}",
    "Job a/train: {spec.plugins: null}",
    "Job a/train: {metadata.ownerReferences: null}",
    "Pod a/p-*: {spec.nodeName: n0}",
    "Pod a/p-*: {some: 2, spec.nodeName: n0}",
    "Pod a/p-*: {atLeast: 3, spec.nodeName: n1}",
    "Pod a/p-*: {atMost: 4}",
    "Pod b/*: {some: 0}",
]


def objects(kind):
    return STORED.get(kind, {})


@pytest.mark.parametrize("rule", HOLDS)
def test_what_is_so_holds(rule, mismatches):
    assert mismatches(f"objects: {{{rule}}}", objects=objects) == []


@pytest.mark.parametrize("rule", FAILS)
def test_what_is_not_so_does_not_hold(rule, mismatches):
    assert mismatches(f"objects: {{{rule}}}", objects=objects) != []
    assert mismatches(f"not: {{objects: {{{rule}}}}}", objects=objects) == []


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "Job a/train: {status.state.phase: Pending}",
            "objects Job a/train: expected status.state.phase: Pending, found status.state.phase: Running",
        ),
        (
            "Job a/train: {spec: {minResources: {requests.cpu: 3}}}",
            'objects Job a/train: expected spec.minResources["requests.cpu"]: 3, found spec.minResources["requests.cpu"]: 2',
        ),
        (
            "Job a/train: {spec.tasks: [{name: m}, {replicas: 4}]}",
            "objects Job a/train: expected spec.tasks[1].replicas: 4, found spec.tasks[1].replicas: 3",
        ),
        (
            "Job a/train: {status.failed: 1}",
            "objects Job a/train: expected status.failed: 1, found status.failed: null",
        ),
        (
            "Job a/train: {'status.state.phase~': ^P}",
            "objects Job a/train: expected status.state.phase~: ^P, found status.state.phase: Running",
        ),
        (
            "Job.batch a/new: {status.succeeded: 1}",
            "objects Job.batch a/new: expected status.succeeded: 1, found no such Job (there is a/old)",
        ),
        ("Secret a/s: {exists: true}", "objects Secret a/s: expected exists: true, found no Secret at all"),
        (
            "Pod a/p-*: {some: 1, spec.nodeName: n1}",
            "objects Pod a/p-*: expected exactly 1 with spec.nodeName: n1, found 2 of 5 matches: a/p-1, a/p-3",
        ),
    ],
)
def test_a_mismatch_names_the_path_what_was_wanted_and_what_was_found(rule, said, mismatches):
    assert mismatches(f"objects: {{{rule}}}", objects=objects) == [said]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Jop a/x: {}", "unknown kind 'Jop'; did you mean 'Job'?"),
        ("job a/x: {}", "unknown kind 'job'; did you mean 'Job'?"),
        ("Job.apps a/x: {}", "no kind 'Job.apps'; write Job.batch.volcano.sh or Job.batch"),
        ("Job x: {}", "'Job x' does not name an object: Job is namespaced, write Job namespace/name"),
        ("Job: {}", "'Job' does not name an object: Job is namespaced, write Job namespace/name"),
        ("Queue a/x: {}", "'Queue a/x' does not name an object: Queue is cluster-scoped, write Queue name"),
        ("Job a/x: {atleast: 3}", "unknown key 'atleast' in an object expectation; did you mean 'atLeast'?"),
        ("Job a/x: {exist: true}", "unknown key 'exist' in an object expectation; did you mean 'exists'?"),
        ("Job a/x: {some: many}", 'expected a whole number, found the string "many"'),
        ("Job a/x: {status~: '('}", "not a regular expression"),
        ("Job a/x: {spec..y: 1}", "'spec..y' cannot be read: a field is missing after 'spec.'"),
        ("Job a/x: {'spec.tasks[].name': 1}", "in brackets stands a number, field=value or a quoted key"),
        ("Job a/x: {'spec.tasks[0': 1}", "in brackets stands a number, field=value or a quoted key"),
        ("Job a/x: {'spec.tasks[0]name': 1}", "put a dot before the next field"),
        ("Job a/x: {'spec.': 1}", "a field is missing after 'spec.'"),
        ("Job a/x: 3", "expected what an object must be (a map), found"),
    ],
)
def test_what_cannot_be_read_is_refused(rule, said, refusals):
    (message,) = refusals(f"objects: {{{rule}}}")
    assert said in message


KEYS = st.text(alphabet='ab./-"[]= 0', min_size=1, max_size=8)


@given(st.lists(KEYS.filter(lambda key: '"' not in key), min_size=1, max_size=4), st.integers())
def test_a_quoted_key_is_found_whatever_it_contains(keys, value):
    made = value
    for key in reversed(keys):
        made = {key: made}
    assert paths.find(made, paths.parse("".join(f'["{key}"]' for key in keys))) == value


WORDS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5)


@given(WORDS, st.lists(WORDS, max_size=6))
def test_of_the_runs_of_words_that_are_keys_the_longest_is_taken(words, keys):
    held = {".".join(key): {"at": ".".join(key)} for key in keys}
    runs = [".".join(words[:count]) for count in range(1, len(words) + 1)]
    longest = next((run for run in reversed(runs) if run in held), None)
    found = paths.find(held, (*paths.parse(".".join(words)), paths.Key("at")))
    left = words[len(longest.split(".")) :] if longest else []
    assert found == (longest if longest and not left else None)
