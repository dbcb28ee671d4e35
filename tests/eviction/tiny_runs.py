"""The real scheduler on a tiny world: the action for one cycle, and allocate alone in the room that some victims would leave."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

from builders import Desk
from tests.lives import facts
from tests.lives.candidates import Supposed
from tests.lives.policies import Policy

PLAN = re.compile(r"^(\w+): (\S+/\S+): (\d+) pods are evicted for (\d+) members(?: in \S+)?: (.*?)(?:; plan |$)")
FIRST = re.compile(r", for (\S+) first")
ROOM = re.compile(r"^\w+: (\S+/\S+): there is room for \d+ members")


@dataclass
class Ran:
    """What one cycle did."""

    binds: dict
    evictions: list
    nominated: dict
    plans: list = field(default_factory=list)  # (claimant, victims, number of members, first member)
    told: list = field(default_factory=list)
    seated: set = field(
        default_factory=set
    )  # claimants of plans that were made after room was found for others of theirs


def act(world):
    """Run the world's actions for one cycle."""
    desk = _desk(world.policy.text, world.manifests)
    record = desk.cycle()
    if desk.scheduler.failures:
        raise desk.scheduler.failures[0]
    told = list(record.trace())
    plans, roomy, seated = [], set(), set()
    for line in told:
        if room := ROOM.match(line):
            roomy.add(room[1])
        match = PLAN.match(line)
        if match:
            first = FIRST.search(line)
            seated |= roomy & {match[2]}
            names = re.split(r", | and ", match[5])
            plans.append((match[2], [n for n in names if "/" in n], int(match[4]), first[1] if first else ""))
    nominated = {
        f"{each.namespace}/{each.name}": each.body["status"]["nominatedNodeName"]
        for each in desk.world.patches("Pod")
        if each.body.get("status", {}).get("nominatedNodeName")
    }
    binds = {f"a/{name}": node for name, node in desk.world.binds.items()}
    return Ran(binds, sorted(f"a/{n}" for n in desk.world.evictions), nominated, plans, told, seated)


def place(world, scene, key, gone):
    """Let allocate place a job once some pods are gone and nobody else waits; give member keys and nodes. Limits of queues are not asked."""
    names = {pod.key for pod in gone}
    tiers = [
        [p for p in tier if p["name"] not in ("proportion", "capacity", "pdb", "cdp")] for tier in world.policy.tiers
    ]
    policy = Policy("allocate", ["allocate"], [tier for tier in tiers if tier])
    desk = _desk(policy.text, _as_in(world, scene, key, names))
    desk.cycle()
    return {f"a/{name}": node for name, node in desk.world.binds.items()}


def _as_in(world, scene, key, without):
    """Write the manifests of a scene: its nodes for pods, no others that wait, and some pods gone."""
    found = []
    for manifest in world.manifests:
        if manifest["kind"] == "Pod":
            name = f"a/{manifest['metadata']['name']}"
            now = scene.seen.pods.get(name)
            if now is None or name in without or (now.state == "pending" and now.group != key):
                continue
            if now.node != manifest["spec"].get("nodeName", ""):
                manifest = copy.deepcopy(manifest)  # noqa: PLW2901  the same pod, elsewhere
                manifest["spec"]["nodeName"] = now.node
                manifest["status"]["phase"] = "Running" if now.node else "Pending"
        elif manifest["kind"] == "PodGroup" and f"a/{manifest['metadata']['name']}" == key:
            manifest = {**manifest, "status": {"phase": "Inqueue"}}  # noqa: PLW2901
        found.append(manifest)
    return found


def _desk(text, manifests):
    desk = Desk(text, queues=("root",))
    return desk.feed(*manifests)


def with_binds(seen, binds):
    """Give the facts after some pods were bound."""
    pods = dict(seen.pods)
    for key, node in binds.items():
        pods[key] = facts.Pod(**{**vars(pods[key]), "node": node, "state": "on"})
    return Supposed(seen, pods)
