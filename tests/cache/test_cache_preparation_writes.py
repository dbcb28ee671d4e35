"""What is written for a preparation and to take it back: written one after the other to an object until nothing is left, for many states of the object."""

from __future__ import annotations

import copy

import pytest

from pumice.api import kinds, names
from pumice.cache import preparation_writes
from pumice.cache.preparation_writes import Make, Remove, Write
from pumice.model.preparations import LOCK_LASTS, ClaimGrant, ExtendedClaimStatus, NewClaim, NodeLock

NOW = 1_767_225_600_000_000
STAMP = "2026-01-01T00:00:00.000001Z"
CHOSEN = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
OTHER = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "y"}]}}
OWNED = [{"uid": "pod", "controller": True}]
LOCK = NodeLock(node="n", annotation="gpu", stamp=STAMP)
GRANT = ClaimGrant(namespace="a", claim="c", uid="u", pod="p", pod_uid="pod", allocation=CHOSEN)
NEW = NewClaim(namespace="a", claim="c", pod="p", pod_uid="pod", manifest={"made": "so"})
TOLD = ExtendedClaimStatus(namespace="a", pod="p", pod_uid="pod", status={"resourceClaimName": "c"})


def found(status=None, **metadata):
    said = {field: value for field, value in metadata.items() if value}
    return {"metadata": {"uid": "u", "resourceVersion": "1", **said}, "status": status or {}}


def merged(into, body):
    """Merge a body as the server does: None takes away, consumers are merged by uid."""
    for field, value in body.items():
        if value is None:
            into.pop(field, None)
        elif field == "reservedFor":
            kept = [each for each in into.get(field) or [] if each["uid"] not in [new["uid"] for new in value]]
            into[field] = kept + [new for new in value if new.get("$patch") != "delete"]
        elif isinstance(value, dict) and field != "allocation":
            merged(into.setdefault(field, {}), value)
        else:
            into[field] = value
    return into


def carried_out(step, stored):
    """Do what is to be done next until nothing is left; give the object as it is then, and how many steps that took."""
    stored, count = copy.deepcopy(stored), 0
    while (wanted := step(stored)) is not None:
        count += 1
        assert count < 5
        match wanted:
            case Write():
                assert wanted.body["metadata"]["uid"] == stored["metadata"]["uid"]
                assert wanted.subresource == ("status" if "status" in wanted.body else "")
                assert wanted.strategic is ("status" in wanted.body)
                stored = merged(stored, copy.deepcopy(wanted.body))
            case Make():
                stored = {**wanted.manifest, "metadata": {"ownerReferences": OWNED}}
            case Remove():
                assert wanted.uid == stored["metadata"]["uid"]
                stored = None
    return stored, count


def forth(preparation, stored):
    return carried_out(lambda now_there: preparation_writes.forth(preparation, now_there, NOW), stored)


def back(preparation, stored):
    return carried_out(lambda now_there: preparation_writes.back(preparation, now_there), stored)


def hindered(preparation, stored):
    with pytest.raises(preparation_writes.HinderedError) as caught:
        preparation_writes.forth(preparation, stored, NOW)
    return caught.value.code, str(caught.value)


# -- locks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "nonsense", "2025-12-31T23:55:00Z", STAMP])
def test_a_lock_is_written_once_and_taken_off_once(before):
    locked, steps = forth(LOCK, found(annotations={"gpu": before, "else": "stays"}))
    assert (locked["metadata"]["annotations"], steps) == ({"gpu": STAMP, "else": "stays"}, int(before != STAMP))
    free, steps = back(LOCK, locked)
    assert (free["metadata"]["annotations"], steps) == ({"else": "stays"}, 1)
    assert back(LOCK, free) == (free, 0)


def test_a_lock_of_somebody_else_is_neither_overwritten_nor_taken_off():
    theirs = found(annotations={"gpu": "2025-12-31T23:55:01Z"})
    code, text = hindered(LOCK, theirs)
    assert (code, f"ends after {LOCK_LASTS // 1_000_000} s" in text) == ("conflict", True)
    assert back(LOCK, theirs) == (theirs, 0)


# -- claims ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finalizers", [[], ["else"], [names.CLAIM_FINALIZER]])
@pytest.mark.parametrize("allocation", [None, CHOSEN])
@pytest.mark.parametrize("consumers", [[], ["one"], ["one", "pod"]])
@pytest.mark.parametrize("wanted", [CHOSEN, None])
def test_a_claim_gets_its_devices_its_finalizer_and_its_pod(finalizers, allocation, consumers, wanted):
    there = {"allocation": allocation, "reservedFor": [{"uid": uid} for uid in consumers]}
    claim = found({field: value for field, value in there.items() if value}, finalizers=finalizers)
    grant = ClaimGrant(namespace="a", claim="c", uid="u", pod="p", pod_uid="pod", allocation=wanted)
    if wanted is None and allocation is None:
        claim["metadata"]["finalizers"] = [names.CLAIM_FINALIZER]
        assert hindered(grant, claim) == ("conflict", "claim a/c lost its devices in the meantime")
        return
    done, steps = forth(grant, claim)
    status = done["status"]
    assert status["allocation"]["devices"] == CHOSEN["devices"]
    assert ("allocationTimestamp" in status["allocation"]) == (allocation is None)
    assert {each["uid"] for each in status["reservedFor"]} == {*consumers, "pod"}
    is_done = allocation is not None and "pod" in consumers
    assert steps == (0 if is_done else 1 + (names.CLAIM_FINALIZER not in finalizers))
    if not is_done:
        assert set(done["metadata"]["finalizers"]) == {*finalizers, names.CLAIM_FINALIZER}
        assert {"resource": "pods", "name": "p", "uid": "pod"} in status["reservedFor"]
    ended, steps = back(grant, done)
    assert ({each["uid"] for each in ended["status"]["reservedFor"]}, steps) == ({*consumers} - {"pod"}, 1)
    assert back(grant, ended) == (ended, 0)


