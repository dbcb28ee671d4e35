"""Whether what `pumice explain` calls enough is enough: each change is made on a cluster of its own, with controllers and quotas, and the job starts or not.

`python -m tests.lives.changes --jobs 500` asks about that many waiting jobs. Nothing here looks at how the search judges: a job has started when as many of
its pods as its group's minMember, and more than before, have a node.
"""

from __future__ import annotations

import argparse
import collections
import copy
import multiprocessing
import random
import sys
import time
from dataclasses import dataclass

from pumice.api import duration, kinds
from pumice.cache.options import Options
from pumice.controllers.volcano import registry as controllers
from pumice.framework import configuration, registry
from pumice.scenario.stage import SimulatedStage
from pumice.sim import errors
from pumice.sim.clock import VirtualClock
from pumice.study import files, search
from pumice.study.rehearsal import Rehearsal
from pumice.study.relaxing import relaxation
from pumice.study.state import State, manifest
from tests.lives import scripts, worlds

KNOWN = registry.installed()
CYCLES = 100  # after which a job that has not started does not start
TIMES = {"cpu": 1000, "pods": 1}


# ---- worlds


def world(seed, policy=""):
    """The beginning of a life, where nobody ends by himself: groups whose pods come late are Jobs of Volcano, and some namespaces have a quota."""
    script = scripts.draw(seed, policy)
    pick = random.Random(-1 - seed)  # noqa: S311  a world, not a secret
    given = [made for made in copy.deepcopy(script.given) if made["metadata"]["name"] not in script.late]
    for made in given:
        made["metadata"].get("annotations", {}).pop(worlds.RUN_TIME, None)
    groups = {made["metadata"]["name"]: made for made in script.given if made["kind"] == "PodGroup"}
    given += [job(groups[name], pods) for name, pods in sorted(script.late.items()) if name in groups]
    text = script.policy.text
    if pick.random() < 0.2:
        text += "  - {name: resourcequota}\n" if pick.random() < 0.5 else ""
        hard = {"cpu": str(pick.randint(2, 12))} if pick.random() < 0.7 else {"pods": str(pick.randint(3, 12))}
        given.append(quota(hard))
    return text, given


def job(group, pods):
    """The Job of which a controller would make a group and its pods."""
    spec, tasks = group["spec"], []
    for pod in copy.deepcopy(pods):
        pod["spec"].pop("nodeName", None)
        if not tasks or tasks[-1]["template"]["spec"] != pod["spec"]:
            tasks.append({"name": f"t{len(tasks)}", "replicas": 0, "template": {"spec": pod["spec"]}})
        tasks[-1]["replicas"] += 1
    body = {
        "schedulerName": "volcano",
        "minAvailable": max(1, spec["minMember"]),
        "queue": spec["queue"],
        "tasks": tasks,
    }
    if "priorityClassName" in spec:
        body["priorityClassName"] = spec["priorityClassName"]
    metadata = {"name": group["metadata"]["name"], "namespace": worlds.SPACE}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": body}


def quota(hard):
    """A quota of the namespace that all jobs are in."""
    metadata = {"name": "most", "namespace": worlds.SPACE}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


# ---- a stage with controllers and quotas


