from __future__ import annotations

import asyncio

import pytest
from kube_fakes import FakeApi, conflict, pod, until

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.writes import performing, volumes
from pumice.model.volumes import VolumeDecision

CLAIM, VOLUME = kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME


def cluster(*, claims=("c",), volumes_=("v",)):
    api = FakeApi()
    api.add(kinds.POD, pod())
    for name in claims:
        api.add(CLAIM, {"metadata": {"name": name, "namespace": "a"}, "spec": {}, "status": {"phase": "Pending"}})
    for name in volumes_:
        api.add(VOLUME, {"metadata": {"name": name}, "spec": {"capacity": {"storage": "1Gi"}}})
    return api


def decision(claim="c", volume="", uid=None):
    return VolumeDecision(namespace="a", claim=claim, uid=f"uid-{claim}" if uid is None else uid, volume=volume)


def bind(*decisions, patience=5.0, uid="uid-p"):
    return effects.Bind(
        namespace="a", name="p", uid=uid, node="n1", volumes=decisions, volume_patience=int(patience * 1e6)
    )


def binder(api):
    return volumes.ApiVolumeBinder(api, first_pause=0.001, longest_pause=0.005)


def control(api, claim="c", volume="v"):
    """Play the volume controller: bind a claim."""
    found = api.find(CLAIM, "a", claim)
    found["spec"]["volumeName"] = volume
    found["status"]["phase"] = "Bound"


def prepare(api, effect, meanwhile=None):
    async def both():
        preparing = asyncio.create_task(binder(api).prepare(effect))
        if meanwhile is not None:
            await meanwhile(preparing)
        return await preparing

    return asyncio.run(both())


def selected(api, claim="c"):
    return api.find(CLAIM, "a", claim)["metadata"].get("annotations", {}).get(names.SELECTED_NODE)


def reference(api, volume="v"):
    return api.find(VOLUME, "", volume)["spec"].get("claimRef")


def test_a_chosen_volume_is_claimed_and_its_claim_waited_for():
    api = cluster()

    async def meanwhile(preparing):
        await until(lambda: reference(api))
        await asyncio.sleep(0.01)
        assert not preparing.done()
        control(api)

    prepare(api, bind(decision(volume="v")), meanwhile)
    assert reference(api) == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "a",
        "name": "c",
        "uid": "uid-c",
    }
    assert api.find(VOLUME, "", "v")["metadata"]["annotations"] == {names.BOUND_BY_CONTROLLER: "yes"}


def test_a_claim_without_a_volume_gets_the_node_and_is_waited_for():
    api = cluster()

    async def meanwhile(_):
        await until(lambda: selected(api) == "n1")
        control(api, volume="made")

    prepare(api, bind(decision()), meanwhile)


def test_a_claim_that_is_bound_already_needs_no_write():
    api = cluster()
    control(api)
    prepare(api, bind(decision(volume="v")))
    assert "patch" not in api.verbs()


def test_a_write_that_was_overtaken_is_decided_anew():
    api = cluster()
    api.fail["patch"] = [conflict(), conflict()]

    async def meanwhile(_):
        await until(lambda: reference(api))
        control(api)

    prepare(api, bind(decision(volume="v")), meanwhile)
    assert api.verbs().count("patch") == 3


def test_claims_that_are_not_bound_in_time_are_let_go_in_reverse():
    api = cluster(claims=("c", "d"))
    with pytest.raises(volumes.VolumesNotReadyError, match=r"2 of 2 claims of pod a/p .* 0\.05 s: a/c, a/d"):
        prepare(api, bind(decision(volume="v"), decision("d"), patience=0.05))
    assert reference(api) is None
    assert selected(api, "d") is None
    assert not api.find(VOLUME, "", "v")["metadata"]["annotations"]
    assert [call[2] for call in api.calls if call[0] == "patch"] == ["v", "d", "d", "v"]


def test_a_failure_half_way_undoes_what_was_begun():
    api = cluster(claims=("c", "d"))
    api.fail["patch"] = [None, errors.ApiError(403, "Forbidden", "no")]
    with pytest.raises(errors.ApiError, match="no"):
        prepare(api, bind(decision(volume="v"), decision("d")))
    assert reference(api) is None


def test_a_lost_reply_is_undone_too():
    api = cluster()
    found = api.find(VOLUME, "", "v")
    arrived = {"namespace": "a", "name": "c", "uid": "uid-c"}

    async def lose(*_, **__):
        if "claimRef" not in found["spec"]:
            found["spec"]["claimRef"] = arrived
            raise errors.UnknownOutcomeError("the answer was lost")
        found["spec"].pop("claimRef")

    api.patch = lose
    with pytest.raises(errors.UnknownOutcomeError):
        prepare(api, bind(decision(volume="v")))
    assert reference(api) is None


