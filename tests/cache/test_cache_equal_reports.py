"""Jobs that stand alike are judged, told and written of together, and exactly as each of them would be by itself."""

from __future__ import annotations

import random
from contextlib import ExitStack
from unittest import mock

import pytest

from builders import GANG, SECOND, Desk, group, node, pod, queue
from pumice.api.scheduling import PodGroupCondition
from pumice.cache import publishing
from pumice.cache.effects import Bind, Patch
from pumice.cache.options import Options
from pumice.cache.write_paces import STATUS, WritePaces
from pumice.framework import findings, standings
from pumice.framework.findings import Findings
from pumice.framework.plugin import Plugin
from pumice.model.phases import Phases

# ---- the same, of each job by itself

told_together = standings.news_of_cycle


def told_apart(session):
    found = [(job, findings.Standing()) for job, _ in told_together(session)]
    for job, standing in found:
        standing.jobs.append(job)
    return found


def condition_each(findings, jobs, condition):
    for job in jobs:
        findings.condition(job, condition)


def puts_off(paces, key, limit, now):
    """Owe every status for a moment at least."""
    since = paces._owed.pop(key, now)
    due = since + limit if paces._patience else since
    if now < due:
        paces._owed[key] = since
        paces._put_off(f"{STATUS} {key}", due)
        return True
    paces._late.pop(f"{STATUS} {key}", None)
    return False


def change(phases, statuses):
    for job, status in statuses:
        phases.leave(job)
        job.status = status
        phases.enter(job)


APART = [
    (standings, "news_of_cycle", told_apart),
    (Findings, "condition_all", condition_each),
    (publishing, "_leaves_reasons", lambda _told: False),
    (WritePaces, "puts_off", puts_off),
    (Phases, "change", change),
]


# ---- lives

SUB_GROUPS = [{"name": "s", "subGroupSize": 1, "minSubGroups": 2, "matchLabelKeys": ["none"]}]
WAITED = {
    "status": "True",
    "type": "Unschedulable",
    "reason": "NotEnoughResources",
    "message": "1/1 tasks in gang unschedulable",
}
# What a job may be like; of those that come together most are alike in most.
LIKENESS = {
    "size": [1, 2, 3, 0],
    "minimum": [1, 0, 2],
    "queue": ["default", "q", "late"],
    "status": [
        {},
        {"phase": "Inqueue"},
        {"phase": "Running"},
        {"phase": "Running", "running": 1},
        {"phase": "Running", "running": 1, "conditions": [WAITED]},
    ],
    "spec": [{}, {"minTaskMember": {"v": 1}}, {"subGroupPolicy": SUB_GROUPS}, {"priorityClassName": "none"}],
    "runs": [True, False],
    "going": [False, True],
}
DEEDS = ["come", "come", "run", "run some", "end", "fail", "go", "leave", "answer", "answer", "refuse", "queue", "room"]
GAPS = [0.01, 0.06, 1.0, 11.0]


class Remark(Plugin):
    """Say something of every third job."""

    name = "remark"

    def close(self, session):
        said = PodGroupCondition(type="Remarked", status="True", reason="Third")
        for job in session.cluster.jobs.values():
            if not int(job.name.removeprefix("g")) % 3:
                session.findings.condition(job, said)


