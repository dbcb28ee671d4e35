"""Who could go from each node, as it is followed from cycle to cycle, is what the rules of eviction say when every job and pod is looked at."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import Desk, group, node, pod, priority_class, queue
from drawing import seeds
from pumice.actions.eviction import candidate_columns, gang_rules, ranking, rules, unit_columns, units
from pumice.actions.eviction.queue_protections import QueueProtections
from pumice.framework import independence
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.model import change_log, nodes, resources
from pumice.model.statuses import ALLOCATED_LIKE, Status

CONFIG = """
actions: "preempt, reclaim"
tiers:
- plugins: %s
- plugins: [{name: predicates}, {name: proportion, enableReclaimable: false}]
"""
PLUGINS = {
    "gang decides": "[{name: gang}, {name: conformance}]",
    "others decide": "[{name: priority}, {name: gang, enablePreemptable: false, enableReclaimable: false}]",
    "gang and others in turn": "[{name: gang}]\n- plugins: [{name: conformance}]",
}
FORMS = (rules.Preempt, rules.PreemptWithin, rules.Reclaim, gang_rules.GangPreempt, gang_rules.GangReclaim)
SEEDS = seeds(40, 0, 1)


class Life:
    """A cluster in which jobs come and go, grow and shrink, and change their queue, minimum, priority and marks."""

    def __init__(self, seed, plugins):
        self.pick = random.Random(seed)  # noqa: S311  a world, not a secret
        self.desk = Desk(CONFIG % PLUGINS[plugins])
        self.groups, self.pods, self.number = {}, {}, 0
        self.desk.feed(*(priority_class(f"p{value}", value) for value in (-5, 5, 50)))
        self.desk.feed(*(queue(name) for name in "pq"), queue("closed", reclaimable=False))
        self.desk.feed(*(node(f"n{i}", "32", "64Gi") for i in range(3)))
        for _ in range(8):
            self.start()
        for name in "pq":
            self.desk.feed(group(f"asks-{name}", 2, queue=name, priorityClassName="p5"))
            self.desk.feed(
                pod(f"{name}-0", f"asks-{name}", cpu="1"), pod(f"{name}-1", f"asks-{name}", cpu="1", node="n0")
            )

    def start(self):
        pick, name = self.pick, f"j{self.number}"
        self.number += 1
        size = pick.randint(1, 6)
        roles = [pick.choice("mw") for _ in range(size)]
        minimum = pick.choice([0, 1, 1, size, pick.randint(1, size)])
        spec = {"queue": pick.choice(["p", "p", "q", "closed"]), "priorityClassName": pick.choice(["p-5", "p5", "p50"])}
        if pick.random() < 0.3:
            spec["minTaskMember"] = {"m": min(1, roles.count("m")), "w": roles.count("w")}
        if pick.random() < 0.2:
            policies = [{"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"]}]
            spec["subGroupPolicy"] = policies
        self.groups[name] = group(name, minimum, phase="Running", created=self.number, **spec)
        self.desk.feed(self.groups[name])
        for i, role in enumerate(roles):
            self.add(f"{name}-{i}", name, role)

    def add(self, name, job, role):
        pick = self.pick
        rank = {"annotations": {"volcano.sh/task-priority": "3"}} if pick.random() < 0.2 else {}
        asked = {"cpu": pick.choice(["1", "2"]), "memory": pick.choice(["1Gi", "2Gi"])}
        where, labels = pick.choice(["n0"] * 8 + ["n1"] * 4 + ["n2"] * 3 + ["absent"]), {"part": pick.choice("ab")}
        self.pods[name] = pod(
            name, job, role=role, node=where, labels=labels, priority=pick.choice([0, 5]), **asked, **rank
        )
        self.desk.feed(self.pods[name])

    def live(self):
        """Let everything happen that can, in some order; stop after each change."""
        ways = [
            self.start,
            self.grow,
            self.end,
            self.vanish,
            self.mark,
            self.leave,
            self.minimum,
            self.rank,
            self.resize,
        ]
        for way in self.pick.sample(ways, len(ways)):
            yield from way() or [None]

    def grow(self, job=""):
        self.number += 1
        job = job or self.pick.choice(sorted(self.groups))
        self.add(f"{job}-{self.number}", job, "w")

    def end(self):
        self.desk.delete(self.pods.pop(self.pick.choice(sorted(self.pods))))

    def vanish(self):
        """A job goes with all its pods; then another takes its place."""
        job = self.pick.choice(sorted(self.groups))
        for name in [name for name in self.pods if name.startswith(f"{job}-")]:
            self.desk.delete(self.pods.pop(name))
        self.desk.delete(self.groups.pop(job))
        yield
        self.start()
        yield

    def mark(self):
        one = self.pods[self.pick.choice(sorted(self.pods))]
        one["metadata"]["annotations"]["volcano.sh/preemptable"] = self.pick.choice(["true", "false"])
        self.desk.modify(one)

    def leave(self):
        """A job goes to another queue, gets another pod there, and comes back; then another does so without that."""
        for grows in (True, False):
            job = self.pick.choice([name for name, made in self.groups.items() if made["spec"]["queue"] == "p"])
            self.regroup(job, queue="q")
            yield
            if grows:
                self.grow(job)
            self.regroup(job, queue="p")
            yield

    def minimum(self):
        self.regroup(self.pick.choice(sorted(self.groups)), minMember=self.pick.randint(0, 3))

    def rank(self):
        self.regroup(self.pick.choice(sorted(self.groups)), priorityClassName=self.pick.choice(["p5", "p50"]))

    def resize(self):
        self.desk.modify(node(f"n{self.pick.randint(0, 2)}", "40", "64Gi"))

    def regroup(self, job, **spec):
        made = self.groups[job]
        self.groups[job] = {**made, "spec": {**made["spec"], **spec}}
        self.desk.modify(self.groups[job])

    def looks(self):
        """Give a session with the rules of each action and a claimant of each queue."""
        for form in FORMS:
            session = self.desk.session()
            for name in "pq":
                yield session, form(session), self.desk.task(f"{name}-0")


def is_source(session, asked, claimant, job):
    if asked.within:
        return job is claimant.job
    if asked.own_queue:
        return job.queue == claimant.job.queue
    owner = session.cluster.queues.get(job.queue)
    return owner is not None and owner.reclaimable and not owner.bad


def gang_alone_decides(asked):
    deciding = [tier for tier in asked.extension().tiers if tier]
    return asked.node_by_node and len(deciding) == 1 and "gang" in {each.plugin for each in deciding[0]}


def wholes(session, asked, job, here):
    """Give all that goes if a job goes whole, from a node with these of its pods, where it cannot spare them."""
    is_counted = job.roles_enforced or bool(job.policies)
    placed = [task for task in job.tasks.values() if task.status in ALLOCATED_LIKE]
    if units.keeps_its_minimum(job, here) or not all(task.preemptable for task in placed):
        return
    if gang_alone_decides(asked) and not is_counted:
        return  # whom its job cannot spare is offered to nobody
    ends = units.keeps_its_minimum(job)
    rank = max((job.priority, task.priority) for task in placed)
    loss = ranking.losses(session).sum(placed, ends=ends)
    yield rank, ends and job.min_member > 1, len(placed), loss, here


def plain(session, asked, claimant):
    """Say of every node what could go there at the most."""
    found = []
    for record in session.cluster.nodes.records[: session.cluster.nodes.count]:
        listed = []
        jobs = {task.job.key: task.job for task in record.tasks.values() if task.job is not None}
        for job in jobs.values():
            some = [task for task in record.tasks.values() if task.job is job and task.status in ALLOCATED_LIKE]
            here = [task for task in some if task.preemptable]
            if not here or not is_source(session, asked, claimant, job):
                continue
            apart = asked.within or not asked.keeps_gangs
            for task in here:
                if apart or units.keeps_its_minimum(job, (task,)):
                    loss = ranking.losses(session).of(task.shape)
                    listed.append(told((job.priority, task.priority), False, 1, loss, [task]))
            if not apart:
                listed += [told(*whole) for whole in wholes(session, asked, job, here)]
        found.append(sorted(listed))
    return found


def told(rank, breaks, count, loss, tasks):
    freed = sum(task.shape.request.vector for task in tasks).tolist()
    return rank, breaks, count, loss, sorted(task.name for task in tasks), freed, tasks[0].job.row


def listed(columns):
    """Say what is laid out, by the units and by the columns."""
    found = []
    for row in range(len(columns.starts)):
        items = columns.items_of(row)
        assert [each.priority for each in items] == sorted(each.priority for each in items)
        places = [at for at in range(columns.starts[row], columns.ends[row]) if columns.alive[at]]
        for item, at in zip(items, places, strict=True):
            loss = unit_columns.join(columns.loss[at].tolist())
            said = columns.priority[at], columns.breaks[at], columns.count[at], loss, columns.job[at], columns.queue[at]
            assert said == (item.priority, item.breaks, item.count, item.loss, item.job, item.queue)
            assert columns.freed[at].tolist() == item.freed.tolist()
        found.append(
            sorted(
                (
                    unit_columns.decoded(each.priority),
                    each.breaks,
                    each.count,
                    each.loss,
                    sorted(task.name for task in each.tasks),
                    each.freed.tolist(),
                    each.job,
                )
                for each in items
            )
        )
    return found


@pytest.mark.parametrize("log", ["whole", "nodes forgotten", "jobs forgotten"])
@pytest.mark.parametrize("plugins", PLUGINS)
def test_what_could_go_from_each_node_is_what_looking_at_every_pod_gives(plugins, log, monkeypatch):
    if log != "whole":
        monkeypatch.setattr(*((nodes, "LOG_LIMIT", 2) if log.startswith("nodes") else (change_log, "LIMIT", 2)))
    for seed in SEEDS:
        life = Life(seed, plugins)
        for _ in life.live():
            for session, asked, claimant in life.looks():
                columns = candidate_columns.columns(session, asked, claimant)
                assert listed(columns) == plain(session, asked, claimant), asked.name


@pytest.mark.parametrize("plugins", PLUGINS)
def test_it_follows_what_is_decided_within_a_cycle_too(plugins):
    for seed in SEEDS:
        life = Life(seed, plugins)
        for session, asked, claimant in life.looks():
            candidate_columns.columns(session, asked, claimant)
            statement = session.statement()
            for task in life.pick.sample(
                [t for t in life.desk.cluster.tasks.values() if t.status == Status.RUNNING], 3
            ):
                statement.evict([task], "test")
                assert listed(candidate_columns.columns(session, asked, claimant)) == plain(session, asked, claimant)
            statement.discard()
            assert listed(candidate_columns.columns(session, asked, claimant)) == plain(session, asked, claimant)


def reached(asked, claimant, job):
    """Tell whether an action reaches a job at all, plugins and marks apart."""
    own = claimant.job
    if asked.within:
        return job is own
    if not asked.own_queue:
        return job.queue != own.queue
    highest = asked.highest_taken(own)
    return job is not own and job.queue == own.queue and (highest is None or job.priority <= highest)


@pytest.mark.parametrize("plugins", PLUGINS)
def test_who_is_out_of_reach_of_a_claimant_is_marked(plugins):
    for seed in SEEDS:
        for session, asked, claimant in Life(seed, plugins).looks():
            columns = candidate_columns.columns(session, asked, claimant)
            marked = columns.those_of(claimant).tolist()
            for item, is_marked in zip(columns.items.tolist(), marked, strict=True):
                assert is_marked == (item is not None and reached(asked, claimant, item.tasks[0].job)), asked.name


@pytest.mark.parametrize("plugins", PLUGINS)
def test_who_is_known_to_be_protected_is_whoever_queues_protect_and_of_a_node_that_was_asked_about_nobody_else(plugins):
    kept = 0
    for seed in seeds(40, *range(6)):
        life = Life(seed, plugins)
        life.desk.modify(queue("q", guarantee={"resource": {"cpu": str(life.pick.randint(8, 30))}}))
        for session, asked, claimant in life.looks():
            columns = candidate_columns.columns(session, asked, claimant)
            for row in range(3):
                columns.protected(claimant)  # forgets what was true of other claimants
                columns.learn(claimant, row)
                marked = columns.protected(claimant)
                flags = [False] * len(columns.items) if marked is None else marked.tolist()
                for at, item in enumerate(columns.items.tolist()):
                    if item is None:
                        continue
                    of_queues = [by_queue(session, asked, claimant, task) for task in item.tasks]
                    assert all(of_queues) or not flags[at]
                    if columns.starts[row] <= at < columns.ends[row]:
                        assert flags[at] == all(of_queues)
                    kept += flags[at]
    assert kept > 20


def by_queue(session, asked, claimant, task):
    """Tell whether what a queue holds protects a pod."""
    return session.protection.among(independence.goes_by_queue, claimant, task, asked.name) is not None


def after(session, asked, claimant, going):
    """Say what could go from each node without some pods."""
    statement = session.statement()
    with statement.trial():
        statement.suppose(going, [None] * len(going), Status.PENDING)
        return plain(session, asked, claimant)


def counts_alone(job):
    return not (job.roles_enforced or job.policies)


def most_on_a_node(job):
    rows = Counter(t.node.name for t in job.tasks.values() if t.status in ALLOCATED_LIKE and t.node.name != "absent")
    return max(rows.values(), default=0)


def spares(job, count):
    """Tell whether a job without so many pods could still spare all that it has on any one node."""
    return counts_alone(job) and job.surplus - count >= most_on_a_node(job)


@pytest.mark.parametrize("plugins", PLUGINS)
def test_other_nodes_are_left_alone_by_pods_whose_jobs_are_nowhere_else_or_can_spare_more(plugins):
    said = Counter()
    for seed in SEEDS:
        life = Life(seed, plugins)
        for session, asked, claimant in life.looks():
            columns = candidate_columns.columns(session, asked, claimant)
            before, apart = plain(session, asked, claimant), asked.within or not asked.keeps_gangs
            for row, record in enumerate(session.cluster.nodes.records[:3]):
                here = [task for task in record.tasks.values() if is_source(session, asked, claimant, task.job)]
                for going in [[task] for task in here] + [life.pick.sample(here, 2) for _ in here[1:]]:
                    losing = Counter(task.job.key for task in going)
                    jobs = {task.job.key: task.job for task in going}
                    nowhere_else = {
                        key: all(t.node is record or t.status not in ALLOCATED_LIKE for t in job.tasks.values())
                        for key, job in jobs.items()
                    }
                    alone = all(nowhere_else[key] or spares(jobs[key], count) for key, count in losing.items())
                    assert columns.leave_others_alone(going) == (apart or alone)
                    said[alone] += 1
                    if alone:
                        left = after(session, asked, claimant, going)
                        assert all(left[at] == before[at] for at in range(3) if at != row), (asked.name, going)
    assert min(said[True], said[False]) > 10


def tasks_of(session, unit):
    """Give the pod of a unit that is one."""
    return [task for task in session.cluster.tasks.values() if [task.name] == unit[4] and unit[2] == 1]


def test_what_is_kept_of_a_queue_goes_with_it():
    life = Life(0, "gang decides")
    for name in ("r", "s"):
        life.desk.feed(queue(name), group(f"asks-{name}", 1, queue=name), pod(f"{name}-0", f"asks-{name}", cpu="1"))

    def looked(name):
        session = life.desk.session()
        candidate_columns.columns(session, rules.Preempt(session), life.desk.task(f"{name}-0"))
        return {owner for _, owner in session.lasting["columns"]}

    assert [looked("r"), looked("p")] == [{"r"}, {"r", "p"}]
    life.desk.delete(queue("r"))
    assert looked("s") == {"p", "s"}


@given(st.integers(0, 2**140), st.integers(0, 2**140))
def test_losses_of_any_size_are_cut_into_digits_that_compare_as_they_do(one, other):
    digits = [unit_columns.split(loss, 3) for loss in (one, other)]
    assert [unit_columns.join(each) for each in digits] == [one, other]
    assert (digits[0] < digits[1]) == (one < other)
    assert all(0 <= digit < 2**unit_columns.DIGIT for each in digits for digit in each)


PRIORITIES = st.tuples(*2 * [st.integers(-(2**31), 2**31 - 1)])


@given(PRIORITIES, PRIORITIES)
def test_two_priorities_are_one_number_that_compares_as_they_do(one, other):
    numbers = [unit_columns.code(*one), unit_columns.code(*other)]
    assert [unit_columns.decoded(each) for each in numbers] == [one, other]
    assert (numbers[0] < numbers[1]) == (one < other)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(("roles", "policies"), [(False, ()), (True, ()), (False, ("policy",)), (True, ("policy",))])
def test_queues_say_the_same_of_equal_pods_of_a_job_if_it_has_neither_roles_nor_sub_groups(roles, policies, alone):
    known, shape = QueueProtections(), SimpleNamespace(serial=1)
    job = SimpleNamespace(key="a/j", queue="q", roles_enforced=roles, policies=policies)
    groups = {known.group(job, SimpleNamespace(uid=uid, shape=shape), alone=alone) for uid in "ab"}
    assert len(groups) == len(known) == (2 if roles or policies else 1)


# -- what is known of queues -----------------------------------------------------------------------------------


class Vault(Plugin):
    """Keeps of a queue as many cores as it is told, from whoever asks for some."""

    name = "vault"
    points = frozenset({"Protection"})
    keeps: dict[str, int]

    def open(self, session):
        sums, queues, cpu = session.cluster.queue_sums, session.cluster.queues, resources.CPU

        def kept(claimant, victim, _action):
            owner, asked = queues[victim.job.queue], victim.shape.request.vector[cpu]
            # A queue below another one lends to those beside it only what all of them hold above what is kept.
            rows = [owner.row]
            if owner.parent not in {"", "root"}:
                rows = [each.row for each in queues.values() if each.parent == owner.parent]
            held = sum(sums.held(row)[cpu] for row in rows)
            return "kept" if asked and held - asked < 1000 * self.keeps.get(owner.name, 0) else None

        session.protection.add(kept, reads=Reads.QUEUE)


class Kept:
    """Two nodes with pods of queue `q`, one of a size and one without any; a claimant of `p`, and one of its pods that waits, and one of `o`."""

    def __init__(self, parent=""):
        self.keeps = {"q": 2}
        text = 'actions: "reclaim"\ntiers:\n- plugins: [{name: vault}, {name: conformance}]\n- plugins: [{name: gang, enableReclaimable: false}, {name: predicates}]\n'
        self.desk = Desk(text, type("Vault", (Vault,), {"keeps": self.keeps}))
        self.desk.feed(*([queue(parent)] if parent else []))
        self.desk.feed(*(queue(name, parent=parent or "root") for name in "opq"))
        self.desk.feed(*(node(f"n{i}", "9", "64Gi") for i in range(2)))
        self.desk.feed(group("some", 0, queue="q", phase="Running"))
        for i in range(2):
            self.desk.feed(pod(f"core-{i}", "some", cpu="1", node=f"n{i}"))
            self.desk.feed(pod(f"free-{i}", "some", memory="1Gi", node=f"n{i}"))
        for name in "opq":
            self.desk.feed(group(f"asks-{name}", 1, queue=name), pod(f"{name}-0", f"asks-{name}", cpu="1"))
        self.look()

    def look(self):
        self.session = self.desk.session()
        self.columns = candidate_columns.columns(self.session, rules.Reclaim(self.session), self.desk.task("p-0"))

    def known(self, claimant="p-0"):
        """Name the pods that are known to be kept."""
        marked = self.columns.protected(self.desk.task(claimant))
        flags = [False] * len(self.columns.items) if marked is None else marked.tolist()
        items = zip(self.columns.items.tolist(), flags, strict=True)
        return sorted(task.name for item, is_kept in items if item is not None and is_kept for task in item.tasks)

    def learn(self, where="n0"):
        self.known()
        return self.columns.learn(self.desk.task("p-0"), self.desk.node(where).row)


def test_what_a_queue_is_found_to_keep_of_one_it_keeps_of_all_of_the_same_size_and_of_no_other():
    scene = Kept()
    assert scene.known() == []
    assert scene.learn()
    assert scene.known() == ["core-0", "core-1"]
    assert not scene.learn()


@pytest.mark.parametrize("gone", ["free-0", "free-1", "core-1"])
def test_that_somebody_has_gone_who_stood_for_others_says_nothing_of_these(gone):
    scene = Kept()
    scene.session.statement().evict([scene.desk.task(gone)], "test")
    scene.columns.refresh()
    scene.learn()
    assert scene.known() == [name for name in ("core-0", "core-1") if name != gone]


def test_what_queues_keep_is_found_out_anew_in_each_cycle():
    scene = Kept()
    scene.learn()
    scene.keeps["q"] = 1
    scene.look()
    assert scene.known() == []
    assert not scene.learn()


@pytest.mark.parametrize(
    ("parent", "who", "known"),
    [
        ("", "o-0", []),
        ("", "q-0", []),
        ("", "p-0", ["core-0", "core-1"]),
        ("all", "p-0", []),
    ],
)
def test_what_queues_keep_is_known_until_one_of_them_holds_more_but_for_the_claimant_s_own(parent, who, known):
    """Where queues are below others what its own holds counts too."""
    scene = Kept(parent)
    scene.learn()
    assert scene.known() == ["core-0", "core-1"]
    scene.session.statement().pipeline([scene.desk.task(who)], [scene.desk.node("n0")])
    assert scene.known() == known


def test_what_queues_keep_is_still_known_when_they_hold_less_and_not_when_another_asks():
    scene = Kept()
    scene.learn()
    scene.session.statement().evict([scene.desk.task("free-0")], "test")
    assert scene.known() == ["core-0", "core-1"]
    assert scene.known("o-0") == []


def test_who_is_kept_is_left_out_on_other_nodes_and_nobody_else():
    """On the first node all are kept; on the other one somebody of another queue may go, and somebody foreign is there."""
    scene = Kept()
    scene.desk.feed(queue("r"), group("other", 0, queue="r", phase="Running"))
    scene.desk.modify(node("n0", "1", "64Gi"), node("n1", "3", "64Gi"))
    scene.desk.feed(pod("other-0", "other", cpu="1", node="n1"), pod("foreign", cpu="1", node="n1", scheduler="else"))
    scene.desk.feed(group("asks-p", 1, queue="p", phase="Inqueue"), event="MODIFIED")
    scene.desk.cycle()
    assert scene.desk.world.evictions == ["other-0"]