def test_the_time_of_an_allocation_is_told_in_whole_seconds():
    claim = found(finalizers=[names.CLAIM_FINALIZER])
    written = preparation_writes.forth(GRANT, claim, NOW + 1_999_999)
    assert written.body["status"]["allocation"]["allocationTimestamp"] == "2026-01-01T00:00:01Z"


@pytest.mark.parametrize("count", [preparation_writes.MOST_CONSUMERS - 1, preparation_writes.MOST_CONSUMERS])
def test_a_claim_has_room_for_so_many_consumers(count):
    claim = found({"allocation": CHOSEN, "reservedFor": [{"uid": str(i)} for i in range(count)]})
    if count < preparation_writes.MOST_CONSUMERS:
        assert len(forth(GRANT, claim)[0]["status"]["reservedFor"]) == count + 1
    else:
        assert hindered(GRANT, claim) == ("conflict", "claim a/c is reserved for 256 consumers, which is the most")


@pytest.mark.parametrize(
    ("claim", "code", "told"),
    [
        (None, "notfound", "ResourceClaim a/c is gone"),
        (found({"allocation": OTHER}), "conflict", "got allocated elsewhere"),
        (found(deletionTimestamp="2026-01-01T00:00:00Z"), "conflict", "is being deleted"),
        (found() | {"metadata": {"uid": "v"}}, "conflict", "has uid v, not u; it was replaced"),
    ],
)
def test_what_stands_in_the_way_of_a_claim_is_told(claim, code, told):
    said = hindered(GRANT, claim)
    assert (said[0], told in said[1]) == (code, True)


@pytest.mark.parametrize("owners", [[], [{"uid": "pod"}], [{"uid": "else", "controller": True}], OWNED])
def test_a_claim_that_was_made_for_a_pod_is_known_by_its_owner(owners):
    claim = found({"allocation": CHOSEN}, ownerReferences=owners)
    grant = ClaimGrant(namespace="a", claim="c", uid="", pod="p", pod_uid="pod", allocation=CHOSEN)
    if owners == OWNED:
        assert forth(grant, claim)[1] == 2
        assert forth(NEW, claim) == (claim, 0)
    else:
        assert "is not owned by pod p (uid pod)" in hindered(grant, claim)[1]
        assert hindered(NEW, claim) == ("conflict", "claim a/c is there and not owned by pod p")
        assert back(NEW, claim) == (claim, 0)


@pytest.mark.parametrize("finalizers", [[], [names.CLAIM_FINALIZER], ["else", names.CLAIM_FINALIZER]])
def test_a_claim_that_was_made_is_deleted_without_its_finalizer(finalizers):
    assert forth(NEW, None)[0]["made"] == "so"
    claim = found(ownerReferences=OWNED, finalizers=finalizers)
    assert back(NEW, claim) == (None, 1 + bool(finalizers))
    going = found(ownerReferences=OWNED, finalizers=finalizers, deletionTimestamp="2026-01-01T00:00:00Z")
    left, steps = back(NEW, going)
    assert (left["metadata"].get("finalizers"), steps) == (finalizers[:-1] or None, int(bool(finalizers)))


# -- pods, and what an answer shows ------------------------------------------------------------------------------


def test_a_pod_is_told_of_its_claim_once_and_only_itself():
    pod = {"metadata": {"uid": "pod"}, "status": {}}
    told, steps = forth(TOLD, pod)
    assert (told["status"]["extendedResourceClaimStatus"], steps) == (TOLD.status, 1)
    assert forth(TOLD, told) == (told, 0)
    assert back(TOLD, told) == (told, 0)
    assert hindered(TOLD, {"metadata": {"uid": "new"}}) == ("notfound", "pod a/p was replaced")


def test_an_answer_shows_claims_as_they_were_last_seen():
    claims = {}
    where = preparation_writes.target(GRANT)
    assert (where, preparation_writes.target(LOCK)) == ((kinds.RESOURCE_CLAIM, "a", "c"), (kinds.NODE, "", "n"))
    assert preparation_writes.target(TOLD) == (kinds.POD, "a", "p")
    preparation_writes.note(claims, (kinds.NODE, "", "n"), found())
    assert preparation_writes.shown(claims) is None
    first, later = found(finalizers=["x"]), found()
    preparation_writes.note(claims, where, first)
    preparation_writes.note(claims, (kinds.RESOURCE_CLAIM, "a", "d"), first)
    preparation_writes.note(claims, where, later)
    assert preparation_writes.shown(claims) == {"claims": [first, later]}  # the last seen comes last
    preparation_writes.note(claims, where, None)
    assert preparation_writes.shown(claims) == {"claims": [first]}