class Life:
    """Jobs that are alike or nearly so come, run and end; what is done goes by chance and by what was sent."""

    def __init__(self, seed):
        self.chance = random.Random(seed)  # noqa: S311  tells a life again
        options = Options(reason_patience=self.chance.choice([0, SECOND]))
        listed = self.chance.choice(["{name: gang}", "{name: remark}, {name: gang}", "{name: gang}, {name: remark}"])
        self.desk = Desk(GANG.replace("{name: gang}", listed), Remark, options=options)
        self.desk.feed(queue("q"), node("n1", cpu="30", pods="200"))
        self.groups, self.pods, self.answered, self.came = {}, {}, 0, 0

    def step(self):
        """Let something happen, then a cycle; give what was sent in it and how everything stands afterwards."""
        deed, number, count = self.chance.choice(DEEDS), self.chance.randrange(20), self.chance.randint(1, 6)
        getattr(self, f"_{deed.replace(' ', '_')}")(number, count)
        sent = len(self.desk.world.effects)
        record = self.desk.cycle(seconds=self.chance.choice(GAPS))
        cluster = self.desk.cluster
        return (
            [repr(effect) for effect in self.desk.world.effects[sent:]],
            [record.explain(key) for key in sorted(cluster.jobs)],
            {key: job.status for key, job in cluster.jobs.items()},
            {phase: list(jobs) for phase, jobs in cluster.phases._jobs.items()},
            cluster.phases.counts,
            self.desk.cache.next_wake(),
        )

    def _come(self, _number, count):
        base = {field: self.chance.choice(values) for field, values in LIKENESS.items()}
        for _ in range(2 * count):
            self.came += 1
            like = {field: self.chance.choice([base[field]] * 4 + values) for field, values in LIKENESS.items()}
            name, where = f"g{self.came}", "n1" if like["runs"] else ""
            made = group(name, like["minimum"], queue=like["queue"], **like["spec"])
            self.groups[name] = {**made, "status": like["status"]}
            self.desk.feed(self.groups[name])
            for index in range(like["size"]):
                member = pod(f"{name}-{index}", name, cpu="1", role="w", node=where, deleting=like["going"])
                self.pods[member["metadata"]["name"]] = member
                self.desk.feed(member)

    def _run(self, _number, _count, most=None):
        sent = [bind for bind in self.desk.world.of(Bind) if bind.name in self.pods]
        waiting = [bind for bind in sent if not self.pods[bind.name]["spec"]["nodeName"]]
        for bind in waiting[:most]:
            self.desk.settle(bind)
            self._become(bind.name, "Running", bind.node)

    def _run_some(self, number, count):
        self._run(number, count, most=count)

    def _become(self, name, phase, where):
        known = self.pods[name]
        self.pods[name] = {**known, "spec": {**known["spec"], "nodeName": where}, "status": {"phase": phase}}
        self.desk.modify(self.pods[name])

    def _end(self, number, count, phase="Succeeded"):
        running = [name for name, each in self.pods.items() if each["status"]["phase"] == "Running"]
        for name in running[number : number + count]:
            self._become(name, phase, "n1")

    def _go(self, number, count):
        for name in list(self.pods)[number : number + 2 * count]:
            known = self.pods[name]
            self.pods[name] = {**known, "metadata": {**known["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z"}}
            self.desk.modify(self.pods[name])

    def _fail(self, number, count):
        self._end(number, count, phase="Failed")

    def _leave(self, number, count):
        for name in list(self.groups)[number : number + count]:
            for each in [key for key in self.pods if key.startswith(f"{name}-")]:
                self.desk.delete(self.pods.pop(each))
            self.desk.delete(self.groups.pop(name))

    def _answer(self, _number, _count, code=None):
        """Answer what was patched; a watch then tells of it."""
        patches = [effect for effect in self.desk.world.of(Patch) if effect.kind.name == "PodGroup"]
        for patch in patches[self.answered :]:
            self.desk.settle(patch, code)
            if code is None and (known := self.groups.get(patch.name)) is not None:
                self.groups[patch.name] = {**known, "status": {**patch.body["status"]}}
                self.desk.modify(self.groups[patch.name])
        self.answered = len(patches)

    def _refuse(self, number, count):
        self._answer(number, count, code="unavailable")

    def _queue(self, _number, _count):
        self.desk.feed(queue("late"))

    def _room(self, number, _count):
        self.desk.modify(node("n1", cpu=str(2 + number), pods="50"))


def lived(seed, patches=()):
    with ExitStack() as stack:
        for owner, name, replacement in patches:
            stack.enter_context(mock.patch.object(owner, name, replacement))
        life = Life(seed)
        return [life.step() for _ in range(30)]


@pytest.mark.parametrize("seed", range(60))
def test_jobs_that_stand_alike_are_told_what_each_would_be_told_by_itself(seed):
    for together, apart in zip(lived(seed), lived(seed, APART), strict=True):
        assert together == apart


def test_what_is_written_of_jobs_that_stand_alike_is_worked_out_once():
    made = Desk().feed(node("n1", cpu="64", pods="50"))
    for number in range(10):
        made.feed(
            group(f"g{number}", 1), *(pod(f"p{number}-{i}", f"g{number}", node="n1") for i in range(1 + number % 2))
        )
    made.cycle()
    bodies = [patch.body for patch in made.world.patches("PodGroup")]
    assert len(bodies) == 10
    assert len({id(body) for body in bodies}) == 2
