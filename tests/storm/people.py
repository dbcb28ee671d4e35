"""People who create, change and delete things while everything goes wrong."""

from __future__ import annotations

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.calls.client import Client
from pumice.local_cluster import node_health
from pumice.manifests import resources as definitions
from pumice.sim.identity import Key
from tests.storm import extended, network, objects, world
from tests.storm import loop as loops
from tests.storm.device_people import DevicePeople
from tests.storm.plain_people import SECONDS, PlainPeople, asked

JOBS = f"/apis/{kinds.JOB.api_version}/namespaces/{objects.NAMESPACE}/jobs"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class People:
    """Act at moments that the seed draws; an act that `happens` denies does not take place."""

    def __init__(self, seed, made, happens):
        self._seed = seed
        self._world = made
        self._happens = happens
        self.jobs = []
        self.nodes = []
        self._reported = {}  # by node: what its kubelet has reported last, by name
        self.devices = DevicePeople(self._wait, self._there)
        self._plain = PlainPeople()

    async def live(self, since, until, times):
        made, loop = self._world, self._world.loop
        context = loops.context_of("user")
        way = lambda largest: network.Way(loop, made.host, "user", context, largest)  # noqa: E731
        async with Client(made.connection(), rng=loops.chance(self._seed, "user"), way=way) as client:
            draw = loops.chance(self._seed, "people")
            moments = sorted(draw.uniform(since, until) for _ in range(draw.randint(6 * times, 20 * times)))
            for number, moment in enumerate(moments):
                await world.until(loop, moment)
                if not self._happens(f"act {number}"):
                    continue
                try:
                    await self._act(client, loops.chance(self._seed, "act", number))
                except errors.KubeError as error:
                    made.trace("user", type(error).__name__, str(error)[:100])
            await self._put_right(client)

    async def _act(self, client, rng):
        acts = {
            self._submit: 12,
            self._delete: 4,
            self._make_again: 4,
            self._delete_pod: 6,
            self._replace_node: 5,
            self._flap: 3,
            self._cordon: 2,
            self._rescale: 2,
            self._configure: 5,
            self._redefine: 2,
            self._define_otherwise: 1,
            self._report_wrongly: 2,
            self._report_amounts: 5,
            **self._plain.acts(),
            **self.devices.acts(),
        }
        act = rng.choices(list(acts), weights=list(acts.values()))[0] if self.jobs else self._submit
        self._world.trace("act", act.__name__)
        if act in (
            self._replace_node,
            self._flap,
            self._configure,
            self._redefine,
            self._define_otherwise,
            self._report_wrongly,
            self._report_amounts,
            self.devices.flap_devices,
            self.devices.taint_devices,
            self.devices.claim_again,
            self.devices.redefine_devices,
        ):
            self._world.weather.count(act.__name__.strip("_").replace("_", " "))
        await act(client, rng)

    async def _submit(self, client, rng):
        name = f"j{len(self.jobs)}"
        self.jobs.append(name)
        await client.create(kinds.JOB, self._job(name, rng))

    async def _delete(self, client, rng):
        await client.request("DELETE", f"{JOBS}/{rng.choice(self.jobs)}")

    async def _make_again(self, client, rng):
        name = rng.choice(self.jobs)
        query = {"propagationPolicy": rng.choice(("Background", "Foreground"))}
        await client.request("DELETE", f"{JOBS}/{name}", query=query)
        await client.create(kinds.JOB, self._job(name, rng))

    async def _delete_pod(self, client, rng):
        pods = sorted(each["metadata"]["name"] for each in self._world.oracle.alive())
        if pods:
            await client.request("DELETE", f"/api/v1/namespaces/{objects.NAMESPACE}/pods/{rng.choice(pods)}")

    async def _replace_node(self, client, rng):
        """Take a node away, and bring one of that name back, perhaps of another size."""
        chosen, cpu = rng.choice(self.nodes), rng.choice((2, 4, 8, 8))
        await client.request("DELETE", f"/api/v1/nodes/{chosen}")
        await self._wait(rng.choice((0.0, 0.01, 1.0, 5.0)))
        made = objects.node(chosen, cpu, *objects.small_or_not(rng))
        gpus = made["status"]["allocatable"].get(extended.GPU)
        self._reported[chosen] = {extended.GPU: gpus, extended.DEVICE: None}
        await client.create(kinds.NODE, made)

    async def _report_amounts(self, client, rng):
        """Let a kubelet report as much as a plugin knows of, which loses sight of it and finds it again."""
        chosen, name = rng.choice(self.nodes), rng.choice((extended.GPU, extended.GPU, extended.DEVICE))
        for _ in range(rng.randint(1, 3)):
            self._reported.setdefault(chosen, {})[name] = rng.choice((None, "0", "1", "2", "4"))
            await self._report(client, chosen)
            await self._wait(rng.choice((0.0, 0.5, 5.0)))

    async def _report(self, client, node):
        amounts = self._reported[node]
        body = {"status": {"allocatable": amounts, "capacity": amounts}}
        await client.patch(kinds.NODE, "", node, body, subresource="status")

    async def _flap(self, client, rng):
        chosen = rng.choice(self.nodes)
        for state in (rng.choice(node_health.STATES), None) * rng.randint(1, 3):
            await client.patch(kinds.NODE, "", chosen, {"metadata": {"annotations": {node_health.STATE: state}}})
            await self._wait(rng.uniform(0, 3))

    async def _cordon(self, client, rng):
        chosen = rng.choice(self.nodes)
        for value in (True, False):
            await client.patch(kinds.NODE, "", chosen, {"spec": {"unschedulable": value}})
            await self._wait(rng.uniform(0, 4))

    async def _rescale(self, client, rng):
        name = rng.choice(self.jobs)
        body = {"spec": {"tasks": self._job(name, rng)["spec"]["tasks"], "minAvailable": 1}}
        await client.patch(kinds.JOB, objects.NAMESPACE, name, body)

    async def _configure(self, client, rng):
        """Write a configuration, good or bad, or take it away for a while."""
        text = rng.choice(objects.GOOD if rng.random() < 0.6 else objects.BAD)
        await self._write_configuration(client, text)

    async def _write_configuration(self, client, text):
        body = {"data": objects.configuration(text)["data"]}
        await client.patch(kinds.CONFIG_MAP, objects.HOME, objects.CONFIGURATION, body)

    async def _redefine(self, client, rng):
        """Take a kind away with all its objects, and define it again."""
        resource = rng.choice(definitions.CURRENT)
        definition = definitions.definition(resource)
        await client.request("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
        await self._wait(rng.choice((0.5, 2.0, 8.0)))
        await client.request("POST", DEFINITIONS, body=definition)

    async def _define_otherwise(self, client, rng):
        """Change the definition of a kind in a way that changes no object."""
        name = definitions.definition(rng.choice(definitions.CURRENT))["metadata"]["name"]
        body = {"spec": {"names": {"shortNames": [f"s{rng.randrange(100)}"]}}}
        await client.request("PATCH", f"{DEFINITIONS}/{name}", body=body, content_type="application/merge-patch+json")

    async def _report_wrongly(self, client, rng):
        """Let a kubelet lose sight of a pod, and say again what it said before, twice; of a pod that has ended meanwhile it says nothing."""
        running = [each for each in self._world.oracle.alive() if each["status"].get("phase") == "Running"]
        if not running:
            return
        pod = rng.choice(sorted(running, key=lambda each: each["metadata"]["name"]))
        where = (objects.NAMESPACE, pod["metadata"]["name"])
        for phase in ("Unknown", "Running", "Running"):
            present = self._world.store.find(Key(kinds.POD, *where))
            if present is None or present["status"].get("phase") not in ("Running", "Unknown"):
                return
            meant = {each: present["metadata"][each] for each in ("uid", "resourceVersion")}
            body = {"metadata": meant, "status": {"phase": phase}}
            await client.patch(kinds.POD, *where, body, subresource="status")
            await self._wait(rng.uniform(0, 1))

    async def _put_right(self, client):
        """Leave a configuration, kinds and nodes with which everybody can work."""
        right = False
        while not right:
            try:
                await self._write_configuration(client, loops.chance(self._seed, "last").choice(objects.GOOD))
                for resource in definitions.CURRENT:
                    await self._there(client, DEFINITIONS, definitions.definition(resource))
                await self._there(client, f"/apis/{kinds.QUEUE.api_version}/queues", objects.queue("other", 2))
                for name in self.nodes:
                    await self._there(client, "/api/v1/nodes", objects.node(name, 4))
                    body = {
                        "metadata": {"annotations": {node_health.STATE: None}},
                        "spec": {"unschedulable": False},
                    }
                    await client.patch(kinds.NODE, "", name, body)
                    if name in self._reported:
                        await self._report(client, name)
                await self.devices.put_right(client)
                right = True
            except errors.KubeError as error:
                self._world.trace("user", type(error).__name__, str(error)[:100])
                await self._wait(1.0)

    async def _there(self, client, path, manifest):
        try:
            await client.request("POST", path, body=manifest)
        except errors.ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _wait(self, seconds):
        await world.until(self._world.loop, self._world.loop.now + seconds)

    def _job(self, name, rng):
        tasks = [(rng.randint(1, 4), asked(rng), rng.choice(SECONDS)) for _ in range(rng.randint(1, 2))]
        total = sum(each[0] for each in tasks)
        least = rng.choice((total, total, 1, max(1, total - 1)))
        queue, priority = rng.choice(("default", "other")), rng.choice(("", "low", "high"))
        return objects.job(name, tasks, least, queue=queue, priority=priority, kept=rng.choice((None, None, 0, 5, 20)))
