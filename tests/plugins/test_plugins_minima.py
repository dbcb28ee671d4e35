"""minima: what jobs ask for, followed from change to change and asked about many at once, is what each asks for by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.model.statuses import Status
from pumice.plugins.sharing.minima import Minima

ANYTHING = st.randoms(use_true_random=True)
NAMES = ("cpu", "memory", "pods", "example.com/none")


def anything(pick):
    """A group or a pod of a group; each of few names, so that they change, come and go."""
    name = f"g{pick.randint(0, 7)}"
    if pick.random() < 0.5:
        stated = {each: str(pick.randint(0, 3)) for each in NAMES if pick.random() < (0.1 if "none" in each else 0.5)}
        spec = {"minResources": stated} if pick.random() < 0.8 else {}
        phase = pick.choice(["Pending", "Inqueue", "Running"])
        return group(name, pick.randint(0, 2), queue=pick.choice(["default", "other", "missing"]), phase=phase, **spec)
    where = {"node": "n0"} if pick.random() < 0.3 else {}
    gates = {"schedulingGates": [{"name": "example.com/wait"}]} if not where and pick.random() < 0.5 else {}
    return pod(f"{name}-{pick.randint(0, 2)}", name, cpu=pick.choice(["1", "2"]), **where, **gates)


def change(desk, there, pick):
    """Change, add or take away some objects."""
    for _ in range(pick.randint(0, 12)):
        manifest = anything(pick)
        key = (manifest["kind"], manifest["metadata"]["name"])
        if key in there:
            desk.delete(there.pop(key))
        if pick.random() < 0.8:
            there[key] = manifest
            desk.feed(manifest)
    desk.apply()


def plain_asked(cluster, job):
    """The minimum of a job less what its gated pods ask for."""
    asked = cluster.vocabulary.vector(job.min_resources or {})
    for task in job.tasks.values():
        if task.externally_gated and task.status == Status.PENDING:
            asked = asked - task.shape.request.vector
    return np.maximum(asked, 0)


@settings(max_examples=drawn(120), deadline=None)
@given(pick=ANYTHING)
def test_what_many_jobs_ask_for_is_what_each_asks_for_whatever_has_changed(pick):
    desk, there, followed = Desk().feed(node("n0", cpu="8"), queue("other")), {}, Minima()
    cluster = desk.cluster
    for _ in range(4):
        change(desk, there, pick)
        followed.refresh(cluster)
        jobs = list(cluster.jobs.values())
        assert followed.asked_by(jobs).tolist() == [plain_asked(cluster, job).tolist() for job in jobs]


def test_what_jobs_ask_for_is_asked_anew_once_a_pod_has_changed():
    desk, followed = Desk().feed(node("n0"), group("g", minResources={"cpu": "3"})), Minima()
    desk.apply()
    followed.refresh(desk.cluster)
    jobs = [desk.cluster.jobs["a/g"]]
    assert followed.asked(*jobs).tolist() == [3000, 0, 0]
    desk.feed(pod("p", "g", cpu="1", schedulingGates=[{"name": "example.com/wait"}])).apply()
    assert followed.asked(*jobs).tolist() == [2000, 0, 0]
