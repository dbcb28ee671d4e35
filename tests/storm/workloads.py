"""What must hold of Jobs, Volcano's and Kubernetes' own: none of their pods is there twice, and none is there for longer than it said."""

from __future__ import annotations

import re

from pumice.api import kinds
from pumice.sim.identity import Key

_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB = re.compile(r"/apis/batch\.volcano\.sh/v1alpha1/namespaces/([^/]+)/jobs/([^/?]+)(?:\?|$)")
_FINISHED = ("Completed", "Failed", "Terminated")
PATIENCE = 60.0  # seconds that whoever deletes a Job may be late


class Workloads:
    """Hears of pods that are made."""

    def __init__(self, world, complain):
        self._world = world
        self._complain = complain
        self._finished = {}  # by uid of a Job: since when it has ended

    def forget(self):
        """Forget Jobs that were judged."""
        self._finished.clear()

    def seen(self, job):
        """Hear of a Job of Volcano's that was stored."""
        uid, phase = job["metadata"]["uid"], (job.get("status") or {}).get("state", {}).get("phase")
        if phase in _FINISHED:
            self._finished.setdefault(uid, self._world.loop.now)
        else:
            self._finished.pop(uid, None)

    def may_go(self, method, path):
        """Tell whether a request deletes a Job that has ended and said how long it stays."""
        found = _JOB.match(path) if method == "DELETE" else None
        job = self._world.store.find(Key(kinds.JOB, *found.groups())) if found else None
        return job is not None and "ttlSecondsAfterFinished" in job["spec"] and job["metadata"]["uid"] in self._finished

    def created(self, pod, alive):
        """Look at a pod that has just been made, and at those that are alive."""
        owner = next(iter(pod["metadata"].get("ownerReferences") or ()), {})
        for kind, look in ((kinds.JOB, self._of_task), (kinds.BATCH_JOB, self._of_job)):
            if (owner.get("apiVersion"), owner.get("kind")) == (kind.api_version, kind.name):
                job = self._world.store.find(Key(kind, pod["metadata"]["namespace"], owner["name"]))
                if job is not None and job["metadata"]["uid"] == owner["uid"]:
                    look(job, pod, [each for each in alive if _is_of(job, each)])

    def judge(self):
        """See that every Job of Volcano's says in the end how many of its pods run and wait, and is gone if its time is over."""
        for job in self._world.store.scan(kinds.JOB):
            kept, since = job["spec"].get("ttlSecondsAfterFinished"), self._finished.get(job["metadata"]["uid"])
            if None not in (kept, since) and self._world.loop.now > since + kept + PATIENCE:
                told = f"{job['metadata']['name']} has ended at {since:.3f}, is kept for {kept} s and is still there"
                self._complain("expired", told)
            pods = [each for each in self._world.store.scan(kinds.POD) if _is_of(job, each)]
            for phase in ("Running", "Pending"):
                count = sum(each.get("status", {}).get("phase") == phase for each in pods)
                told = (job.get("status") or {}).get(phase.lower(), 0)
                if told != count:
                    name = job["metadata"]["name"]
                    self._complain("counts", f"{name} says that {told} of its pods are {phase}, and {count} are")

    def _of_task(self, job, pod, active):
        task = pod["metadata"]["labels"]["volcano.sh/task-spec"]
        names = [
            each["metadata"]["name"] for each in active if each["metadata"]["labels"]["volcano.sh/task-spec"] == task
        ]
        replicas = next((each.get("replicas", 1) for each in job["spec"]["tasks"] if each["name"] == task), None)
        if replicas is not None and len(names) > replicas:
            told = f"task {task} of {job['metadata']['name']} has {replicas} replicas and {len(names)} pods"
            self._complain("twice", f"{told}: {', '.join(names)}")

    def _of_job(self, job, pod, active):
        spec, name = job["spec"], job["metadata"]["name"]
        most = min(spec["parallelism"], spec["completions"])
        if len(active) > most:
            self._complain("twice", f"{name} runs {most} pods at once and has {len(active)}")
        index = (pod["metadata"].get("annotations") or {}).get(_INDEX)
        same = [each for each in active if (each["metadata"].get("annotations") or {}).get(_INDEX) == index]
        if index is not None and len(same) > 1:
            self._complain("twice", f"{name} has {len(same)} pods of index {index}")


def _is_of(job, pod):
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(each["uid"] == job["metadata"]["uid"] for each in owners) and not pod["metadata"].get(
        "deletionTimestamp"
    )
