"""People who know nothing of Volcano: they run single pods, Jobs of Kubernetes and its own gangs."""

from __future__ import annotations

from pumice.api import kinds
from tests.storm import device_objects, objects

JOBS = f"/apis/{kinds.BATCH_JOB.api_version}/namespaces/{objects.NAMESPACE}/jobs"
SECONDS = (3, 10, 30)  # that pods run


def asked(rng, claims=None):
    """Draw what a pod asks for; now and then a device, by a claim of its own, or what a kubelet or a class offers by a name."""
    if claims is None:
        claims = [{"resourceClaimTemplateName": rng.choice(tuple(device_objects.WANTED))}] if rng.random() < 0.3 else ()
    gpus, devices = (rng.choice((1, 2)) if rng.random() < share else 0 for share in (0.15, 0.1))
    return objects.pod_spec(rng.choice((1, 1, 2, 3)), rng.choice((0, 0, 1, 2)), claims, gpus=gpus, devices=devices)


class PlainPeople:
    """Act through a client; `names` counts what they have made."""

    def __init__(self):
        self.jobs = []
        self._made = 0

    def acts(self):
        """Give what they do, and how often each is done."""
        return {self.run_pod: 7, self.run_job: 6, self.run_gang: 4, self.delete_job: 2}

    async def run_pod(self, client, rng):
        await client.create(kinds.POD, objects.pod(self._name("p"), rng.choice(SECONDS), asked(rng)))

    async def run_job(self, client, rng):
        """Run a Job; one that is indexed and whose pods all run at once is a gang."""
        count, indexed = rng.randint(1, 4), rng.random() < 0.5
        at_once = count if indexed and rng.random() < 0.7 else rng.randint(1, count)
        self.jobs.append(self._name("b"))
        made = objects.batch_job(self.jobs[-1], count, at_once, rng.choice(SECONDS), asked(rng), indexed=indexed)
        await client.create(kinds.BATCH_JOB, made)

    async def run_gang(self, client, rng):
        """Run a gang of Kubernetes' own, the group before its pods or after them."""
        name, count, spec = self._name("g"), rng.randint(1, 4), asked(rng)
        group = objects.native_group(name, rng.choice((count, count, max(1, count - 1))))
        pods = [
            objects.pod(f"{name}-{number}", rng.choice(SECONDS), {**spec, "schedulingGroup": {"podGroupName": name}})
            for number in range(count)
        ]
        for each in rng.choice(((group, *pods), (*pods, group))):
            await client.create(kinds.NATIVE_POD_GROUP if each is group else kinds.POD, each)

    async def delete_job(self, client, rng):
        """Take a Job away, and perhaps make one of its name at once."""
        if not self.jobs:
            return
        name, policy = rng.choice(self.jobs), rng.choice(("Background", "Foreground"))
        await client.request("DELETE", f"{JOBS}/{name}", query={"propagationPolicy": policy})
        if rng.random() < 0.5:
            await client.create(kinds.BATCH_JOB, objects.batch_job(name, 2, 2, rng.choice(SECONDS), asked(rng)))

    def _name(self, letter):
        self._made += 1
        return f"{letter}{self._made}"
