"""What must hold, judged by what the API server stored and what was sent to it, and by nothing that the programs under test say of themselves.

- A node never holds more than it offers by binds that are decided on what it offered within the last while.
- Whoever writes as a scheduler or as controllers holds the Lease of that office at the moment of sending, or nobody else has taken it.
- Of two installations for the same pods only one writes at a time.
- No pod of a Job exists twice: of a task never more than it has replicas are alive; a Job counts its retries one by one.
- Evictions say for whom, and come about (`evictions.py`); writes change something, and older releases read them (`economy.py`).
- When the weather has been fair for a while: every program runs, no gang is bound in part, nobody waits who fits, nobody is left whose owner is gone, and nothing is written any more.
"""

from __future__ import annotations

from pumice.api import kinds, quantity
from pumice.sim.identity import Key
from tests.storm import economy, evictions, scenarios

LEASES = {"sched": "volcano", "rival": "rival", "ctrl": "vc-controller-manager"}
RIVALS = ("sched", "rival")
LEASE = 15.0  # seconds
VIEW = 120.0  # seconds for which a scheduler may go by what it saw of a node
AFTERMATH = 5.0  # seconds for which what has happened to a pod is a reason to write
PUT_OFF = 70.0  # seconds for which why a pod or group waits may have to wait, if it was given six times before or nothing but its numbers has changed
_OVER = ("Succeeded", "Failed")


def milli(pod):
    """The cpu that a pod asks for, in thousandths."""
    asked = (each.get("resources", {}).get("requests", {}).get("cpu", "0") for each in pod["spec"]["containers"])
    return sum(quantity.milli(each) for each in asked)


def group_of(pod):
    """The name of the group that a pod belongs to."""
    annotations = pod["metadata"].get("annotations") or {}
    return annotations.get("scheduling.k8s.io/group-name") or annotations.get("scheduling.volcano.sh/group-name", "")


