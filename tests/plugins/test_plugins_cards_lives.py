"""Cards through lives of schedulers: what is decided in runs is what would be decided pod by pod, and who starts anew knows every card that who never stopped knows."""

import copy
import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, played, pod, priority_class
from drawing import drawn
from pumice.cache.effects import Bind
from pumice.plugins.deviceshare.plugin import DeviceShare
from pumice.plugins.fragmentation.plugin import Fragmentation

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
REGISTER, ILL = "volcano.sh/node-vgpu-register", "volcano.sh/gpu-unhealthy-ids"
VIRTUAL = ("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores")
MODE = "mode of the cards, no argument"
FRAGMENTS = "with the plugin that says which card, no argument"
MILLI, COUNT = "pumice.dev/gpu-milli", "pumice.dev/gpu-count"
CHOICES = [
    {"GPUSharingEnable": True},
    {"GPUNumberEnable": True},
    {"VGPUEnable": True},
    {"VGPUEnable": True, "SchedulePolicy": "binpack", "ScheduleWeight": 3},
    {"VGPUEnable": True, "SchedulePolicy": "spread", "ScheduleWeight": 30},
    {"VGPUEnable": True, "GPUExclusiveRules": [{"team": "a"}]},
    {"VGPUEnable": True, "SchedulePolicy": "binpack", "ScheduleWeight": 3, MODE: "mig"},
    {"GPUSharingEnable": True, FRAGMENTS: "after"},
    {"GPUNumberEnable": True, FRAGMENTS: "before"},
    {"VGPUEnable": True, FRAGMENTS: "after"},
    {"VGPUEnable": True, FRAGMENTS: "before", MODE: "mig"},
    {FRAGMENTS: "alone"},
]
GEOMETRIES = {
    "apiVersion": "pumice.dev/v1alpha1",
    "kind": "CardGeometries",
    "metadata": {"name": "cluster", "uid": "geometries"},
    "text": """
nvidia:
  knownMigGeometries:
  - models: [A100]
    allowedGeometries:
    - {group: g1, geometries: [{memory: 250, count: 4}]}
    - {group: g2, geometries: [{memory: 500, count: 1}, {memory: 250, count: 1}]}
""",
}
NUMA = "volcano.sh/numa-topology-policy"


def text(arguments, actions="enqueue, allocate, preempt, backfill"):
    given = {key: value for key, value in arguments.items() if key not in (MODE, FRAGMENTS)}
    told = "".join(f"      deviceshare.{key}: {json.dumps(value)}\n" for key, value in given.items())
    cards = [f"  - name: deviceshare\n    arguments:\n{told}"] if given else []
    rated = ["  - name: fragmentation\n    arguments: {fragmentation.weight: 5}\n"] if FRAGMENTS in arguments else []
    order = cards + rated if arguments.get(FRAGMENTS) == "after" else rated + cards
    return (
        f'actions: "{actions}"\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}]\n'
        f"- plugins:\n  - name: predicates\n  - name: nodeorder\n{''.join(order)}"
    )


def card_node(rng, index, arguments, ill=()):
    """A node with two or three cards, some of which are not well."""
    count = 2 + index % 2
    made = node(f"n{index}", cpu=str(rng.choice([6, 8])), memory="64Gi")
    if arguments.get("VGPUEnable"):
        health = ["false" if card in ill else "true" for card in range(count)]
        listed = (
            f"G{index}{card},3,1000,A100,{health[card]},{arguments.get(MODE, 'hami-core')}" for card in range(count)
        )
        made["metadata"]["annotations"] = {REGISTER: ":".join(listed)}
        made["status"]["allocatable"] |= dict.fromkeys(VIRTUAL, "9000")
    elif arguments.get(FRAGMENTS) == "alone":
        made["metadata"]["annotations"] = {"pumice.dev/gpu-unhealthy-ids": ",".join(map(str, ill))}
        made["status"]["allocatable"] |= {MILLI: str(1000 * count)}
    else:
        made["metadata"]["annotations"] = {ILL: ",".join(map(str, ill))}
        made["status"]["allocatable"] |= {MEMORY: str(1000 * count), NUMBER: str(count)}
    return made


def asked(rng, arguments):
    """What a pod asks for of cards."""
    if arguments.get("VGPUEnable"):
        cores = rng.choice(["0", "30", "50", "100"])
        return dict(zip(VIRTUAL, (rng.choice("112"), str(rng.choice([200, 300, 500])), cores), strict=True))
    if arguments.get("GPUNumberEnable"):
        return {NUMBER: rng.choice("112")}
    if arguments.get(FRAGMENTS) == "alone":
        return rng.choice([{MILLI: str(rng.choice([200, 300, 500, 900]))}, {MILLI: "1000", COUNT: rng.choice("12")}])
    return {MEMORY: str(rng.choice([200, 300, 500, 900]))}


