"""What must hold, judged by what the API server stored and what was sent to it, and by nothing that the programs under test say of themselves.

- A node never holds more than it offers itself, of anything that a bind asks for, by binds that are decided on what it offered within the last while.
- Whoever writes as a scheduler or as controllers holds the Lease of that office at the moment of sending, or nobody else has taken it.
- Of two installations for the same pods only one writes at a time.
- No pod of a Job exists twice: of a task never more than it has replicas are alive (`workloads.py`); a Job counts its retries one by one.
- Nobody has a device of another or keeps one for ever, no pod is bound before it has what it claims, and nobody is given a device whose taint it does not tolerate, or stays on one that it has to leave (`claims.py`).
- A Job is gone when it has said that it may go (`workloads.py`).
- Evictions say for whom, and come about (`evictions.py`); writes change something, and older releases read them (`economy.py`).
- When the weather has been fair for a while: every program runs, no gang is bound in part, nobody waits who fits, nobody is left whose owner is gone, and nothing is written any more.
"""

from __future__ import annotations

from pumice.api import kinds
from pumice.sim.identity import Key
from tests.storm import amounts, claims, economy, evictions, scenarios, workloads

LEASES = {"sched": "volcano", "rival": "rival", "ctrl": "vc-controller-manager"}
RIVALS = ("sched", "rival")
LEASE = 15.0  # seconds
VIEW = 120.0  # seconds for which a scheduler may go by what it saw of a node
AFTERMATH = 5.0  # seconds for which what has happened to a pod is a reason to write
PUT_OFF = 70.0  # seconds for which why a pod or group waits may have to wait, if it was given six times before or nothing but its numbers has changed
OWNERS = (kinds.JOB, kinds.BATCH_JOB, kinds.POD, kinds.WORKLOAD)
_OVER = ("Succeeded", "Failed")


def group_of(pod):
    """Give the kind and the name of the group that a pod belongs to; no name if it stands for itself."""
    annotations = pod["metadata"].get("annotations") or {}
    name = annotations.get("scheduling.k8s.io/group-name") or annotations.get("scheduling.volcano.sh/group-name", "")
    native = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return (kinds.NATIVE_POD_GROUP, native) if native and not name else (kinds.POD_GROUP, name)


