"""What those who decide about victims say that they read spares work and changes nothing: the same go as if each had declared that it reads everything."""

from __future__ import annotations

import functools
import random
from unittest import mock

import eviction_crowds
import pytest
from eviction_crowds import PLUGINS, crowd, equals, herd

from builders import Desk, group, node, pod, priority_class
from drawing import drawn, number_by
from pumice.cache.effects import Bind, Evict
from pumice.framework.plugin import Plugin
from pumice.framework.reads import EVERYTHING, NOTHING, Reads
from pumice.framework.reasons import Invalid

VOTING = (Reads.TASK, Reads.JOB, Reads.QUEUE, Reads.COLUMNS, Reads.OTHER_NODES)
READ = {
    "preemptable": VOTING,
    "reclaimable": VOTING,
    "protection": (Reads.TASK, Reads.OTHER_NODES),
    "allocatable": (Reads.QUEUE, Reads.JOB),
    "job_starving": (Reads.JOB, Reads.QUEUE),
    "job_valid": (Reads.JOB, Reads.QUEUE),
    "overused": (Reads.QUEUE,),
}


def asked(task):
    return sorted(task.shape.request.amounts.items())


def numbers(task):
    """Give what may always be known of a pod: its priority, its shape and the numbers of its job."""
    job = task.job
    return None if job is None else (task.priority, job.priority, asked(task), job.min_member, len(job.tasks))


class Opinionated(Plugin):
    """Has a mind of its own at some points, each of which reads what `wishes` says; it tells of that, or says that it reads everything."""

    name = "opinionated"
    points = frozenset(
        {"Preemptable", "Reclaimable", "Protection", "Allocatable", "JobStarving", "JobValid", "Overused"}
    )
    wishes, honest = {}, True

    def open(self, session):
        self.cluster = session.cluster
        for point, (seed, reads) in self.wishes.items():
            kind = "vote" if point in ("preemptable", "reclaimable") else point
            function = functools.partial(getattr(self, kind), seed, reads)
            getattr(session, point).add(function, reads=reads if self.honest else EVERYTHING)

    def pods_of(self, queue):
        return sum(job.tally.ready for job in self.cluster.jobs.values() if job.queue == queue)

    def vote(self, seed, reads, claimant, candidates):
        who = (seed, claimant.job.queue, claimant.priority)
        who += (claimant.job.key,) if Reads.JOB in reads else ()
        who += (asked(claimant),) if Reads.COLUMNS in reads else ()
        gone, kept = {}, []
        for each in candidates:
            job = each.job
            known = (*who, numbers(each), each.name if Reads.TASK in reads else "")
            limit = number_by("limit", *who, job.queue)
            stays = number_by(*known) % 5 == 0
            stays |= Reads.QUEUE in reads and self.pods_of(job.queue) <= limit % 12
            stays |= Reads.OTHER_NODES in reads and job.tally.ready - gone.get(job.key, 0) <= limit % 3
            if not stays:
                gone[job.key] = gone.get(job.key, 0) + 1
                kept.append(each)
        return kept

    def protection(self, seed, reads, claimant, victim, action):
        del claimant, action
        if victim.job is None:
            return None
        known = (seed, numbers(victim), victim.name if Reads.TASK in reads else "")
        stays = number_by(*known) % 5 == 0
        stays |= Reads.OTHER_NODES in reads and victim.job.tally.ready <= number_by("limit", seed) % 3
        return "has an opinion" if stays else None

    def allocatable(self, seed, reads, queue, demand):
        who = (seed, queue.name, demand.tasks[0].job.key if Reads.JOB in reads else "")
        held = self.pods_of(queue.name) + len(demand.tasks)
        return "has an opinion" if Reads.QUEUE in reads and held > 4 + number_by(*who) % 20 else None

    def about(self, seed, reads, job):
        """Give what may be known of a job, and whether its queue holds little, if that may be known."""
        tasks = [(task.priority, asked(task)) for task in job.tasks.values()]
        known = (seed, job.priority, job.min_member, tasks[:1], len(tasks), job.key if Reads.JOB in reads else "")
        limit = number_by("limit", seed, job.queue) % 12
        return number_by(*known), Reads.QUEUE in reads and self.pods_of(job.queue) <= limit

    def job_starving(self, seed, reads, job):
        number, little = self.about(seed, reads, job)
        return number % 4 > 0 or little

    def job_valid(self, seed, reads, job):
        number, _ = self.about(seed, reads, job)
        return Invalid("Opinion", "has an opinion") if number % 8 == 0 else None

    def overused(self, seed, reads, queue):
        held, limit = self.pods_of(queue.name), 4 + number_by(seed, queue.name) % 30
        return "has an opinion" if Reads.QUEUE in reads and held > limit else None


def wishes(pick):
    """Choose who has a mind of its own, and what each of them reads."""
    found = {}
    for point, may in READ.items():
        if pick.random() < 0.5:
            chosen = [each for each in may if pick.random() < 0.4]
            found[point] = (pick.randrange(1 << 20), functools.reduce(lambda one, other: one | other, chosen, NOTHING))
    return found


def decisions(make, plugin):
    """Give who was sent where and who was sent away in three cycles of a crowd at whose desk such a plugin sits."""

    def desk(text, **more):
        return Desk(text.replace("plugins: [", f"plugins: [{{name: {plugin.name}}}, ", 1), plugin, **more)

    with mock.patch.object(eviction_crowds, "Desk", desk):
        made = make()
    for _ in range(3):
        made.cycle()
    assert not made.scheduler.failures, made.scheduler.failures
    return [str(each) for each in made.world.of(Bind, Evict)]


@pytest.mark.parametrize("name", PLUGINS)
@pytest.mark.parametrize("seed", range(drawn(40, 2)))
def test_what_those_who_decide_about_victims_say_that_they_read_changes_no_decision(seed, name):
    pick = random.Random(seed)  # noqa: S311  a world, not a secret
    make = functools.partial(pick.choice([crowd, equals, herd]), seed, name)
    minds = wishes(pick)
    honest, shy = (type("Opinionated", (Opinionated,), {"wishes": minds, "honest": each}) for each in (True, False))
    assert decisions(make, honest) == decisions(make, shy), minds


@pytest.mark.parametrize("left", [2, 0])
@pytest.mark.parametrize("reads", [Reads.OTHER_NODES, Reads.OTHER_NODES | Reads.QUEUE, EVERYTHING], ids=str)
def test_a_protection_that_counts_who_goes_is_asked_about_each_of_a_gang_with_those_before_it_gone(reads, left):
    class Counting(Plugin):
        name = "counting"
        points = frozenset({"Protection"})

        def open(self, session):
            few = "few are left"
            session.protection.add(lambda _, victim, __: few if victim.job.tally.ready <= left else None, reads=reads)

    tiers = "tiers:\n- plugins: [{name: priority}]\n- plugins: [{name: gang}, {name: predicates}, {name: counting}]\n"
    desk = Desk(f'actions: "allocate, preempt"\n{tiers}', Counting).feed(node("n", "4"), priority_class("high", 9))
    desk.feed(group("old", 4, phase="Running"), *(pod(f"old-{i}", "old", cpu="1", node="n") for i in range(4)))
    desk.feed(group("g", 1, phase="Inqueue", priorityClassName="high"), pod("g-0", "g", cpu="4", priority=9)).cycle()
    assert len(desk.world.evictions) == (0 if left else 4)
