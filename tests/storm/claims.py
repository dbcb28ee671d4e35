"""What must hold of devices and claims for them: nobody has a device of another, no pod runs without what it claims, and nothing is kept for who is gone."""

from __future__ import annotations

from pumice.api import kinds
from pumice.sim.identity import Key
from tests.storm import amounts, taints

_OVER = ("Succeeded", "Failed")


def names_of(pod):
    """Name the claims of a pod; None for one that was not made yet."""
    told = {each["name"]: each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses") or ()}
    return [each.get("resourceClaimName") or told.get(each["name"]) for each in pod["spec"].get("resourceClaims") or ()]


class Claims:
    """Hears of slices, claims and binds."""

    def __init__(self, world, complain):
        self._world = world
        self._complain = complain
        self._offered = {}  # by device: which sizes it had
        self._had = {}  # by uid of a claim: the devices that it had last
        self._taints = taints.Taints(world)

    def forget(self):
        """Forget devices that nobody offers any more."""
        self._offered.clear()
        self._had.clear()
        self._taints.forget()
        for each in self._world.store.scan(kinds.RESOURCE_SLICE):
            self._note(each["spec"])

    def seen(self, key, event_type, manifest):
        """Hear of a change that was stored."""
        if key.kind in (kinds.RESOURCE_SLICE, kinds.DEVICE_TAINT_RULE):
            self._taints.seen(key, event_type, manifest)
        if key.kind is kinds.RESOURCE_SLICE:
            self._note(manifest["spec"])
        elif key.kind is kinds.RESOURCE_CLAIM and event_type != "DELETED":
            self._chosen(manifest)
            if amounts.given(manifest):
                self._given(manifest)

    def _note(self, spec):
        for device in spec.get("devices", ()):
            place = (spec["driver"], spec["pool"]["name"], device["name"])
            self._offered.setdefault(place, set()).add(amounts.size(device))

    def _chosen(self, claim):
        """See that devices which were given just now bear no taint that their claim does not, by what somebody may know."""
        uid, had = claim["metadata"]["uid"], amounts.given(claim)
        for device in had if had != self._had.get(uid) else ():
            away = self._taints.keeps_away(device, amounts.tolerated(claim), self._world.oracle.known_since())
            if away:
                self._complain("tainted", f"{claim['metadata']['name']} is given {device}, which is tainted {away}")
        self._had[uid] = had

    def _given(self, claim):
        name, had = claim["metadata"]["name"], amounts.given(claim)
        for other in self._world.store.scan(kinds.RESOURCE_CLAIM):
            both = [] if other["metadata"]["uid"] == claim["metadata"]["uid"] else amounts.given(other)
            if shared := set(had) & set(both):
                self._complain("device", f"{name} and {other['metadata']['name']} both have {sorted(shared)}")
        if len(set(had)) < len(had):
            self._complain("device", f"{name} has a device twice: {had}")
        wanted = amounts.classes(claim)
        for kind, count in ((kind, wanted.count(kind)) for kind in sorted(set(wanted))):
            right = [each for each in had if any(amounts.matches(kind, size) for size in self._offered.get(each, ()))]
            if len(right) != count or len(had) != count:
                self._complain("wrong device", f"{name} asks for {count} of {kind} and has {had}, {right} are such")

    def bound(self, pod):
        """Hear that a pod has got a node: everything that it claims is there, and for it."""
        for name in names_of(pod):
            claim = self._find(kinds.RESOURCE_CLAIM, pod["metadata"]["namespace"], name) if name else None
            status = (claim or {}).get("status") or {}
            users = [each["uid"] for each in status.get("reservedFor") or ()]
            nodes = {pool for _, pool, _ in amounts.given(claim)} if claim else set()
            if pod["metadata"]["uid"] not in users or nodes != {pod["spec"]["nodeName"]}:
                self._complain(
                    "unclaimed",
                    f"{pod['metadata']['name']} is bound to {pod['spec']['nodeName']}, its claim {name} has devices of {sorted(nodes)} and is for {users}",
                )

    def has_by_claim(self, pod):
        """Tell whether a pod has what it asks for by the name of a class by a claim that was made for it, on its node."""
        told = (pod["status"].get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
        claim = self._find(kinds.RESOURCE_CLAIM, pod["metadata"]["namespace"], told) if told else None
        users = ((claim or {}).get("status") or {}).get("reservedFor") or ()
        mine = any(each["uid"] == pod["metadata"]["uid"] for each in users)
        return mine and {pool for _, pool, _ in amounts.given(claim)} == {pod["spec"].get("nodeName")}

    def needs(self, pod):
        """Which node a pod that waits is tied to by what its claims have, "" for none, and which devices it needs; None if it waits for something that nobody can give.

        What a claim has that nobody else uses ties it to no node: the claim is freed where its node has no room.
        """
        tied, wanted = set(), []
        for name in names_of(pod):
            claim = self._find(kinds.RESOURCE_CLAIM, pod["metadata"]["namespace"], name) if name else None
            if claim is None or claim["metadata"].get("deletionTimestamp"):
                return None
            users = {each["uid"] for each in (claim.get("status") or {}).get("reservedFor") or ()}
            if users - {pod["metadata"]["uid"]}:
                tied |= {pool for _, pool, _ in amounts.given(claim)}
            else:
                wanted.append(amounts.requested(claim))
        return (min(tied, default=""), amounts.sums(wanted)) if len(tied) < 2 else None

    def judge(self):
        """See that nobody who is gone keeps devices, and nobody stays on those that must be left."""
        for claim in self._world.store.scan(kinds.RESOURCE_CLAIM):
            metadata, status = claim["metadata"], claim.get("status") or {}
            for each in status.get("reservedFor") or ():
                if not self._may_use(metadata["namespace"], each):
                    self._complain("kept", f"claim {metadata['name']} is reserved for {each['name']}, which is gone")
                elif must := self._must_leave(claim):
                    self._complain("stays", f"{each['name']} uses {metadata['name']}, which has {must}")
            for owner in metadata.get("ownerReferences") or ():
                if owner["kind"] == "Pod" and not self._may_use(metadata["namespace"], owner):
                    self._complain("kept", f"claim {metadata['name']} was made for {owner['name']}, which is gone")

    def _must_leave(self, claim):
        """Name the devices of a claim that everybody has to leave who does not bear their taints."""
        keys = amounts.tolerated(claim)
        return [
            device
            for device in amounts.given(claim)
            for taint in taints.now(self._world.store, device)
            if taint["effect"] == taints.LEAVES and not taints.borne(taint, keys)
        ]

    def _may_use(self, namespace, named):
        pod = self._find(kinds.POD, namespace, named["name"])
        return (
            pod is not None
            and pod["metadata"]["uid"] == named["uid"]
            and pod.get("status", {}).get("phase") not in _OVER
        )

    def _find(self, kind, namespace, name):
        return self._world.store.find(Key(kind, namespace, name))
