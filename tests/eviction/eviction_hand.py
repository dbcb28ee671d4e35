"""Plans that are made by hand: nodes full of pods, a job that asks, and a plan for it to which victims and members are added one by one."""

from __future__ import annotations

from builders import Desk, group, node, pod, priority_class
from pumice.actions.eviction import asking, rules, trimming, units
from pumice.actions.eviction.plan import Plan
from pumice.framework.runs import Step

PREEMPT = """
actions: "preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: gang, enablePreemptable: false}, {name: predicates}, {name: nodeorder}%s]
"""

ANYWHERE = {}


class Hand:
    """Nodes full of pods of jobs, and a plan for a job that asks, which is made by hand."""

    members_mind = ANYWHERE

    def __init__(
        self,
        *,
        nodes,
        running,
        asks,
        minimum=None,
        more="",
        also=(),
        text=PREEMPT,
        form=rules.Preempt,
        plugins=(),
        **spec,
    ):
        self.desk = Desk(text % more if "%s" in text else text, *plugins).feed(
            priority_class("low", 1), priority_class("mid", 5), priority_class("high", 9)
        )
        for name, cpu in nodes.items():
            self.desk.feed(node(name, labels={"is": name}, **(cpu if isinstance(cpu, dict) else {"cpu": str(cpu)})))
        for name, (least, rank, pods) in running.items():
            self.desk.feed(group(name, least, phase="Running", priorityClassName=rank))
            for i, (where, cpu, *told) in enumerate(pods):
                self.desk.feed(pod(f"{name}-{i}", name, cpu=str(cpu), node=where, **(told[0] if told else {})))
        least = len(asks) if minimum is None else minimum
        self.desk.feed(group("asks", least, phase="Inqueue", priorityClassName="high", **spec), *also)
        for i, (cpu, told) in enumerate(asks):
            self.desk.feed(pod(f"asks-{i}", "asks", cpu=str(cpu), **{**self.members_mind, **told}))
        session = self.desk.session()
        self.members = [self.desk.task(f"asks-{i}") for i in range(len(asks))]
        job = self.members[0].job
        wanted = asking.Wanted(session.queue_of(job), job, self.members, lambda: True)
        self.rules = form(session)
        self.plan = Plan(session, self.rules, wanted)

    def wanted(self, done=lambda: True):
        job = self.members[0].job
        return asking.Wanted(self.plan.queue, job, self.members, done)

    def unit(self, *names, whole=False):
        """Put single pods, or all of these, into one unit."""
        tasks = tuple(self.desk.task(name) for name in names)
        return units.whole_job(tasks[0].job, tasks) if whole else units.Unit(tasks, whole=False)

    def take(self, *names, whole=False):
        """Take single pods, or all of these as one."""
        tasks = [self.desk.task(name) for name in names]
        parts = (
            [units.whole_job(tasks[0].job, tuple(tasks))] if whole else [units.Unit((t,), whole=False) for t in tasks]
        )
        for part in parts:
            self.plan.evict(part)

    def place(self, **where):
        for name, on in where.items():
            assert self.plan.settle(self.desk.task(name.replace("_", "-")), self.desk.node(on).row)

    def trim(self):
        """Spare whom the plan can do without; it is still victims that members are said to wait for, and each waits once."""
        trimming.trim(self.plan)
        runs = [run for run in self.plan.statement.runs if run.step is Step.PIPELINE]
        assert all(run.evicted for run in runs)
        assert sorted(task.name for run in runs for task in run.tasks) == sorted(self.homes())

    def victims(self):
        return sorted(task.name for task in self.plan.victims)

    def homes(self):
        return {member.name: member.node.name for member in self.plan.members}

    def statuses(self):
        return {task.name: (task.status, task.node) for task in self.desk.cluster.tasks.values()}
