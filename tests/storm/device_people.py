"""Who reports devices, which come and go, and people with claims for them."""

from __future__ import annotations

from pumice.api import kinds
from tests.storm import device_objects, objects
from tests.storm.plain_people import SECONDS, asked

_RESOURCES = f"/apis/{kinds.RESOURCE_CLAIM.api_version}"
SLICES = f"{_RESOURCES}/resourceslices"
CLASSES = f"{_RESOURCES}/deviceclasses"
TEMPLATES = f"{_RESOURCES}/namespaces/{objects.NAMESPACE}/resourceclaimtemplates"
CLAIMS = f"{_RESOURCES}/namespaces/{objects.NAMESPACE}/resourceclaims"
RULES = f"/apis/{kinds.DEVICE_TAINT_RULE.api_version}/devicetaintrules"
WANTED = tuple(device_objects.WANTED)


class DevicePeople:
    """Act through a client; `wait` lets seconds pass, `there` makes what is not there."""

    def __init__(self, wait, there):
        self._wait = wait
        self._there = there
        self._claims = []
        self._pods = 0
        self._slices = {}  # by node: what its driver says in the end
        self._generations = {}
        self._rules = 0

    def offer(self, node, rng):
        """Draw what a driver says of the devices of a node."""
        generation = self._generations[node] = self._generations.get(node, 0) + 1
        sizes = [rng.choice((*device_objects.SIZES, None)) for _ in range(rng.randint(1, 4))]
        taints = [[device_objects.taint(rng)] if rng.random() < 0.2 else [] for _ in sizes]
        self._slices[node] = list(device_objects.slices(node, sizes, generation, rng.choice((1, 1, 2)), taints))
        return self._slices[node]

    def acts(self):
        """Give what they do, and how often each is done."""
        return {
            self.flap_devices: 4,
            self.claim: 5,
            self.claim_again: 3,
            self.redefine_devices: 1,
            self.taint_devices: 4,
        }

    async def flap_devices(self, client, rng):
        """Let what a driver says of a node go and come back, at once or slice by slice, with other devices."""
        if not self._slices:
            return
        node = rng.choice(sorted(self._slices))
        before, after = self._slices[node], self.offer(node, rng)
        names = [each["metadata"]["name"] for each in before]
        for name in names:
            await client.request("DELETE", f"{SLICES}/{name}")
            await self._wait(rng.choice((0.0, 0.5, 4.0)))
        for each in after:
            await client.request("POST", SLICES, body=each)
            await self._wait(rng.choice((0.0, 0.5, 4.0)))

    async def claim(self, client, rng):
        """Make a claim, and a pod or two that share it; the claim before them or after."""
        name = f"c{len(self._claims)}"
        self._claims.append(name)
        first = rng.random() < 0.5
        if first:
            await self._make(client, name, rng)
        for _ in range(rng.randint(1, 2)):
            self._pods += 1
            spec = asked(rng, [{"resourceClaimName": name}])
            await client.create(kinds.POD, objects.pod(f"d{self._pods}", rng.choice(SECONDS), spec))
            await self._wait(rng.choice((0.0, 1.0)))
        if not first:
            await self._make(client, name, rng)

    async def claim_again(self, client, rng):
        """Take a claim away, and make one of that name as soon as it is gone, which it is not before its pods are done; others may use it then."""
        if not self._claims:
            return
        name = rng.choice(self._claims)
        await client.request("DELETE", f"{CLAIMS}/{name}")
        await self._wait(rng.choice((0.0, 0.1, 5.0)))
        await self._make(client, name, rng)

    async def redefine_devices(self, client, rng):
        """Take a class or a template away for a while."""
        chosen = rng.choice((*device_objects.CLASSES, *WANTED))
        body, path = self._standing()[chosen]
        await client.request("DELETE", f"{path}/{body['metadata']['name']}")
        await self._wait(rng.choice((0.5, 2.0, 8.0)))
        await client.request("POST", path, body=body)

    async def taint_devices(self, client, rng):
        """Taint some devices by a rule, perhaps otherwise after a while, and mostly take it back."""
        name, pool = f"t{self._rules}", rng.choice(sorted(self._slices) or ["n0"])
        self._rules += 1
        some = {"driver": device_objects.DRIVER, "pool": pool, "device": rng.choice(("dev0", "dev1"))}
        selector = {part: value for part, value in some.items() if rng.random() < 0.5}
        made = device_objects.taint_rule(name, selector, device_objects.taint(rng))
        await client.request("POST", RULES, body=made)
        await self._wait(rng.choice((0.3, 2.0, 8.0)))
        if rng.random() < 0.4:
            await client.patch(kinds.DEVICE_TAINT_RULE, "", name, {"spec": {"taint": device_objects.taint(rng)}})
            await self._wait(rng.choice((0.3, 2.0, 8.0)))
        if rng.random() < 0.8:
            await client.request("DELETE", f"{RULES}/{name}")

    async def put_right(self, client):
        """Let everything be there that devices need."""
        for body, path in self._standing().values():
            await self._there(client, path, body)
        for wanted in self._slices.values():
            for each in wanted:
                await self._there(client, SLICES, each)

    async def _make(self, client, name, rng):
        await client.request("POST", CLAIMS, body=device_objects.claim(objects.NAMESPACE, name, rng.choice(WANTED)))

    def _standing(self):
        classes = {name: (device_objects.device_class(name), CLASSES) for name in device_objects.CLASSES}
        return classes | {name: (device_objects.template(objects.NAMESPACE, name), TEMPLATES) for name in WANTED}