class Oracle:
    """Looks on, and takes down what is broken."""

    def __init__(self, world):
        self._world = world
        self.broken = []
        self.offers = {}  # by node: (since, amounts), newest last
        self.writes = []  # (moment, process, method, path) of programs, Leases and events aside
        self._bound_pods = set()
        self._phases = {}
        self.diary = scenarios.Diary()
        self._retries = {}
        self._scheduled = []  # (moment, installation) of writes of schedulers, where another one has written since
        self.evictions = evictions.Evictions(world, self.complain)
        self.economy = economy.Economy(world, self.complain)
        self.claims = claims.Claims(world, self.complain)
        self.workloads = workloads.Workloads(world, self.complain)
        self.silent = False  # whether watches stay silent when the weather is fair again
        self._lost = set()  # groups of which a pod was gone or failed
        self._holders = {}  # of Leases
        self.successions = []  # moments at which somebody else has got a Lease
        self.stirred = []  # moments at which a kubelet has said something new of a pod, or a pod was gone

    def complain(self, rule, text):
        self._world.trace("BROKEN", rule, text)
        self.broken.append((rule, f"{self._world.loop.now:.3f}: {text}"))

    def forget(self):
        """Forget what no rule asks for any more once everything has been judged, where there is no end to what happens."""
        self.broken.clear()
        self.writes.clear()
        self.stirred.clear()
        self.successions.clear()
        self._scheduled.clear()
        self.diary.entries.clear()
        self.claims.forget()
        for kept in (self._bound_pods, self._retries, self._phases, self._lost):
            kept.clear()
        for changes in self.offers.values():
            del changes[:-1]
        for part in (self.evictions, self.economy, self.workloads):
            part.forget()

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
        if not self.workloads.may_go(method, path):
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
        if key.kind is kinds.LEASE:
            self._office(key.name, manifest["spec"].get("holderIdentity") or "")
        if key.kind is kinds.LEASE or key.kind is kinds.EVENT:
            return
        if event_type != "DELETED":
            self.economy.seen(key, manifest)
        if key.kind is kinds.JOB:
            self._counted(key, manifest)
            if event_type != "DELETED":
                self.workloads.seen(manifest)
        self.claims.seen(key, event_type, manifest)
        if key.kind is kinds.NODE:
            self._offered(key, event_type, manifest)
        elif key.kind is kinds.POD:
            self._went_on(key, event_type, manifest)
            if event_type == "MODIFIED":
                self._bound(manifest)
            elif event_type == "ADDED":
                self.workloads.created(manifest, self.alive())

    def _went_on(self, key, event_type, manifest):
        phase = "" if event_type == "DELETED" else manifest.get("status", {}).get("phase", "")
        if phase != self._phases.get(key, "Pending") or event_type == "ADDED":
            self.stirred.append(self._world.loop.now)
        self._phases[key] = phase
        if phase in ("", "Failed"):
            kind, name = group_of(manifest)
            self._lost.add((kind, key.namespace, name))

    def _office(self, office, holder):
        if holder != self._holders.get(office):
            self._holders[office] = holder
            self.successions.append(self._world.loop.now)

    def _counted(self, key, manifest):
        retries, uid = manifest.get("status", {}).get("retryCount", 0), manifest["metadata"]["uid"]
        if retries > self._retries.get(uid, 0) + 1:
            self.complain(
                "retries", f"{key.namespace}/{key.name} counts {retries} retries after {self._retries.get(uid, 0)}"
            )
        self._retries[uid] = retries

    def _offered(self, key, event_type, manifest):
        offered = {} if event_type == "DELETED" else amounts.offered(manifest)
        self.offers.setdefault(key.name, []).append((self._world.loop.now, offered))

    def _most_offered(self, node):
        """What a node offered at most within the time that a view may be old."""
        since = self.known_since()
        changes = self.offers.get(node, [])
        late = [offered for moment, offered in changes if moment >= since]
        before = [offered for moment, offered in changes if moment < since]
        seen = late + before[-1:]
        return {name: max(each.get(name, 0) for each in seen) for name in amounts.NAMES} if seen else {}

    def _uses(self, pod):
        """What a pod uses of what its node itself offers: not what it has by a claim."""
        by_claim = amounts.DEVICE if self.claims.has_by_claim(pod) else None
        return {name: amount for name, amount in amounts.asked(pod).items() if name != by_claim}

    def known_since(self):
        """Give the moment before which nobody may have looked last: in fair weather everybody knows soon what was written, unless watches are silent."""
        now, fair = self._world.loop.now, self.economy.fair_since
        knows = fair is not None and not self.silent and now > fair + economy.SETTLED
        return now - (economy.SETTLED if knows else VIEW)

    def _bound(self, pod):
        node = pod["spec"].get("nodeName")
        uid = pod["metadata"]["uid"]
        if not node or uid in self._bound_pods:
            return
        self._bound_pods.add(uid)
        self.evictions.bound(pod, group_of(pod)[1])
        self.claims.bound(pod)
        held = amounts.sums(self._uses(each) for each in self.alive() if each["spec"].get("nodeName") == node)
        most = self._most_offered(node)
        for name in amounts.lacking({name: held[name] for name in self._uses(pod)}, most):
            told = (
                f"{pod['metadata']['name']} is bound to {node}, which holds {held[name]} of {most.get(name, 0)} {name}"
            )
            self.complain("room", told)

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
        self.judge_gangs()
        self.judge_owners()
        self.claims.judge()
        self.workloads.judge()
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
        # A Job repeats why its group waits. What has changed while nobody led is news to whoever does so next.
        of_status = path.endswith("/status") and ("/pods/" in path or "/jobs/" in path)
        gives_reason = method == "PATCH" and ("/podgroups/" in path or of_status)
        patience = AFTERMATH + (PUT_OFF if gives_reason else 0)
        reasons = [*self.stirred, *(self.successions if gives_reason else ())]
        return any(moment - patience <= each <= moment for each in reasons)

    def judge_gangs(self):
        groups = {}
        for pod in self.alive():
            kind, name = group_of(pod)
            key = (kind, pod["metadata"]["namespace"], name or f"(pod {pod['metadata']['name']})")
            groups.setdefault(key, []).append(pod)
        free = self._free()
        for (kind, namespace, name), pods in groups.items():
            found = self._find(kind, namespace, name)
            least = 1 if name.startswith("(") else self._least(found, f"{namespace}/{name}", pods)
            if least:
                self._judge_gang((kind, namespace, name), least, pods, free)

    def _least(self, group, name, pods):
        """Give the minimum of a group, 0 if none of its pods may start."""
        if group is None and "schedulingGroup" not in pods[0]["spec"]:
            if not all(pod["spec"].get("nodeName") for pod in pods):
                self.complain("group", f"{len(pods)} pods of {name} are there, and no such group")
            return 0
        if group is None or group["metadata"].get("deletionTimestamp"):
            return 0
        policy = group["spec"].get("schedulingPolicy", {})
        return policy["gang"]["minCount"] if "gang" in policy else group["spec"].get("minMember", 1)

    def _judge_gang(self, key, least, pods, free):
        kind, namespace, name = key
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        waiting = [
            pod for pod in pods if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        ]
        done = self._done(namespace, name)
        whole = kind is kinds.POD_GROUP or key not in self._lost  # nobody starts Kubernetes' own gangs anew as a whole
        if 0 < len(bound) < least and len(bound) + done < least and waiting and whole:
            self.complain("part", f"{namespace}/{name}: {len(bound)} of {least} are bound, {len(waiting)} wait")
        needs = [self._needs(pod) for pod in waiting]
        if waiting and len(pods) + done >= least and None not in needs and amounts.fit(needs, free):
            self.complain("fits", f"{namespace}/{name}: {len(waiting)} wait, {needs}, though {free} are free")

    def _needs(self, pod):
        needs = self.claims.needs(pod)
        return needs and (needs[0], {**amounts.asked(pod), **needs[1]})

    def judge_owners(self):
        """See that nothing is left of Jobs and groups that are gone."""
        for kind in (kinds.POD, kinds.POD_GROUP, kinds.NATIVE_POD_GROUP, kinds.WORKLOAD, kinds.RESOURCE_CLAIM):
            for made in self._world.store.scan(kind):
                metadata = made["metadata"]
                for owner in metadata.get("ownerReferences") or ():
                    of = next(
                        (
                            each
                            for each in OWNERS
                            if each.api_version == owner["apiVersion"] and each.name == owner["kind"]
                        ),
                        None,
                    )
                    found = self._find(of, metadata["namespace"], owner["name"]) if of else None
                    if of and (found or {}).get("metadata", {}).get("uid") != owner["uid"]:
                        self.complain("orphan", f"{kind.name} {metadata['name']} is left of {of.name} {owner['name']}")

    def _done(self, namespace, name):
        found = 0
        for pod in self._world.store.scan(kinds.POD):
            if (
                group_of(pod)[1] == name
                and pod["metadata"]["namespace"] == namespace
                and pod.get("status", {}).get("phase") == "Succeeded"
            ):
                found += 1
        return found

    def _free(self):
        free, devices = {}, amounts.Devices(self._world.store)
        for node in self._world.store.scan(kinds.NODE):
            ready = any(
                each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ())
            )
            if ready and not node.get("spec", {}).get("unschedulable") and not node.get("spec", {}).get("taints"):
                name = node["metadata"]["name"]
                free[name] = {**amounts.offered(node), **devices.free(name)}
                free[name][amounts.DEVICE] = free[name][amounts.DEVICE] or free[name].get("class any", 0)
        for pod in self.alive():
            room = free.get(pod["spec"].get("nodeName"), {})
            for name, amount in self._uses(pod).items() if room else ():
                room[name] -= amount
        return free

    def alive(self):
        return [pod for pod in self._world.store.scan(kinds.POD) if pod.get("status", {}).get("phase") not in _OVER]

    def _find(self, kind, namespace, name):
        return self._world.store.find(Key(kind, namespace, name))
