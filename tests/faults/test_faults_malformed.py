"""Objects that make no sense, stored by definitions that check nothing: each disables only itself, and an event names it and the field."""

from __future__ import annotations

import pytest
from faults_view import sizes

from pumice.api import kinds, names
from testbed import calling, waiting

LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LOOSENED = ("podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh", "hypernodes.topology.volcano.sh")

BAD_GROUPS = {
    "text": ({"minMember": "abc"}, "spec.minMember"),
    "negative": ({"minMember": -3}, "minMember"),
    "huge": ({"minMember": 10**18}, "minMember"),
    "fraction": ({"minMember": 1.5}, "spec.minMember"),
    "resources": ({"minMember": 1, "minResources": {"cpu": "lots"}}, "spec.minResources"),
    "debt": ({"minMember": 1, "minResources": {"cpu": "-1"}}, "spec.minResources"),
    "absurd": ({"minMember": 1, "minResources": {"cpu": "99999999999999E"}}, "spec.minResources"),
    "roles": ({"minMember": 1, "minTaskMember": {"worker": "two"}}, "spec.minTaskMember"),
    "queue": ({"minMember": 1, "queue": ["default"]}, "spec.queue"),
    "spec": ("nothing", "spec"),
}
BAD_QUEUES = {
    "weight-text": ({"weight": "heavy"}, "spec.weight"),
    "weight-negative": ({"weight": -1}, "weight"),
    "capability": ({"capability": {"cpu": "NaN"}}, "spec.capability"),
    "deserved": ({"deserved": {"memory": "-5Gi"}}, "spec.deserved"),
    "guarantee": ({"guarantee": {"resource": {"cpu": "99999999999999E"}}}, "spec.guarantee"),
}
BAD_HYPER_NODES = {
    "tier-text": ({"tier": "top", "members": []}, "spec.tier"),
    "members": ({"tier": 1, "members": "all"}, "spec.members"),
    "pattern": (
        {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}]},
        "spec.members",
    ),
}
BAD_NODES = {
    "oversold": ({"annotations": {names.OVERSUBSCRIPTION_CPU: "many"}}, names.OVERSUBSCRIPTION_CPU),
    "overdrawn": ({"annotations": {names.OVERSUBSCRIPTION_MEMORY: "-7"}}, names.OVERSUBSCRIPTION_MEMORY),
}


@pytest.fixture
def loose(view):
    """The cluster with definitions that let everything through; afterwards as it was."""
    server = view.server
    kept = {name: server.call("GET", f"{DEFINITIONS}/{name}")["spec"]["versions"] for name in LOOSENED}
    for name, versions in kept.items():
        define(server, name, [{**version, "schema": {"openAPIV3Schema": LOOSE}} for version in versions])
    try:
        waiting.until(lambda: stores(view), tell=lambda: "the definitions are as strict as before")
        yield view
    finally:
        server.empty()
        for name, versions in kept.items():
            define(server, name, versions)
        waiting.until(lambda: not stores(view), tell=lambda: "the definitions are as loose as before")


def define(server, name, versions):
    body = {"spec": {"versions": versions}}
    server.call("PATCH", f"{DEFINITIONS}/{name}", body, content_type="application/merge-patch+json")


def stores(view):
    """Tell whether every one of the kinds can be stored with nonsense in it."""
    try:
        for kind in (kinds.POD_GROUP, kinds.QUEUE, kinds.HYPER_NODE):
            view.create(kind, "probe", spec="nonsense")
            view.delete(kind, "probe")
    except calling.CallError as error:
        if error.answer.status != 422:
            raise
        return False
    return True


def test_objects_that_make_no_sense_disable_only_themselves(loose, rig):
    for name, (fields, _) in BAD_NODES.items():
        loose.node(name, 8, **fields)
    for name, (spec, _) in BAD_QUEUES.items():
        loose.create(kinds.QUEUE, name, spec=spec)
        loose.gang(f"in-{name}", 1, queue=name)
    for name, (spec, _) in BAD_HYPER_NODES.items():
        loose.create(kinds.HYPER_NODE, name, spec=spec)
    for name, (spec, _) in BAD_GROUPS.items():
        loose.create(kinds.POD_GROUP, name, spec=spec)
        loose.pod(f"{name}-0", name)
    loose.node("n1", 30)
    loose.group("good", 2, queue="default")
    loose.pod("good-0", "good", annotations={"example.com/long": "x" * 200_000})
    loose.pod("good-1", "good")
    waiting.until(lambda: loose.phases().get("good") == "Running", tell=loose.story)
    for kind, table in (
        (kinds.POD_GROUP, BAD_GROUPS),
        (kinds.QUEUE, BAD_QUEUES),
        (kinds.HYPER_NODE, BAD_HYPER_NODES),
        (kinds.NODE, BAD_NODES),
    ):
        for name, (_, field) in table.items():
            waiting.until(
                lambda kind=kind, name=name, field=field: tells(loose, kind, name, field), tell=lambda n=name: n
            )
    rig.settle()
    assert loose.bound() == {"good-0", "good-1"}
    mend(loose)
    waiting.until(lambda: set(loose.phases().values()) == {"Running"}, tell=loose.story)
    rig.check()
    assert loose.bound() == {pod["metadata"]["name"] for pod in loose.list(kinds.POD)}


def tells(view, kind, name, field):
    """Tell whether an event about an object names it and the field that is wrong."""
    return any(name in text and field in text for text in view.events(kind, name))


def mend(view):
    for name in BAD_GROUPS:
        view.call("PATCH", kinds.POD_GROUP, name, [{"op": "replace", "path": "/spec", "value": {"minMember": 1}}])
    for name in BAD_QUEUES:
        view.call("PATCH", kinds.QUEUE, name, [{"op": "replace", "path": "/spec", "value": {"weight": 1}}])
    for name, (fields, _) in BAD_NODES.items():
        view.call("PATCH", kinds.NODE, name, {"metadata": {"annotations": dict.fromkeys(fields["annotations"])}})


def test_a_node_that_offers_nonsense_takes_nobody_until_it_is_mended(rig):
    rig.view.node("n1", 2)
    rig.view.call("PATCH", kinds.NODE, "n1", {"status": {"allocatable": {"cpu": "99999999999999E"}}}, "status")
    waiting.until(lambda: tells(rig.view, kinds.NODE, "n1", "status.allocatable"))
    rig.view.gang("gang", 2)
    waiting.until(lambda: rig.task("gang-1"))
    rig.settle()
    assert rig.view.bound() == set()
    rig.view.call("PATCH", kinds.NODE, "n1", {"status": {"allocatable": sizes(2)}}, "status")
    waiting.until(lambda: rig.view.phases() == {"gang": "Running"}, tell=rig.view.story)
    rig.check()