def job(rng, name, arguments, created):
    """A group and its equal pods."""
    size, limits = rng.randint(1, 6), asked(rng, arguments)
    labels = {"team": rng.choice("ab")} if rng.random() < 0.5 else {}
    notes = {"volcano.sh/vgpu-podgroup-policy": "spread"} if rng.random() < 0.2 else {}
    made = [group(name, rng.randint(1, size), created=created, priorityClassName=rng.choice(["low", "high"]))]
    for index in range(size):
        one = pod(f"{name}-w-{index}", name, cpu="1", created=created, labels=labels, annotations=notes)
        resources = one["spec"]["containers"][0]["resources"]
        resources["limits"] = dict(limits)
        resources["requests"] |= limits
        made.append(one)
    return made


def decided(configured, waves, **options):
    """Who was bound and evicted, with what, and what is said of each job at the end of each cycle."""
    sent, said = played(Desk(configured, **options), waves, told=lambda _: ())
    return [effect for effect in sent if effect.startswith(("Bind", "Evict"))], said


def classes():
    return [priority_class("low", 1), priority_class("high", 9), GEOMETRIES]


@settings(max_examples=drawn(40), deadline=None)
@given(seed=st.integers(0, 1 << 32), arguments=st.sampled_from(CHOICES))
def test_runs_of_equal_pods_get_what_each_would_get_alone(seed, arguments):
    def waves():
        rng = random.Random(seed)  # noqa: S311  drawn, not secret
        first = [card_node(rng, index, arguments, rng.sample(range(2), rng.choice([0, 0, 1]))) for index in range(3)]
        yield [*classes(), *first, *job(rng, "j0", arguments, 0)]
        for number in range(1, 5):
            yield job(rng, f"j{number}", arguments, number)

    assert decided(text(arguments), waves()) == decided(text(arguments), waves(), plain=True)


