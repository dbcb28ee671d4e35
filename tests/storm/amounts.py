"""What nodes offer and pods ask for, devices too, and whether pods fit; by name of the amount."""

from __future__ import annotations

import itertools

from pumice.api import kinds, quantity
from tests.storm import device_objects, taints
from tests.storm.extended import DEVICE, GPU

NAMES = CPU, MEMORY, PLACES, *EXTENDED = ("cpu", "memory", "pods", GPU, DEVICE)
_MATCHES = {"any": ("small", "large"), "large": ("large",)}  # by class: sizes of devices


def offered(node):
    """What a node offers."""
    return {name: _read(name, node["status"]["allocatable"]) for name in NAMES}


def asked(pod):
    """What a pod asks for, claims left out; of what has a name only what it names."""
    found = {CPU: 0, MEMORY: 0, PLACES: 1}
    for container in pod["spec"]["containers"]:
        requests = container.get("resources", {}).get("requests", {})
        for name in (CPU, MEMORY):
            found[name] += _read(name, requests)
        for name in EXTENDED:
            if name in requests:
                found[name] = found.get(name, 0) + _read(name, requests)
    return found


def _read(name, amounts):
    return quantity.milli(amounts.get(name, "0")) if name == CPU else quantity.whole(amounts.get(name, "0"))


def sums(several):
    """Add up amounts."""
    found = {}
    for each in several:
        for name, amount in each.items():
            found[name] = found.get(name, 0) + amount
    return found


def lacking(wanted, room):
    """Name what there is too little of."""
    return [name for name, amount in wanted.items() if amount > room.get(name, 0)]


def fit(pods, free):
    """Tell whether pods surely fit, given which node each is tied to, "" for none, and what it asks for: the largest first, each on the node with the least room that does.

    Of pods that want devices of different classes nobody can tell: those of one may have been given what the others need.
    """
    if len({name for _, wanted in pods for name in wanted if name.startswith("class ") or name == DEVICE}) > 1:
        return False
    room = {name: dict(each) for name, each in free.items()}
    for tied, wanted in sorted(pods, key=lambda each: _size(each[1]), reverse=True):
        found = [name for name in room if tied in ("", name) and not lacking(wanted, room[name])]
        if not found:
            return False
        best = room[min(found, key=lambda name: (_size(room[name]), name))]
        for name, amount in wanted.items():
            best[name] -= amount
    return True


def _size(amounts):
    return tuple(amounts.get(name, 0) for name in NAMES)


class Devices:
    """What drivers offer and claims have, as it is stored."""

    def __init__(self, store):
        self._store = store
        self._given = {each for claim in store.scan(kinds.RESOURCE_CLAIM) for each in given(claim)}
        self._classes = {each["metadata"]["name"] for each in store.scan(kinds.DEVICE_CLASS)}
        self._pools = {}
        for each in store.scan(kinds.RESOURCE_SLICE):
            self._pools.setdefault(each["spec"]["nodeName"], []).append(each["spec"])

    def free(self, node):
        """How many devices of each class a node has that nobody was given, for who bears no taints and who bears some: none where its driver is changing what it says."""
        slices = self._pools.get(node, [])
        newest = max((each["pool"]["generation"] for each in slices), default=0)
        current = [each for each in slices if each["pool"]["generation"] == newest]
        if any(each["pool"]["resourceSliceCount"] != len(current) for each in current):
            return {}
        left = [
            (size(device), list(taints.now(self._store, taints.place(each, device))))
            for each in current
            for device in each.get("devices", ())
            if taints.place(each, device) not in self._given
        ]
        return {
            _key(name, borne): sum(
                each in _MATCHES[name] and all(taints.borne(taint, borne) for taint in tainted)
                for each, tainted in left
            )
            for name, borne in itertools.product(_MATCHES, ((), (device_objects.BUSY,)))
            if name in self._classes
        }


def _key(name, borne):
    return f"class {name}" + "".join(f", {each} or not" for each in borne)


def size(device):
    """The attribute by which devices of the storm differ."""
    return device["attributes"]["size"]["string"]


def matches(name, of_size):
    """Tell whether a device is of a class."""
    return of_size in _MATCHES[name]


def given(claim):
    """Name the devices that a claim has."""
    results = ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", ())
    return [(each["driver"], each["pool"], each["device"]) for each in results]


def _exactly(claim):
    return [each["exactly"] for each in claim["spec"]["devices"]["requests"]]


def requested(claim):
    """How many devices of which class a claim asks for, by the taints that it bears."""
    return sums({_key(each["deviceClassName"], tolerated(claim)): each.get("count", 1)} for each in _exactly(claim))


def classes(claim):
    """Name the classes that a claim asks for, as often as it does."""
    return [each["deviceClassName"] for each in _exactly(claim) for _ in range(each.get("count", 1))]


def tolerated(claim):
    """Name the keys of the taints that a claim bears."""
    return tuple(each["key"] for exactly in _exactly(claim) for each in exactly.get("tolerations", ()))