class Oracle:
    """Looks on, and takes down what is broken."""

    def __init__(self, world):
        self._world = world
        self.broken = []
        self.offers = {}  # by node: (since, milli), newest last
        self.writes = []  # (moment, process, method, path) of programs, Leases and events aside
        self._bound_pods = set()
        self._phases = {}
        self.diary = scenarios.Diary()
        self._retries = {}
        self._scheduled = []  # (moment, installation) of writes of schedulers, where another one has written since
        self.evictions = evictions.Evictions(world, self.complain)
        self.economy = economy.Economy(world, self.complain)
        self.stirred = []  # moments at which a kubelet has said something new of a pod, or a pod was gone

    def complain(self, rule, text):
        self._world.trace("BROKEN", rule, text)
        self.broken.append((rule, f"{self._world.loop.now:.3f}: {text}"))

    def forget(self):
        """Forget what no rule asks for any more once everything has been judged, where there is no end to what happens."""
        self.broken.clear()
        self.writes.clear()
        self.stirred.clear()
        self._scheduled.clear()
        self.diary.entries.clear()
        for kept in (self._bound_pods, self._retries, self._phases):
            kept.clear()
        for changes in self.offers.values():
            del changes[:-1]
        self.evictions.forget()
        self.economy.forget()

    # -- while it lasts ----------------------------------------------------------------------------------------

    def sent(self, process, data, fate):
        """Hear of a request at the moment it leaves."""
        head = data.split(b"\r\n", 1)[0].decode()
        method, path, _ = head.split(" ", 2)
        if fate:
            self._world.trace("fate", process, fate, method, path[:120])
        installation = process.split("-")[0]
        office = LEASES.get(installation)
        if process == "user":
            self.diary.sent(self._world.loop.now, data)
        if office is None or method == "GET" or "/leases" in path or path.endswith("/events") or "/events/" in path:
            return
        self.writes.append((self._world.loop.now, process, method, path))
        self.economy.sent(process, method, path, data)
        if installation in RIVALS:
            self._take_turns(installation, process, path)
            self.evictions.sent(process, method, path, data)
        lease = self._find(kinds.LEASE, "kube-system", office)
        holder = (lease or {}).get("spec", {}).get("holderIdentity") or ""
        if holder != process:
            self.complain("lease", f"{process} sends {method} {path[:100]} while {holder or 'nobody'} holds {office}")

    def _take_turns(self, installation, process, path):
        """See that nobody goes on writing to whom somebody else has succeeded, until a Lease could have run out."""
        now, turns = self._world.loop.now, self._scheduled
        if not turns or turns[-1][1] != installation:
            before = next((moment for moment, each in reversed(turns) if each == installation), None)
            if before is not None and now - before < LEASE:
                self.complain("rivals", f"{process} writes {path[:100]} after another installation has written")
            turns.append((now, installation))
        turns[-1] = (now, installation)

    def seen(self, key, event_type, manifest):
        """Hear of a change that was stored."""
        if key.kind is kinds.LEASE or key.kind is kinds.EVENT:
            return
        if event_type != "DELETED":
            self.economy.seen(key, manifest)
        if key.kind is kinds.JOB:
            self._counted(key, manifest)
        if key.kind is kinds.POD:
            phase = "" if event_type == "DELETED" else manifest.get("status", {}).get("phase", "")
            if phase != self._phases.get(key, "Pending"):
                self.stirred.append(self._world.loop.now)
            self._phases[key] = phase
        if key.kind is kinds.NODE:
            self._offered(key, event_type, manifest)
        elif key.kind is kinds.POD and event_type == "MODIFIED":
            self._bound(manifest)
        elif key.kind is kinds.POD and event_type == "ADDED":
            self._created(manifest)

    def _counted(self, key, manifest):
        retries, uid = manifest.get("status", {}).get("retryCount", 0), manifest["metadata"]["uid"]
        if retries > self._retries.get(uid, 0) + 1:
            self.complain(
                "retries", f"{key.namespace}/{key.name} counts {retries} retries after {self._retries.get(uid, 0)}"
            )
        self._retries[uid] = retries

    def _offered(self, key, event_type, manifest):
        offered = 0
        if event_type != "DELETED":
            offered = quantity.milli(manifest["status"]["allocatable"]["cpu"])
        self.offers.setdefault(key.name, []).append((self._world.loop.now, offered))

    def _most_offered(self, node):
        """What a node offered at most within the time that a view may be old."""
        since = self._world.loop.now - VIEW
        changes = self.offers.get(node, [])
        late = [offered for moment, offered in changes if moment >= since]
        before = [offered for moment, offered in changes if moment < since]
        return max(late + before[-1:], default=0)

    def _bound(self, pod):
        node = pod["spec"].get("nodeName")
        uid = pod["metadata"]["uid"]
        if not node or uid in self._bound_pods:
            return
        self._bound_pods.add(uid)
        self.evictions.bound(pod, group_of(pod))
        held = sum(milli(each) for each in self.alive() if each["spec"].get("nodeName") == node)
        most = self._most_offered(node)
        if held > most:
            self.complain("room", f"{pod['metadata']['name']} is bound to {node}, which holds {held} of {most} milli")

    def _created(self, pod):
        labels = pod["metadata"].get("labels") or {}
        job, task = labels.get("volcano.sh/job-name"), labels.get("volcano.sh/task-spec")
        if not job:
            return
        of_task = [
            each["metadata"]["name"]
            for each in self.alive()
            if (each["metadata"].get("labels") or {}).get("volcano.sh/job-name") == job
            and each["metadata"]["labels"].get("volcano.sh/task-spec") == task
            and each["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and not each["metadata"].get("deletionTimestamp")
        ]
        made = self._find(kinds.JOB, pod["metadata"]["namespace"], job)
        replicas = next(
            (each.get("replicas", 1) for each in (made or {}).get("spec", {}).get("tasks", ()) if each["name"] == task),
            None,
        )
        owner = (pod["metadata"].get("ownerReferences") or [{}])[0].get("uid")
        if made is not None and owner == made["metadata"]["uid"] and replicas is not None and len(of_task) > replicas:
            self.complain(
                "twice", f"task {task} of {job} has {replicas} replicas and {len(of_task)} pods: {', '.join(of_task)}"
            )

    # -- in the end --------------------------------------------------------------------------------------------

    def judge(self, quiet_since):
        """Look at everything after a while of fair weather."""
        world = self._world
        for program in world.programs:
            if not program.alive:
                self.complain("alive", f"{program.name} does not run: {program.ended[-1:]}")
        late = [each for each in self.writes if each[0] > quiet_since and not self._answers_to_something(each)]
        if late:
            moment, process, method, path = late[0]
            self.complain(
                "quiet",
                f"{len(late)} writes though nothing changes, the first at {moment:.3f}: {process} {method} {path[:120]}",
            )
        self._judge_gangs()
        self.judge_owners()
        self.evictions.judge()
        self.economy.judge()
        for failure in world.loop.failures:
            self.complain("loop", f"{failure.get('message')}: {failure.get('exception')!r}")
        for program in world.programs:
            for line in program.said().splitlines():
                if "broke down" in line or "Traceback" in line:
                    self.complain("breakdown", f"{program.name}: {line[:400]}")
                    break

    def has_just_seen_something(self):
        """Tell whether something happens to pods, so that programs may still be at work on it."""
        return bool(self.stirred) and self.stirred[-1] > self._world.loop.now - AFTERMATH

    def _answers_to_something(self, write):
        """Tell whether something has happened shortly before."""
        moment, _, method, path = write
        gives_reason = method == "PATCH" and ("/podgroups/" in path or ("/pods/" in path and path.endswith("/status")))
        patience = AFTERMATH + (PUT_OFF if gives_reason else 0)
        return any(moment - patience <= each <= moment for each in self.stirred)

    def _judge_gangs(self):
        groups = {}
        for pod in self.alive():
            if name := group_of(pod):
                groups.setdefault((pod["metadata"]["namespace"], name), []).append(pod)
        free = self._free()
        for (namespace, name), pods in groups.items():
            group = self._find(kinds.POD_GROUP, namespace, name)
            if group is None:
                if not all(pod["spec"].get("nodeName") for pod in pods):
                    self.complain("group", f"{len(pods)} pods of {namespace}/{name} are there, and no such group")
                continue
            least = group["spec"].get("minMember", 1)
            bound = [pod for pod in pods if pod["spec"].get("nodeName")]
            waiting = [
                pod for pod in pods if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
            ]
            done = self._done(namespace, name)
            if 0 < len(bound) < least and len(bound) + done < least and waiting:
                self.complain("part", f"{namespace}/{name}: {len(bound)} of {least} are bound, {len(waiting)} wait")
            if waiting and len(pods) + done >= least and _fit(waiting, free):
                sizes = sorted(milli(pod) for pod in waiting)
                self.complain(
                    "fits",
                    f"{namespace}/{name}: {len(waiting)} of {sizes} milli wait though {sorted(free.values())} are free",
                )

    def judge_owners(self):
        for kind in (kinds.POD, kinds.POD_GROUP):
            for made in self._world.store.scan(kind):
                metadata = made["metadata"]
                for owner in metadata.get("ownerReferences") or ():
                    found = (
                        self._find(kinds.JOB, metadata["namespace"], owner["name"]) if owner["kind"] == "Job" else None
                    )
                    if owner["kind"] == "Job" and (found or {}).get("metadata", {}).get("uid") != owner["uid"]:
                        self.complain("orphan", f"{kind.name} {metadata['name']} is left of Job {owner['name']}")

    def _done(self, namespace, name):
        found = 0
        for pod in self._world.store.scan(kinds.POD):
            if (
                group_of(pod) == name
                and pod["metadata"]["namespace"] == namespace
                and pod.get("status", {}).get("phase") == "Succeeded"
            ):
                found += 1
        return found

    def _free(self):
        free = {}
        for node in self._world.store.scan(kinds.NODE):
            ready = any(
                each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ())
            )
            if ready and not node.get("spec", {}).get("unschedulable") and not node.get("spec", {}).get("taints"):
                free[node["metadata"]["name"]] = quantity.milli(node["status"]["allocatable"]["cpu"])
        for pod in self.alive():
            node = pod["spec"].get("nodeName")
            if node in free:
                free[node] -= milli(pod)
        return free

    def alive(self):
        return [pod for pod in self._world.store.scan(kinds.POD) if pod.get("status", {}).get("phase") not in _OVER]

    def _find(self, kind, namespace, name):
        return self._world.store.find(Key(kind, namespace, name))


def _fit(pods, free):
    """Tell whether pods fit, the largest first, each on the node with the least room that does."""
    room = dict(free)
    for size in sorted((milli(pod) for pod in pods), reverse=True):
        best = min((each for each in room if room[each] >= size), key=lambda each: (room[each], each), default=None)
        if best is None:
            return False
        room[best] -= size
    return True