class Quotas:
    """Counts what pods take of quotas, and refuses pods that controllers would make beyond them."""

    def __init__(self, stage, *, counts):
        self._cluster = stage.cluster
        self._counts = counts  # else what is used stays what is stated
        stage.cluster.check = self.check

    def check(self, made):
        """Refuse what a quota has no room for, and pods that do not state the cpu that one limits."""
        if made["kind"] != "Pod":
            return
        for found in self._cluster.store.scan(kinds.RESOURCE_QUOTA):
            hard, used = found["spec"]["hard"], self._used(found)
            for name, amount in amounts(made).items():
                if name in hard and (not amount or used[name] + amount > number(name, hard[name])):
                    raise errors.InvalidError(f"beyond the quota of {name}")

    def count(self):
        """Write down what is used."""
        for found in list(self._cluster.store.scan(kinds.RESOURCE_QUOTA)) if self._counts else ():
            used = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in self._used(found).items()}
            metadata = {key: found["metadata"][key] for key in ("name", "namespace")}
            status = {"hard": found["spec"]["hard"], "used": used}
            self._cluster.merge([{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": status}])

    def _used(self, found):
        used = dict.fromkeys(found["spec"]["hard"], 0)
        for pod in self._cluster.store.scan(kinds.POD):
            if pod["metadata"]["namespace"] == found["metadata"]["namespace"] and phase(pod) not in (
                "Succeeded",
                "Failed",
            ):
                for name, amount in amounts(pod).items():
                    if name in used:
                        used[name] += amount
        return used


def amounts(pod):
    """What a pod takes of a quota, cpu in thousandths."""
    asked = [each.get("resources", {}).get("requests", {}).get("cpu", "0") for each in pod["spec"]["containers"]]
    return {"pods": 1, "cpu": sum(number("cpu", text) for text in asked)}


def number(name, text):
    """Read an amount as the worlds write it."""
    text = str(text)
    return int(text[:-1]) if text.endswith("m") else int(float(text) * TIMES[name])


def phase(pod):
    """The phase of a pod."""
    return pod.get("status", {}).get("phase", "")


class Ground:
    """A simulated cluster with a scheduler, controllers and quotas."""

    def __init__(self, settings, given, now=None, *, counts=True):
        clock = VirtualClock(now) if now is not None else None
        self.stage = SimulatedStage(settings, Options(), KNOWN, clock, controllers=controllers.REGISTERED)
        self.stage.breakdowns = True
        self.quotas = Quotas(self.stage, counts=counts)
        self.stage.apply(given)
        self.stage.connect()
        self.stage.cluster.settle()
        self.quotas.count()

    def cycle(self):
        """Run a cycle, a second long."""
        self.stage.cycle(duration.SECOND)
        self.quotas.count()

    def placed(self, key):
        """Count the pods of a group that have a node and are not going."""
        return sum(
            1
            for pod in self.stage.cluster.store.scan(kinds.POD)
            if group_of(pod) == key
            and pod["spec"].get("nodeName")
            and "deletionTimestamp" not in pod["metadata"]
            and phase(pod) != "Failed"
        )

    def minimum(self, key):
        """The least that a group starts with, pods that ask for nothing and wait counting as if they had a node."""
        for found in self.stage.cluster.store.scan(kinds.POD_GROUP):
            if f"{found['metadata']['namespace']}/{found['metadata']['name']}" == key:
                return found["spec"].get("minMember", 1)
        return 1

    def idle_members(self, key):
        """Count waiting pods that ask for nothing: a gang is whole with them."""
        return sum(
            1
            for pod in self.stage.cluster.store.scan(kinds.POD)
            if group_of(pod) == key
            and not pod["spec"].get("nodeName")
            and not any(each.get("resources", {}).get("requests") for each in pod["spec"]["containers"])
        )

    def starts(self, key, before):
        """Run on, and tell whether a job starts."""
        for _ in range(CYCLES):
            placed = self.placed(key)
            if placed > before and placed + self.idle_members(key) >= self.minimum(key):
                return True
            self.cycle()
        return False

    def change(self, made, owner):
        """Make a change, as somebody would with kubectl."""
        for kind, before, found in relaxation.replaced(made.edits):
            metadata = (found or before).metadata
            if found is None:
                self.stage.delete(["/".join(filter(None, (kind.singular, metadata.namespace, metadata.name)))], None)
            else:
                self.stage.apply([manifest(kind, found)])
        if made.job is not None and owner is not None:
            self.stage.apply([made.job(owner)])
        self.quotas.count()
        self.stage.cluster.settle()


def group_of(pod):
    """The group that a pod names."""
    return f"{pod['metadata']['namespace']}/{pod['metadata'].get('annotations', {}).get(worlds.GROUP_NAME, '')}"


# ---- what is asked


@dataclass
class Finding:
    """What was said of one waiting job, and whether it is so."""

    seed: int
    job: str
    said: str  # nothing, smallest, none
    change: str = ""
    wrong: str = ""


def lived(seed, policy="", cycles=0):
    """The state of a world after some cycles."""
    text, given = world(seed, policy)
    settings = configuration.load(text, KNOWN.catalog(), "config")
    ground = Ground(settings, given)
    for _ in range(cycles or 1 + seed % 6):
        ground.cycle()
    cluster = ground.stage.cluster
    return State(
        source="a life",
        now=cluster.clock.now(),
        objects=files.stored(cluster),
        jobs=files.jobs_of(cluster.store.scan(kinds.JOB)),
        configuration=settings,
    )


def waiting(rehearsal):
    """The jobs that wait: none of them runs in part."""
    return [
        job.key
        for job in rehearsal.cluster.jobs.values()
        if job.group is not None
        and not job.bad
        and not job.tally.ready
        and (job.pending or not job.tasks)
        and job.group.status.phase not in ("Running", "Completed")
    ]


def findings(seed, policy="", most=99):
    """Ask about every waiting job of a world, and try what was said."""
    state = lived(seed, policy)
    rehearsal = Rehearsal(state.objects, state.configuration, Options(), state.now, KNOWN, jobs=state.jobs)
    pick = random.Random(seed)  # noqa: S311  as above
    for key in waiting(rehearsal)[:most]:
        found = search.find(rehearsal, search.Target(key), clock=lambda: 0.0)
        yield judged(state, seed, key, found, pick)


def judged(state, seed, key, found, pick):
    """Try what was said about one job."""
    owners = [
        each
        for each in state.jobs.values()
        if key == f"{each['metadata']['namespace']}/{each['metadata']['name']}-{each['metadata']['uid']}"
    ]
    owner = owners[0] if owners else None

    def starts(made):
        ground = Ground(state.configuration, state.manifests(), state.now)
        before = ground.placed(key)
        if made is not None:
            ground.change(made, owner)
        return ground.starts(key, before)

    wrong, said, change = "", "none", found.search.smallest
    if found.search.nothing_to_change:
        said, change = "nothing", found.search.nothing_to_change
        wrong = "" if starts(None) else "it does not start by itself"
    elif found.smallest is not None:
        said = "smallest"
        wrong = "" if starts(found.smallest) else f"not enough: {change}"
    less = [made for made, trial in found.trials if not trial.enough]
    if less and not wrong:
        made = pick.choice(less)
        wrong = f"enough after all: {made.said}" if starts(made) else ""
    return Finding(seed, key, said, change, wrong)


# ---- many


def main():
    """Ask about many jobs."""
    parser = argparse.ArgumentParser(prog="python -m tests.lives.changes")
    parser.add_argument("--jobs", type=int, default=500, help="waiting jobs to ask about")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--policy", default="", help="only policies whose name holds this text")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()
    started, said, sorts = time.perf_counter(), collections.Counter(), collections.Counter()
    wrong, seeds = [], ((seed, options.policy) for seed in range(options.first, options.first + 100 * options.jobs))
    with multiprocessing.Pool(options.processes) as pool:
        for found in pool.imap(_asked, seeds):
            for each in found:
                said[each.said] += 1
                sorts[each.change.split()[0] if each.said == "smallest" else each.said] += 1
                if each.wrong or each.said == "none":
                    print(f"seed {each.seed}: {each.job}: {each.wrong or 'no change found'}", file=sys.stderr)  # noqa: T201
                wrong += [each] if each.wrong else []
            if sum(said.values()) >= options.jobs:
                break
        pool.terminate()
    total = sum(said.values())
    took = time.perf_counter() - started
    print(f"{total} waiting jobs in {took:.0f} s: {dict(said)}; {len(wrong)} wrong; {dict(sorts)}")  # noqa: T201
    raise SystemExit(1 if wrong or said["none"] * 20 > total else 0)


def _asked(task):
    try:
        return list(findings(*task))
    except Exception as error:  # noqa: BLE001  a world that falls over is a finding like any other
        return [Finding(task[0], "", "none", wrong=f"fell over: {type(error).__name__}: {error}")]


if __name__ == "__main__":
    main()
