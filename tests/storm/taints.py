"""Taints of devices, by their drivers and by rules: what they are, and what they were of late."""

from __future__ import annotations

from pumice.api import kinds

HARD = ("NoSchedule", "NoExecute")
LEAVES = "NoExecute"


def borne(taint, keys):
    """Tell whether who tolerates some keys bears a taint."""
    return taint["effect"] not in HARD or taint["key"] in keys


def place(spec, device):
    """Name a device of a slice."""
    return spec["driver"], spec["pool"]["name"], device["name"]


def selects(selector, device):
    """Tell whether a rule is about a device."""
    asked = ((selector or {}).get(part) for part in ("driver", "pool", "device"))
    return all(each in (None, mine) for each, mine in zip(asked, device, strict=True))


def now(store, device):
    """Give the taints that a device has, by what is stored."""
    for found in store.scan(kinds.RESOURCE_SLICE):
        for each in found["spec"].get("devices", ()):
            if place(found["spec"], each) == device:
                yield from each.get("taints", ())
    for rule in store.scan(kinds.DEVICE_TAINT_RULE):
        if selects(rule["spec"].get("deviceSelector"), device):
            yield rule["spec"]["taint"]


class Taints:
    """Hears of slices and rules, and remembers how each was; of both nobody need have seen the newest at once."""

    def __init__(self, world):
        self._world = world
        self._devices = {}  # by device: (since, taints), newest last
        self._rules = {}  # by name: (since, selector and taint, or None), newest last

    def forget(self):
        """Forget how everything was before."""
        for kept in (self._devices, self._rules):
            for states in kept.values():
                del states[:-1]

    def seen(self, key, event_type, manifest):
        """Hear of a change that was stored; devices that are gone are nobody's choice."""
        spec, gone = manifest["spec"], event_type == "DELETED"
        if key.kind is kinds.DEVICE_TAINT_RULE:
            state = None if gone else (spec.get("deviceSelector"), spec["taint"])
            self._rules.setdefault(key.name, []).append((self._world.loop.now, state))
        elif not gone:
            for device in spec.get("devices", ()):
                states = self._devices.setdefault(place(spec, device), [])
                states.append((self._world.loop.now, device.get("taints", ())))

    def keeps_away(self, device, keys, since):
        """Give the taints that kept a device from who tolerates some keys, however old since a moment what was known of its driver and of each rule."""
        found = []
        states = _of_late(self._devices.get(device, ()), since)
        hard = [[taint for taint in taints if not borne(taint, keys)] for taints in states]
        if hard and all(hard):
            found += hard[-1]
        for changes in self._rules.values():
            known = _of_late(changes, since)
            existed = changes[0][0] < since
            if existed and all(each and selects(each[0], device) and not borne(each[1], keys) for each in known):
                found.append(known[-1][1])
        return found


def _of_late(changes, since):
    before = [state for moment, state in changes if moment < since]
    return before[-1:] + [state for moment, state in changes if moment >= since]
