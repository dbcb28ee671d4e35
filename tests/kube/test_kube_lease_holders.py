"""Whether somebody runs controllers: by the Leases that a watch tells of, and by our own clock."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import decoding, kinds
from pumice.kube import lease_holders, rivals

SECOND = 1_000_000
WANTED = ("pg-controller:volcano",)


class Clock:
    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


def lease(
    name="pumice-controllers", holder="me", serves="job-controller,pg-controller:volcano", seconds=15, renewed=""
):
    annotations = {} if serves is None else {"pumice.dev/controller-names": serves}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "1", "annotations": annotations},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed},
    }


def holders():
    clock = Clock()
    made = lease_holders.LeaseHolders(None, rivals.CONTROLLING, clock)
    return made, clock


def tell(made, manifest, event_type="MODIFIED", watch=0):
    raw = json.dumps(manifest).encode()
    made.books[watch].feed(kinds.LEASE, event_type, decoding.decode_json(kinds.LEASE, raw), raw)


@pytest.mark.parametrize(
    ("manifest", "served"),
    [
        (lease(), True),
        (lease(holder=""), False),
        (lease(serves="job-controller"), False),
        (lease(serves="pg-controller:other"), False),
        (lease("vc-controller-manager", serves=None), True),
        (lease("anything-else", serves=None), False),
    ],
)
def test_a_lease_counts_if_it_is_held_and_says_that_pods_of_ours_are_grouped(manifest, served):
    made, _ = holders()
    tell(made, manifest)
    assert made.serve(WANTED) is served


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 20))
def test_a_holder_lives_as_long_as_its_lease_lasts_after_each_change(pauses, seconds):
    made, clock = holders()
    for number, pause in enumerate(pauses):
        tell(made, lease(seconds=seconds, renewed=str(number)))
        clock.now += pause * SECOND
        assert made.serve(WANTED) is (pause < seconds)


def test_all_of_our_names_have_to_be_served_perhaps_by_several():
    made, _ = holders()
    wanted = ("pg-controller:a", "pg-controller:b")
    tell(made, lease("one", serves="pg-controller:a"))
    assert not made.serve(wanted)
    tell(made, lease("two", serves="pg-controller:b"))
    assert made.serve(wanted)
    tell(made, lease("two"), "DELETED")
    assert not made.serve(wanted)


def test_a_lease_that_passes_from_volcanos_to_ours_is_never_missing_whatever_is_told_first():
    for order in ((0, 1), (1, 0)):
        made, _ = holders()
        tell(made, lease("vc-controller-manager", serves=None), watch=1)
        for watch in order:
            tell(made, lease("vc-controller-manager"), "DELETED" if watch else "ADDED", watch=watch)
        assert made.serve(WANTED)
