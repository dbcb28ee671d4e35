"""What must hold of evictions: each says on its pod for whom, and whoever it was for gets room, is gone, or says why not; what was begun is finished."""

from __future__ import annotations

import json
import re

from pumice.api import kinds
from pumice.sim.identity import Key

_PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/?]+)(?:\?|$)")
_STATUS = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/?]+)/status(?:\?|$)")
_CLAIM = re.compile(r" for pod (\S+) of group (\S+) in queue \S+.*, plan \d+$")
MARK = "DisruptionTarget"
FINISH = 60.0  # seconds within which an eviction is finished: after 30 it is looked whether the delete has arrived


def claim_of(pod):
    """Give the claimant and its group that a pod was marked for, None if it is not marked as it should be."""
    for each in pod.get("status", {}).get("conditions", ()):
        if each["type"] == MARK and each["status"] == "True" and (found := _CLAIM.search(each.get("message", ""))):
            return found[1], found[2]
    return None


def _meant(data):
    """Give the uid of the pod that a request to delete means, None if it means whoever has the name."""
    return json.loads(data.partition(b"\r\n\r\n")[2] or b"{}").get("preconditions", {}).get("uid")


class Evictions:
    """Hears of every delete that a scheduler sends."""

    def __init__(self, world, complain):
        self._world = world
        self._complain = complain
        self._claims = {}  # by uid of the victim: moment, its name, claimant, group
        self._markers = {}  # by pod: who has marked it last, and when
        self._bound = {}  # by group: when one of its pods was bound last

    def sent(self, process, method, path, data):
        """Hear of a request of a scheduler."""
        if method == "PATCH" and MARK.encode() in data and (found := _STATUS.match(path)):
            self._markers[f"{found[1]}/{found[2]}"] = (process, self._world.loop.now)
        found = _PODS.match(path) if method == "DELETE" else None
        pod = self._world.store.find(Key(kinds.POD, *found.groups())) if found else None
        if pod is None or _meant(data) not in (None, pod["metadata"]["uid"]):
            return  # whom it means is gone; another one may have its name
        name, claim = f"{found[1]}/{found[2]}", claim_of(pod)
        if claim is None:
            self._complain("unexplained", f"{process} deletes {name}, which does not say for whom")
        else:
            self._claims[pod["metadata"]["uid"]] = (self._world.loop.now, name, *claim)

    def bound(self, pod, group):
        """Hear that a pod of a group has got a node."""
        self._bound[f"{pod['metadata']['namespace']}/{group}"] = self._world.loop.now

    def forget(self):
        """Forget evictions that were judged."""
        for kept in (self._claims, self._markers, self._bound):
            kept.clear()

    def judge(self):
        """Look whether every plan has come about, or says why not."""
        for moment, victim, claimant, group in self._claims.values():
            found = self._world.store.find(Key(kinds.POD_GROUP, *group.split("/")))
            waits = self._world.store.find(Key(kinds.POD, *claimant.split("/")))
            if found is None or waits is None or self._bound.get(group, -1.0) >= moment:
                continue
            conditions = found.get("status", {}).get("conditions", ())
            if not any(each["type"] == "Unschedulable" and each.get("message") for each in conditions):
                self._complain(
                    "in vain", f"{victim} was evicted at {moment:.3f} for {claimant} of {group}, which waits"
                )
        for pod in self._world.oracle.alive():
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if claim_of(pod) and not pod["metadata"].get("deletionTimestamp") and self._had_time(name):
                self._complain("unfinished", f"{name} is marked as evicted for {claim_of(pod)[0]}, and goes on")

    def _had_time(self, name):
        """Tell whether whoever has marked a pod had the time to finish: rule 30 binds who has decided, for as long as it lives.

        Who takes over knows of no plan but by what the claimants say, and plans anew; a mark that nobody follows up is taken back by Kubernetes after two minutes.
        """
        marker, moment = self._markers.get(name, ("", 0.0))
        return self._lives(marker) or self._world.ended.get(marker, moment) - moment > FINISH

    def _lives(self, run):
        return bool(run) and any(program.run == run for program in self._world.programs)
