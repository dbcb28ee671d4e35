import pytest
from sim_objects import cluster, node, pod, pod_group, queue, stored

from pumice.api import kinds
from pumice.cache import effects
from pumice.sim.faults import Fault, Faults


@pytest.mark.parametrize(
    ("pattern", "reference", "hit"),
    [
        ("pod/a/g-*", "pod/a/g-0", True),
        ("pod/a/g-*", "pod/b/g-0", False),
        ("pod/*/g-0", "pod/a/g-0", True),
        ("pod/*", "pod/a/g-0", False),
        ("queue/*", "queue/q", True),
        ("", "podgroup/a/g", True),
    ],
)
def test_a_fault_matches_part_by_part(pattern, reference, hit):
    assert Fault(verb="bind", error="refused", object=pattern).matches("bind", reference) is hit
    assert not Fault(verb="bind", error="refused", object=pattern).matches("evict", reference)
    assert not Fault(verb="bind", error="refused", object=pattern).matches(None, reference)


def test_faults_are_spent_oldest_first():
    faults = Faults()
    faults.add(Fault(verb="bind", error="conflict", times=2))
    faults.add(Fault(verb="bind", error="refused", object="pod/a/p"))
    faults.add(Fault(verb="bind", error="unavailable", times=0))
    assert len(faults) == 3
    assert [faults.take("bind", "pod/a/p") for _ in range(4)] == ["conflict", "conflict", "refused", None]
    assert len(faults) == 0


def effect_of(simulated, verb):
    uid = stored(simulated, "pod/a/p")["metadata"]["uid"]
    if verb == "bind":
        return effects.Bind(namespace="a", name="p", uid=uid, node="n1")
    if verb == "evict":
        return effects.Evict(namespace="a", name="p", uid=uid, reason="preempt")
    body = {"status": {"phase": "Inqueue"}}
    return effects.Patch(kind=kinds.POD_GROUP, namespace="a", name="g", uid="", body=body)


def done(simulated, verb):
    if verb == "status":
        return stored(simulated, "podgroup/a/g").get("status") == {"phase": "Inqueue"}
    if verb == "bind":
        return stored(simulated, "pod/a/p")["spec"].get("nodeName") == "n1"
    return stored(simulated, "pod/a/p") is None


@pytest.mark.parametrize("verb", ["bind", "evict", "status"])
@pytest.mark.parametrize(
    ("error", "code", "performed"),
    [
        ("conflict", "conflict", False),
        ("refused", "refused", False),
        ("unavailable", "unavailable", False),
        ("lost-reply", "unknown", True),
    ],
)
def test_the_next_write_fails_so_and_the_one_after_does_not(verb, error, code, performed):
    simulated, mirror = cluster(pod(), pod_group(), node())
    simulated.fail(Fault(verb=verb, error=error))
    effect = effect_of(simulated, verb)
    simulated.send(effect)
    simulated.settle()
    assert mirror.failures() == [code]
    assert "as the scenario demands" in mirror.outcomes[0].failure.message
    assert done(simulated, verb) is performed
    counts = simulated.counts
    assert counts.binds + counts.evictions + counts.status_writes == int(performed)
    if not performed:
        simulated.send(effect)
        simulated.settle()
        assert done(simulated, verb)
        assert mirror.outcomes[-1].failure is None


def test_a_lost_reply_hides_a_refusal_too():
    simulated, mirror = cluster(pod(node="n0"), node())
    simulated.fail(Fault(verb="bind", error="lost-reply"))
    effect = effect_of(simulated, "bind")
    simulated.send(effect)
    simulated.settle()
    assert mirror.failures() == ["unknown"]
    assert simulated.counts.binds == 0


@pytest.mark.parametrize(
    ("kind", "name", "subresource", "counted"),
    [
        (kinds.POD_GROUP, "g", "", True),
        (kinds.QUEUE, "q", "status", True),
        (kinds.QUEUE, "q", "", False),
        (kinds.POD, "p", "status", True),
        (kinds.POD, "p", "", False),
        (kinds.NODE, "n1", "status", False),
    ],
)
def test_which_patches_are_status_writes(kind, name, subresource, counted):
    simulated, mirror = cluster(pod(), pod_group(), queue(), node())
    simulated.fail(Fault(verb="status", error="unavailable"))
    namespace = "a" if kind.namespaced else ""
    body = {"metadata": {"labels": {"x": "1"}}, "status": {"x": "1"}}
    effect = effects.Patch(kind=kind, namespace=namespace, name=name, uid="", body=body, subresource=subresource)
    for _ in range(2):
        simulated.send(effect)
    simulated.settle()
    assert mirror.failures() == (["unavailable"] if counted else [])
    assert simulated.counts.status_writes == int(counted)


def test_faults_are_not_meant_for_controllers():
    simulated, _ = cluster(pod(group=None))
    simulated.fail(Fault(verb="status", error="refused", times=9))
    simulated.settle()
    assert stored(simulated, "pod/a/p")["metadata"]["annotations"]["scheduling.k8s.io/group-name"].startswith(
        "podgroup-"
    )
    assert simulated.counts.status_writes == 0