class Life:
    """An API server's objects, one scheduler that follows them, and what of its binds has not arrived yet."""

    def __init__(self, rng, arguments):
        self.rng, self.arguments = rng, arguments
        self.objects = {}
        self.under_way = []
        self.text = text(arguments, "enqueue, allocate, backfill")
        self.desk = Desk(self.text)
        self.tell(*classes(), *(card_node(rng, index, arguments) for index in range(3)))

    def tell(self, *manifests, event="ADDED"):
        for made in manifests:
            key = made["kind"], made["metadata"]["name"]
            if event == "DELETED":
                self.objects.pop(key, None)
            else:
                self.objects[key] = made
            self.desk.feed(copy.deepcopy(made), event=event)

    def pods(self):
        return [made for (kind, _), made in sorted(self.objects.items()) if kind == "Pod"]

    def anew(self):
        """A scheduler that starts now."""
        desk = Desk(self.text)
        desk.now = self.desk.now
        return desk.feed(*copy.deepcopy(list(self.objects.values())))

    def step(self, number):
        rng = self.rng
        what = rng.choice(["job", "job", "end", "go", "ill", "refuse", "restart", "cycle"])
        if what == "job":
            self.tell(*job(rng, f"j{number}", self.arguments, number))
        elif what in ("end", "go") and (placed := [each for each in self.pods() if each["spec"]["nodeName"]]):
            made = copy.deepcopy(rng.choice(placed))
            if what == "end":
                self.tell(made, event="DELETED")
            else:
                made["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
                self.tell(made, event="MODIFIED")
        elif what == "ill":
            index = rng.randrange(3)
            made = card_node(random.Random(index), index, self.arguments, rng.sample(range(2), rng.choice([0, 1])))  # noqa: S311  drawn, not secret
            self.tell(made, event="MODIFIED")
        elif what == "refuse" and self.under_way:
            self.desk.settle(self.under_way.pop(), "refused")
        elif what == "restart":
            self.under_way = []
            self.desk = self.anew()
        self.cycle()
        if rng.random() < 0.7:
            self.arrive()

    def cycle(self):
        self.desk.cycle()
        self.under_way += [effect for effect in self.desk.world.effects if isinstance(effect, Bind)]
        self.desk.world.effects.clear()

    def arrive(self):
        for bind in self.under_way:
            made = copy.deepcopy(self.objects.get(("Pod", bind.name)))
            if made is not None:
                made["spec"]["nodeName"], made["status"]["phase"] = bind.node, "Running"
                made["metadata"]["annotations"] |= bind.annotations
                self.tell(made, event="MODIFIED")
                self.desk.settle(bind)
        self.under_way = []


def life_is_by_milli(desk):
    return MILLI in desk.cluster.vocabulary.columns


def known_cards(desk):
    """What the plugin of a scheduler knows of each node at the start of a cycle: cards, what is held now, and what will be."""
    desk.session().rollback()  # read the geometries, and hold nothing
    cluster = desk.cluster
    plugins = (plugin for tier in desk.scheduler.engine.plugins for plugin in tier)
    wanted = Fragmentation if life_is_by_milli(desk) else DeviceShare
    holdings = next(each for each in plugins if isinstance(each, wanted)).holdings
    holdings.update(cluster)
    return {record.name: holdings.known(record.row) for record in cluster.nodes.records}


@settings(max_examples=drawn(30), deadline=None)
@given(seed=st.integers(0, 1 << 32), arguments=st.sampled_from(CHOICES))
def test_who_starts_anew_knows_the_cards_that_who_never_stopped_knows(seed, arguments):
    life = Life(random.Random(seed), arguments)  # noqa: S311  drawn, not secret
    for number in range(14):
        life.step(number)
        if not life.under_way:
            assert known_cards(life.desk) == known_cards(life.anew())
            check_nothing_is_given_twice(life)


def check_nothing_is_given_twice(life):
    """Add up by hand what pods hold of each card, by their annotations alone."""
    held = {}
    for made in life.pods():
        notes = made["metadata"]["annotations"]
        where = made["spec"]["nodeName"]
        limits = made["spec"]["containers"][0]["resources"]["limits"]
        for key in ("volcano.sh/gpu-index", "pumice.dev/gpu-index"):
            for card in filter(None, notes.get(key, "").split(",")):
                memory, users = held.get((where, card), (0, 0))
                held[where, card] = memory + int(limits.get(MEMORY, limits.get(MILLI, 0))), users + 1
        for part in filter(None, notes.get("volcano.sh/vgpu-ids-new", "").split(":")):
            card, _, amount, _ = part.split(",")
            card, _, instance = card.partition("[")
            assert not instance or (where, card, instance) not in held
            if instance:
                held[where, card, instance] = 0, 1
            memory, users = held.get((where, card), (0, 0))
            held[where, card] = memory + int(amount), users + 1
    most = 1 if life.arguments.get("GPUNumberEnable") else 9
    assert all(memory <= 1000 and users <= most for memory, users in held.values()), held


# ---- NUMA cells


def numa_pod(name, cpu, policy, created):
    made = pod(name, name.split("-")[0], cpu=cpu, memory="1Gi", created=created, annotations={NUMA: policy})
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = dict(resources["requests"])
    return made


def numa_cells(name, cells, policy, free):
    """A Numatopology of so many cells of four CPUs."""
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name, "uid": f"t.{name}"},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": policy},
            "cpuDetail": {str(cpu): {"numa": cpu // 4, "socket": 0, "core": cpu} for cpu in range(cells * 4)},
            "numares": {"cpu": {"allocatable": ",".join(map(str, free))}},
        },
    }


@settings(max_examples=drawn(30), deadline=None)
@given(seed=st.integers(0, 1 << 32), weight=st.sampled_from([0, 1, 7]))
def test_runs_of_pods_get_the_cells_that_each_would_get_alone(seed, weight):
    configured = (
        'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n- plugins: [{name: predicates}, '
        f"{{name: nodeorder}}, {{name: numa-aware, arguments: {{weight: {weight}}}}}]\n"
    )

    def waves():
        rng = random.Random(seed)  # noqa: S311  drawn, not secret
        for index in range(4):
            cells, policy = rng.randint(1, 3), rng.choice(["best-effort", "restricted", "single-numa-node"])
            free = [cpu for cpu in range(cells * 4) if rng.random() < 0.8]
            yield [node(f"n{index}", cpu=str(cells * 4)), numa_cells(f"n{index}", cells, policy, free)]
        for number in range(4):
            size, cpu = rng.randint(1, 7), rng.choice("1235")
            policy = rng.choice(["best-effort", "restricted", "single-numa-node"])
            pods = [numa_pod(f"j{number}-w-{i}", cpu, policy, number) for i in range(size)]
            yield [group(f"j{number}", rng.randint(1, size), created=number), *pods]

    assert decided(configured, waves()) == decided(configured, waves(), plain=True)
