"""However many pods somebody asks for, one look at a workload makes so many that others have their turn, and the next one goes on."""

from __future__ import annotations

import pytest
from workload_objects import at

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads import pods, replica_sets, stateful_sets
from pumice.controllers.workloads.jobs import controlling

MOST = 2**31 - 1
LABELS = {"app": "x"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
SPEC = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
WORKLOADS = {
    "a Job": (controlling.Jobs(), {"parallelism": MOST, "completions": MOST}),
    "an Indexed Job": (controlling.Jobs(), {"parallelism": MOST, "completions": MOST, "completionMode": "Indexed"}),
    "a ReplicaSet": (replica_sets.ReplicaSets(), {"replicas": MOST}),
    "a StatefulSet": (stateful_sets.StatefulSets(), {"replicas": MOST, "podManagementPolicy": "Parallel"}),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_without_number_are_made_some_hundreds_at_a_time(name):
    controller, spec = WORKLOADS[name]
    kind, observed = controller.kind, Observed()
    metadata = {"name": "s", "namespace": "a", "uid": "u-s", "resourceVersion": "1"}
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": {**SPEC, **spec}}
    observed.feed(kind, "ADDED", owner)
    made = []
    for _ in range(3):
        steps = controller.reconcile("a", "s", observed, at(100)).steps
        created = [step.request for step in steps if isinstance(step.request, effects.Create)]
        for number, request in enumerate(created):
            manifest = request.manifest
            manifest["metadata"] |= {"uid": f"{len(made)}-{number}", "resourceVersion": "1"}
            observed.feed(request.kind, "ADDED", manifest)
        made.append(sum(request.kind is kinds.POD for request in created))
    revisions = kind is kinds.STATEFUL_SET  # the first look makes one
    assert made == [0 if revisions else pods.AT_ONCE, pods.AT_ONCE, pods.AT_ONCE]
    assert len(list(observed.owned(kinds.POD, "u-s"))) == sum(made)
