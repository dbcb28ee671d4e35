"""One life: a small cluster, people who come and go, and a minute in which everything goes wrong; then fair weather, and a look at what is left."""

from __future__ import annotations

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access.credentials import Fixed
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client
from tests.storm import loop as loops
from tests.storm import network, world

START = 4.0  # seconds until everybody leads or stands by
STORM = 46.0  # seconds of bad weather
FAIR = 75.0  # seconds of fair weather after it: longer than a lease lasts, and anybody waits before trying again
SILENT = 150.0  # seconds of it where watches stay silent: longer than that is borne
QUIET = 20.0  # seconds at the end in which nobody writes
NAMESPACE = "a"
JOBS = f"/apis/{kinds.JOB.api_version}/namespaces/{NAMESPACE}/jobs"


def node(name, cpu):
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod_spec(cpu):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }


def job(name, tasks, least):
    """A Job; `tasks` are (replicas, cpu, seconds) each."""
    made = []
    for number, (replicas, cpu, seconds) in enumerate(tasks):
        metadata = {"annotations": {"pumice.dev/run-time": f"{seconds}s"}}
        made.append(
            {"name": f"t{number}", "replicas": replicas, "template": {"metadata": metadata, "spec": pod_spec(cpu)}}
        )
    spec = {"minAvailable": least, "schedulerName": "volcano", "queue": "default", "maxRetry": 3, "tasks": made}
    spec["policies"] = [{"event": "PodEvicted", "action": "RestartJob"}]
    return {
        "apiVersion": kinds.JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def begun():
    """Make a world in which everybody runs, and leads or stands by: every life begins with one, which depends on no seed."""
    made = world.World("start")
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    made.start()
    made.run_until(START)
    return made


class Life:
    """Lives a seed. What is in `without` does not happen: acts of people and disasters by their names, `fates` for everything that happens to requests."""

    def __init__(self, seed, without=(), made=None):
        self.seed = seed
        self.without = frozenset(without)
        self.happened = []  # names of acts and disasters
        self.world = made or begun()
        self.world.go_on_with(seed)
        self._outside = loops.context_of("world")
        self.rng = loops.chance(seed, "life")
        self.rough = 0.0 if "fates" in self.without else self.rng.choice((0.05, 0.1, 0.2, 0.3))
        self._silent = self.rng.random() < 0.2  # watches that are silent stay so when the weather is fair again
        self._jobs = []
        self._nodes = []

    def live(self):
        """Let everything happen, and give what was broken."""
        made = self.world
        for number in range(self.rng.randint(2, 4)):
            self._nodes.append(f"n{number}")
            made.create(node(f"n{number}", self.rng.choice((4, 8))))
        made.loop.start("user", self._people())
        made.weather.rough = self.rough
        self._plan_disasters()
        made.run_until(START + STORM)
        self._clear_up()
        end = START + STORM + (SILENT if self._silent else FAIR)
        for moment in range(int(START + STORM), int(end), 2):
            made.run_until(moment)
            self._restart()
        made.run_until(end)
        made.oracle.judge(end - QUIET)
        return made.oracle.broken

    # -- people ------------------------------------------------------------------------------------------------

    async def _people(self):
        """Create, change and delete things, in the storm and before it."""
        made, loop = self.world, self.world.loop
        context = loops.context_of("user")
        where = Connection("http://storm", credentials=Fixed({"Authorization": f"Bearer {world.TOKEN}"}))
        way = lambda largest: network.Way(loop, made.host, "user", context, largest)  # noqa: E731
        async with Client(where, rng=loops.chance(self.seed, "user"), way=way) as client:
            draw = loops.chance(self.seed, "people")
            moments = sorted(draw.uniform(START, START + STORM) for _ in range(draw.randint(6, 20)))
            for number, moment in enumerate(moments):
                await world.until(loop, moment)
                if not self._happens(f"act {number}"):
                    continue
                try:
                    await self._act(client, loops.chance(self.seed, "act", number))
                except errors.KubeError as error:
                    made.trace("user", type(error).__name__, str(error)[:100])

    async def _act(self, client, rng):
        acts = {
            self._submit: 10,
            self._delete: 3,
            self._make_again: 2,
            self._delete_pod: 3,
            self._replace_node: 3,
            self._cordon: 1,
            self._rescale: 1,
        }
        act = rng.choices(list(acts), weights=list(acts.values()))[0] if self._jobs else self._submit
        await act(client, rng)

    async def _submit(self, client, rng):
        name = f"j{len(self._jobs)}"
        self._jobs.append(name)
        await client.create(kinds.JOB, self._job(name, rng))

    async def _delete(self, client, rng):
        await client.request("DELETE", f"{JOBS}/{rng.choice(self._jobs)}")

    async def _make_again(self, client, rng):
        name = rng.choice(self._jobs)
        query = {"propagationPolicy": rng.choice(("Background", "Foreground"))}
        await client.request("DELETE", f"{JOBS}/{name}", query=query)
        await client.create(kinds.JOB, self._job(name, rng))

    async def _delete_pod(self, client, rng):
        pods = sorted(each["metadata"]["name"] for each in self.world.oracle.alive())
        if pods:
            await client.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{rng.choice(pods)}")

    async def _replace_node(self, client, rng):
        """Take a node away, and bring one of that name back, perhaps of another size."""
        chosen, cpu = rng.choice(self._nodes), rng.choice((2, 4, 8, 8))
        await client.request("DELETE", f"/api/v1/nodes/{chosen}")
        await self._wait(rng.choice((0.0, 0.01, 1.0, 5.0)))
        await client.create(kinds.NODE, node(chosen, cpu))

    async def _cordon(self, client, rng):
        chosen = rng.choice(self._nodes)
        for value in (True, False):
            await client.patch(kinds.NODE, "", chosen, {"spec": {"unschedulable": value}})
            await self._wait(rng.uniform(0, 4))

    async def _rescale(self, client, rng):
        name = rng.choice(self._jobs)
        body = {"spec": {"tasks": self._job(name, rng)["spec"]["tasks"], "minAvailable": 1}}
        await client.patch(kinds.JOB, NAMESPACE, name, body)

    async def _wait(self, seconds):
        await world.until(self.world.loop, self.world.loop.now + seconds)

    def _job(self, name, rng):
        tasks = [(rng.randint(1, 4), rng.choice((1, 2, 3)), rng.choice((3, 10, 30))) for _ in range(rng.randint(1, 2))]
        total = sum(each[0] for each in tasks)
        return job(name, tasks, rng.choice((total, total, 1, max(1, total - 1))))

    # -- disasters ---------------------------------------------------------------------------------------------

    def _plan_disasters(self):
        loop, rng = self.world.loop, self.rng
        kinds_of = (self._kill, self._kill, self._pause, self._cut_off, self._outage, self._compact, self._shift_clock)
        for number in range(rng.randint(1, 8)):
            moment, disaster = rng.uniform(START, START + STORM), rng.choice(kinds_of)
            draw = loops.chance(self.seed, "disaster", number)
            if self._happens(f"disaster {number}"):
                loop.at(moment, disaster, draw, context=self._outside)
        for second in range(int(STORM / 2)):
            loop.at(START + 2 * second, self._restart, context=self._outside)

    def _happens(self, name):
        """Take note that something would happen, and tell whether it does."""
        self.happened.append(name)
        return name not in self.without

    def _program(self, rng):
        return rng.choice(self.world.programs)

    def _kill(self, rng):
        program = self._program(rng)
        if program.alive:
            self.world.weather.count("killed")
            program.kill()

    def _restart(self):
        for program in self.world.programs:
            if not program.alive and self.rng.random() < 0.5:  # whoever starts it again takes a while
                program.start()

    def _pause(self, rng):
        program = self._program(rng)
        if program.alive:
            run, loop = program.run, self.world.loop
            self.world.weather.count("paused")
            self.world.trace("pause", run)
            loop.pause(run)
            seconds = rng.choice((1, 5, 20, 45))
            loop.at(loop.now + seconds, loop.go_on, run, context=self._outside)

    def _cut_off(self, rng):
        program, loop = self._program(rng), self.world.loop
        if program.alive:
            run, away = program.run, self.world.weather.cut_off
            away[run] = rng.choice(("up", "down", "updown"))
            self.world.weather.count("cut off")
            self.world.trace("cut off", run, away[run])
            loop.at(loop.now + rng.choice((2, 8, 30)), away.pop, run, None, context=self._outside)

    def _outage(self, rng):
        self.world.weather.count("outage")
        self.world.trace("outage")
        self.world.weather.down = True
        self.world.host.cut_all()
        loop = self.world.loop
        loop.at(loop.now + rng.uniform(0.2, 12), self._listen, context=self._outside)

    def _listen(self):
        self.world.weather.down = False

    def _compact(self, _):
        self.world.weather.count("compacted")
        self.world.store.compact(self.world.store.resource_version)

    def _shift_clock(self, rng):
        self.world.weather.count("clock")
        self._program(rng).ahead += rng.choice((-3600, -5, 5, 3600)) * rng.random()

    def _clear_up(self):
        made = self.world
        made.weather.rough, made.weather.down = 0.0, False
        made.weather.cut_off.clear()
        if not self._silent:
            made.host.end_silence()
        for program in made.programs:
            if program.alive:
                made.loop.go_on(program.run)