def test_what_is_bound_or_belongs_to_others_is_not_undone():
    api = cluster(claims=("c", "d", "e"), volumes_=("v", "w"))
    api.find(VOLUME, "", "w")["spec"]["claimRef"] = {"namespace": "a", "name": "e"}
    api.find(CLAIM, "a", "d")["metadata"]["annotations"] = {names.SELECTED_NODE: "n1"}

    async def meanwhile(_):
        await until(lambda: reference(api))
        control(api)

    with pytest.raises(volumes.VolumesNotReadyError, match="2 of 3"):
        prepare(api, bind(decision(volume="v"), decision("d"), decision("e", "w"), patience=0.1), meanwhile)
    assert reference(api, "v")["uid"] == "uid-c"
    assert reference(api, "w")["uid"] == "uid-e"
    assert selected(api, "d") == "n1"


def _other_claim(api):
    api.find(VOLUME, "", "v")["spec"]["claimRef"] = {"namespace": "b", "name": "c", "uid": "x"}


def _bound_elsewhere(api):
    control(api, volume="w")


def _other_node(api):
    api.find(CLAIM, "a", "c")["metadata"]["annotations"] = {names.SELECTED_NODE: "n2"}


@pytest.mark.parametrize(
    ("before", "wanted", "text"),
    [
        (_other_claim, decision(volume="v"), "claimed by b/c"),
        (_bound_elsewhere, decision(volume="v"), "bound to volume w, not v"),
        (_other_node, decision(), "being made on node n2, not n1"),
        (lambda _: None, decision(uid="old"), "uid uid-c, not old"),
    ],
)
def test_what_was_decided_on_an_older_state_is_a_conflict_and_writes_nothing(before, wanted, text):
    api = cluster()
    before(api)
    with pytest.raises(errors.ApiError, match=text) as caught:
        prepare(api, bind(wanted))
    assert caught.value.failure.code == "conflict"
    assert "patch" not in api.verbs()


def test_a_provisioner_that_gives_the_node_back_ends_the_wait():
    api = cluster()

    async def meanwhile(_):
        await until(lambda: selected(api))
        api.find(CLAIM, "a", "c")["metadata"]["annotations"].clear()

    with pytest.raises(errors.ApiError, match="selected node was taken back"):
        prepare(api, bind(decision(), patience=60), meanwhile)


def test_a_pod_that_goes_ends_the_wait_and_frees_its_volume():
    api = cluster()

    async def meanwhile(_):
        await until(lambda: reference(api))
        api.find(kinds.POD, "a", "p")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    with pytest.raises(errors.ApiError) as caught:
        prepare(api, bind(decision(volume="v"), patience=60), meanwhile)
    assert caught.value.failure.code == "notfound"
    assert reference(api) is None


def test_a_claim_that_is_deleted_frees_its_volume():
    api = cluster()

    async def meanwhile(_):
        await until(lambda: reference(api))
        del api.objects[CLAIM.plural, "a", "c"]

    with pytest.raises(errors.ApiError, match="not found"):
        prepare(api, bind(decision(volume="v"), patience=60), meanwhile)
    assert reference(api) is None


def test_a_server_that_is_away_is_waited_for():
    api = cluster()

    async def meanwhile(_):
        await until(lambda: reference(api))
        api.fail["get"] = [errors.UnreachableError("connection refused")] * 5
        await until(lambda: not api.fail["get"])
        control(api)

    prepare(api, bind(decision(volume="v")), meanwhile)


def test_cancelling_the_wait_undoes_it():
    api = cluster()

    async def meanwhile(preparing):
        await until(lambda: selected(api))
        preparing.cancel()

    with pytest.raises(asyncio.CancelledError):
        prepare(api, bind(decision(), patience=60), meanwhile)
    assert selected(api) is None


@pytest.mark.parametrize(("error", "rolled_back"), [(conflict(), True), (errors.UnknownOutcomeError("x"), False)])
def test_volumes_are_given_back_only_if_the_pod_certainly_was_not_bound(error, rolled_back):
    class Volumes:
        def __init__(self):
            self.undone = []

        async def prepare(self, effect):
            return ["step"]

        async def roll_back(self, steps):
            self.undone += steps

    api = cluster()
    api.fail["bind"] = [error]
    parts = Volumes()
    performer = performing.Performer(api, now=lambda: 0, volume_binder=parts)
    outcome = asyncio.run(performer.perform(bind(decision())))
    assert outcome.failure.code == error.failure.code
    assert parts.undone == (["step"] if rolled_back else [])
