"""Random clusters: nodes, queues, what other schedulers hold, and jobs, as the manifests that a user would write."""

from __future__ import annotations

from dataclasses import dataclass, field

GPU = "nvidia.com/gpu"
SPACE = "a"
CLASSES = {"low": 10, "mid": 50, "high": 100}
CRITICAL = "system-cluster-critical"
GROUP_NAME = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
PREEMPTABLE = "volcano.sh/preemptable"
RUN_TIME = "pumice.dev/run-time"
VOLCANO = "scheduling.volcano.sh/v1beta1"


@dataclass
class World:
    """What there is before the first cycle, and what a job's controller would create later."""

    given: list = field(default_factory=list)
    late: dict = field(default_factory=dict)  # group -> pods that are created once it is let in


class Maker:
    """Makes the objects of one life from a source of choices."""

    def __init__(self, pick, policy, *, large=False):
        self.pick = pick
        self.policy = policy
        self.large = large
        self.device = pick.random() < 0.4
        self.scarce_memory = pick.random() < 0.25
        self.nodes = {}
        self.free = {}
        self.queues = []  # those that take jobs
        self.jobs = 0
        self.early = False  # whether jobs are still being made that hold what later ones want

    def make(self):
        """Make a whole world."""
        pick = self.pick
        nodes = [self.node() for _ in range(pick.randint(5, 9) if self.large else pick.randint(1, 5))]
        world = World()
        world.given += [
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
            for name, value in CLASSES.items()
        ]
        world.given += nodes
        world.given += self.make_queues()
        world.given += [pod for node in nodes if pick.random() < 0.15 for pod in [self.foreign(node)] if pod]
        for index in range(pick.randint(6, 14) if self.large else pick.randint(3, 8)):
            self.early = index < 3
            made, late = self.job(runs=pick.random() < (0.85 if self.early else 0.35))
            world.given += made
            world.late.update(late)
        return world

    # ---- nodes

    def node(self):
        pick, name = self.pick, f"n{len(self.nodes)}"
        amounts = {"cpu": pick.choice([1, 2, 2, 3, 4, 4, 6, 8]), "memory": 64, "pods": 110}
        if self.scarce_memory:
            amounts["memory"] = pick.choice([2, 4, 8])
        if self.device and pick.random() < 0.6:
            amounts[GPU] = pick.choice([1, 2, 4])
        if pick.random() < 0.12:
            amounts["pods"] = pick.choice([1, 2, 3])
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"zone": pick.choice("ab")}},
            "spec": {},
            "status": {"allocatable": written(amounts)},
        }
        if pick.random() < 0.08:
            manifest["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        self.nodes[name] = manifest
        self.free[name] = dict(amounts)
        return manifest

    def foreign(self, node):
        """A pod of another scheduler that holds room on a node."""
        pick, name = self.pick, node["metadata"]["name"]
        cpu = pick.randint(1, 3)
        if self.free[name]["cpu"] < cpu or self.free[name]["pods"] < 2:
            return None
        self._hold(name, {"cpu": cpu})
        spec = {"schedulerName": "else", "nodeName": name, "containers": [container({"cpu": cpu})]}
        return pod_manifest(f"foreign-{name}", "x", spec)

    # ---- queues

    def make_queues(self):
        pick, made = self.pick, []
        if self.policy.name.startswith("tree"):
            return self._tree()
        if self.policy.name.startswith("hdrf"):
            return self._branches()
        for index in range(pick.randint(1, 4)):
            self.queues.append(f"q{index}")
            made.append(queue_manifest(f"q{index}", self.queue_spec()))
        if pick.random() < 0.1:
            self.queues.append("default")
        return made

    def _tree(self):
        pick, made = self.pick, []
        for branch in "uvw"[: pick.randint(1, 3)]:
            made.append(queue_manifest(branch, {**self.queue_spec(scale=2), "parent": "root"}))
            leaves = pick.randint(0, 3)
            for index in range(leaves):
                self.queues.append(f"{branch}{index}")
                made.append(queue_manifest(f"{branch}{index}", {**self.queue_spec(), "parent": branch}))
            if not leaves:
                self.queues.append(branch)
        return made

    def _branches(self):
        pick, made = self.pick, []
        for index in range(pick.randint(2, 4)):
            branch, weight = pick.choice(["eng", "sci"]), pick.randint(1, 3)
            self.queues.append(f"q{index}")
            notes = {
                "volcano.sh/hierarchy": f"root/{branch}/q{index}",
                "volcano.sh/hierarchy-weights": f"1/{2 if branch == 'eng' else 1}/{weight}",
            }
            manifest = queue_manifest(f"q{index}", {"weight": weight})
            if pick.random() < 0.9:
                manifest["metadata"]["annotations"] = notes
            made.append(manifest)
        return made

    def queue_spec(self, scale=1):
        pick, spec = self.pick, {"weight": self.pick.randint(1, 3)}
        if pick.random() < 0.3:
            spec["capability"] = self._limit(3 * scale, 9 * scale)
        if pick.random() < 0.3:
            spec["guarantee"] = {"resource": self._limit(1, 3 * scale)}
        if pick.random() < 0.6:
            spec["deserved"] = self._limit(1, 6 * scale)
        if pick.random() < 0.12:
            spec["reclaimable"] = False
        if pick.random() < 0.08:
            spec["priority"] = pick.randint(1, 3)
        return spec

    def _limit(self, low, high):
        amounts = {"cpu": self.pick.randint(low, high)}
        if self.device and self.pick.random() < 0.4:
            amounts[GPU] = self.pick.randint(1, 3)
        if self.pick.random() < 0.05:
            amounts["cpu"] = 500
        return written(amounts)

    # ---- jobs

    def job(self, *, runs):
        """A group with its pods, perhaps running already; pods that are created only when it is let in are given apart."""
        pick = self.pick
        name = f"j{self.jobs}"
        self.jobs += 1
        size = pick.choice([1, 1, 2, 2, 3, 3, 4, 5])
        minimum = size if pick.random() < 0.5 else pick.randint(0, size)
        shapes = [self._request() for _ in range(1 if pick.random() < 0.6 else 2)]
        style = pick.choice(["{}-{}", "{}-task-{}", "{}-x-{}"])
        grade = pick.choice([None, "low", "low", "mid"] if self.early else [None, "low", "mid", "high", "high"])
        pods = [self._member(name, style.format(name, index), pick.choice(shapes), grade) for index in range(size)]
        spec = {
            "minMember": minimum,
            "queue": pick.choice(self.queues),
            **({"priorityClassName": grade} if grade else {}),
        }
        if size > 1 and pick.random() < 0.25:
            spec["minMember"] = max(minimum, self._roles(pods, spec))
        if pick.random() < 0.4:
            spec["minResources"] = written(total([request(pod) for pod in pods[: spec["minMember"]]]) or {"cpu": 1})
        placed = self._start(pods, spec) if runs else []
        group = group_manifest(name, spec, "Running" if placed else "")
        if pick.random() < 0.06:
            group["metadata"]["annotations"] = {PREEMPTABLE: pick.choice(["true", "false"])}
        budget = self._budget(name, pods, spec)
        if not placed and pick.random() < 0.15:
            return [group, *budget], {name: pods}
        return [group, *budget, *pods], {}

    def _request(self):
        pick = self.pick
        if pick.random() < 0.06:
            return {}
        amounts = {"cpu": pick.choice([1, 1, 2, 2, 3, 4])}
        if self.scarce_memory and pick.random() < 0.6:
            amounts["memory"] = pick.randint(1, 4)
        if self.device and pick.random() < 0.3:
            amounts[GPU] = pick.choice([1, 1, 2])
        return amounts

    def _member(self, group, name, amounts, grade):
        pick = self.pick
        spec = {
            "schedulerName": "volcano",
            "terminationGracePeriodSeconds": pick.choice([1, 2, 3]),
            "containers": [container(amounts)],
        }
        if grade and pick.random() < 0.8:
            spec["priorityClassName"] = grade
        if pick.random() < 0.02:
            spec["priorityClassName"] = CRITICAL
        if pick.random() < 0.1:
            spec["nodeSelector"] = {"zone": pick.choice("ab")}
        if pick.random() < 0.15:
            spec["tolerations"] = [{"operator": "Exists"}]
        notes = {GROUP_NAME: group}
        if pick.random() < 0.08:
            notes[PREEMPTABLE] = pick.choice(["true", "false", "false"])
        if pick.random() < 0.1:
            notes[RUN_TIME] = f"{pick.randint(2, 12)}s"
        made = pod_manifest(name, SPACE, spec, notes)
        made["metadata"]["labels"] = {"app": group}
        return made

    def _roles(self, pods, spec):
        cut = self.pick.randint(1, len(pods) - 1)
        for index, pod in enumerate(pods):
            pod["metadata"]["annotations"][ROLE] = "m" if index < cut else "w"
        least = {"m": self.pick.randint(0, cut), "w": self.pick.randint(0, len(pods) - cut)}
        spec["minTaskMember"] = least
        return sum(least.values()) if self.pick.random() < 0.9 else 0

    def _budget(self, name, pods, spec):
        if not self.policy.lists("pdb") or self.pick.random() < 0.6:
            return []
        selector = {"matchLabels": {"app": name}} if self.pick.random() < 0.9 else {}
        return [
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"{name}-budget", "namespace": SPACE},
                "spec": {"selector": selector},
                "status": {"disruptionsAllowed": self.pick.randint(0, max(0, len(pods) - spec["minMember"]) + 1)},
            }
        ]

    def _start(self, pods, spec):
        """Give pods nodes as far as they fit; a gang that does not reach its minimum does not run at all."""
        placed = []
        for pod in pods:
            name = self._place(pod)
            if name:
                pod["spec"]["nodeName"] = name
                placed.append(pod)
            elif self.pick.random() < 0.5:
                break
        roles = spec.get("minTaskMember", {})
        enough = len(placed) >= spec["minMember"] and all(
            sum(pod["metadata"]["annotations"].get(ROLE) == role for pod in placed) >= least
            for role, least in roles.items()
        )
        broken = self.pick.random() < 0.1  # a gang that lost members before the life begins
        if not enough and not broken:
            for pod in placed:
                self._hold(pod["spec"].pop("nodeName"), request(pod), -1)
            return []
        return placed

    def _place(self, pod):
        spec, amounts = pod["spec"], {**request(pod), "pods": 1}
        for name in self.pick.sample(sorted(self.free), len(self.free)):
            node, free = self.nodes[name], self.free[name]
            wanted = spec.get("nodeSelector", {}).get("zone", node["metadata"]["labels"]["zone"])
            barred = node["spec"].get("taints") and not spec.get("tolerations")
            fits = all(free.get(key, 0) >= value for key, value in amounts.items())
            if fits and not barred and wanted == node["metadata"]["labels"]["zone"]:
                self._hold(name, request(pod))
                return name
        return ""

    def _hold(self, name, amounts, sign=1):
        for key, value in {**amounts, "pods": 1}.items():
            self.free[name][key] = self.free[name].get(key, 0) - sign * value


# ---- manifests


def written(amounts):
    """Write amounts as quantities."""
    return {name: f"{value}Gi" if name == "memory" else str(value) for name, value in amounts.items()}


def container(amounts):
    """A container that requests amounts."""
    return {"name": "c", "image": "x", **({"resources": {"requests": written(amounts)}} if amounts else {})}


def request(pod):
    """Read back what a pod of ours requests, memory in Gi."""
    asked = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return {name: int(text.removesuffix("Gi")) for name, text in asked.items()}


def total(requests):
    """Add amounts up."""
    sums = {}
    for amounts in requests:
        for name, value in amounts.items():
            sums[name] = sums.get(name, 0) + value
    return sums


def pod_manifest(name, namespace, spec, notes=None):
    """Write a pod."""
    metadata = {"name": name, "namespace": namespace, **({"annotations": notes} if notes else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def group_manifest(name, spec, phase=""):
    """Write a pod group."""
    made = {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": name, "namespace": SPACE}, "spec": spec}
    return {**made, **({"status": {"phase": phase}} if phase else {})}


def queue_manifest(name, spec):
    """Write a queue."""
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
