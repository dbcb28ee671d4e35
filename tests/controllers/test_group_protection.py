"""A group of Kubernetes' own that is being deleted goes with the last of its pods that has not finished, and no sooner."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import kinds, names
from pumice.controllers import group_protection
from pumice.controllers.queueing import observed, requests

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def _group(finalizers, *, going):
    version = "2" if going else "1"
    metadata = {"name": "g", "namespace": "a", "uid": "u", "resourceVersion": version, "finalizers": finalizers}
    return {"metadata": metadata | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}), "spec": {}}


def _pod(number, namespace, group, phase):
    spec = {"schedulingGroup": {"podGroupName": group}} if group else {}
    metadata = {"name": f"p{number}", "namespace": namespace, "uid": f"p{number}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


pods = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["g", "h", ""]), st.sampled_from(PHASES)), max_size=6
)


@given(pods, st.booleans(), st.sampled_from([[], [names.GROUP_PROTECTION], ["other", names.GROUP_PROTECTION]]))
@settings(max_examples=drawn(200), deadline=None)
def test_the_finalizer_goes_when_nobody_needs_the_group(listed, going, finalizers):
    seen = observed.Observed()
    seen.feed(kinds.NATIVE_POD_GROUP, "ADDED", _group(finalizers, going=going))
    for number, (namespace, group, phase) in enumerate(listed):
        seen.feed(kinds.POD, "ADDED", _pod(number, namespace, group, phase))
    needed = any(n == "a" and g == "g" and p not in ("Succeeded", "Failed") for n, g, p in listed)
    found = group_protection.ProtectedGroups().reconcile("a", "g", seen, requests.Moment(0, 1))
    bodies = [step.request.body for step in found.steps]
    if going and not needed and names.GROUP_PROTECTION in finalizers:
        assert bodies == [{"metadata": {"finalizers": ["other"] if "other" in finalizers else None}}]
    else:
        assert bodies == []


def test_a_pod_concerns_its_group_only_while_that_is_going():
    seen = observed.Observed()
    controller = group_protection.ProtectedGroups()
    pod = _pod(0, "a", "g", "Succeeded")
    seen.feed(kinds.NATIVE_POD_GROUP, "ADDED", _group([names.GROUP_PROTECTION], going=False))
    assert list(controller.concerns(kinds.POD, pod, seen)) == []
    seen.feed(kinds.NATIVE_POD_GROUP, "MODIFIED", _group([names.GROUP_PROTECTION], going=True))
    assert list(controller.concerns(kinds.POD, pod, seen)) == [("a", "g")]
