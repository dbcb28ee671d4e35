"""What always holds for capacity: limits, sums, independence of listing and of other people's mistakes."""

import random

import numpy as np
from capacity_desk import FLAT, TREE, opened
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn

SEEDS = st.integers(0, 10**6)
NAMES = [f"q{i}" for i in range(7)]


def spec(rng, *, factor=1):
    """Amounts of a queue, in cores and gigabytes; `factor` scales cpu."""
    chosen = {}
    for field, top in (("deserved", 8), ("capability", 10), ("guarantee", 2)):
        listed = {}
        if rng.random() < 0.6:
            listed["cpu"] = str(rng.randrange(top + 1) * factor)
        if rng.random() < 0.3:
            listed["memory"] = f"{rng.randrange(top + 1)}Gi"
        if listed:
            chosen[field] = {"resource": listed} if field == "guarantee" else listed
    return {**chosen, "priority": rng.choice([0, 0, 0, 1])}


def world(seed, *, tree, listing=None, factor=1, text=None):
    """A random cluster: queues, some below others, and jobs of which some run."""
    rng = random.Random(seed)  # noqa: S311  a test's own choices
    manifests = []
    for at, name in enumerate(NAMES):
        parent = rng.choice([*NAMES[:at], "root", ""]) if tree else ""
        manifests.append(
            queue(name, created=rng.randrange(3), **spec(rng, factor=factor), **({"parent": parent} if parent else {}))
        )
    for i in range(10):
        name, place = f"j{i}", rng.choice(NAMES)
        cpu, memory = str(rng.randrange(1, 4) * factor), rng.choice([None, "1Gi", "2Gi"])
        running = rng.randrange(3) if rng.random() < 0.4 else 0
        waiting = rng.randrange(4)
        manifests.append(
            group(name, rng.randrange(1, 3), queue=place, created=i, phase="Running" if running else "Inqueue")
        )
        manifests += [pod(f"{name}-{k}", name, cpu=cpu, memory=memory, node="m") for k in range(running)]
        manifests += [pod(f"{name}-w{k}", name, cpu=cpu, memory=memory, created=k) for k in range(waiting)]
    if listing is not None:
        random.Random(listing).shuffle(manifests)  # noqa: S311  as above
    made = Desk(text or (TREE if tree else FLAT)).feed(node("m", str(24 * factor), "24Gi", "200"), *manifests)
    return made, rng


def recount(made, account):
    """What a queue holds, counted from the tasks of the leaves below it."""
    leaves, waiting = set(), [account]
    while waiting:
        each = waiting.pop()
        waiting += each.children
        if not each.children:
            leaves.add(each.queue.name)
    held = np.zeros(len(made.cluster.vocabulary), dtype=np.int64)
    for task in made.cluster.tasks.values():
        if task.job is not None and task.job.queue in leaves and task.status.name in HOLDING:
            held += task.shape.request.vector
    return held.tolist()


HOLDING = {"ALLOCATED", "BINDING", "BOUND", "RUNNING", "PIPELINED"}


def sums_agree(made, plugin):
    return all(account.held.tolist() == recount(made, account) for account in plugin.accounts.values())


@settings(max_examples=drawn(30), deadline=None)
@given(seed=SEEDS)
def test_what_inner_queues_hold_equals_a_recount_after_every_step(seed):
    made, rng = world(seed, tree=True)
    session, plugin = opened(made)
    statement = session.statement()
    assert sums_agree(made, plugin)
    for _ in range(8):
        waiting = [t for t in made.cluster.tasks.values() if t.status.name == "PENDING"]
        running = [t for t in made.cluster.tasks.values() if t.status.name == "RUNNING"]
        step = rng.randrange(4)
        if step == 0 and waiting:
            statement.allocate([rng.choice(waiting)], [made.node("m")])
        elif step == 1 and waiting:
            statement.pipeline([rng.choice(waiting)], [made.node("m")])
        elif step == 2 and running:
            statement.evict([rng.choice(running)], "reclaim")
        elif step == 3:
            statement.rollback(max(0, statement.checkpoint() - 2))
        assert sums_agree(made, plugin)
    statement.discard()
    assert sums_agree(made, plugin)


@settings(max_examples=drawn(40), deadline=None)
@given(seed=SEEDS, tree=st.booleans())
def test_no_queue_grows_beyond_its_limit(seed, tree):
    made, _ = world(seed, tree=tree)
    _, plugin = opened(made)
    before = {name: account.held for name, account in plugin.accounts.items()}
    made.cycle()
    _, plugin = opened(made)
    for name, account in plugin.accounts.items():
        grown = account.held > before[name]
        grown[2] = False
        assert (account.held <= account.limit)[grown].all(), (name, account.held, account.limit)


@settings(max_examples=drawn(25), deadline=None)
@given(seed=SEEDS, listing=SEEDS, tree=st.booleans())
def test_decisions_do_not_depend_on_the_order_of_events(seed, listing, tree):
    one, other = world(seed, tree=tree)[0], world(seed, tree=tree, listing=listing)[0]
    for made in (one, other):
        made.cycle()
    assert one.world.binds == other.world.binds


BAD = [
    [queue("x", parent="nowhere", guarantee={"resource": {"cpu": "9"}}), queue("y", parent="x", deserved={"cpu": "3"})],
    [queue("x", parent="y", guarantee={"resource": {"cpu": "9"}}), queue("y", parent="x")],
    [queue("x", parent="x"), queue("y", parent="x")],
    [queue("x", weight=0, guarantee={"resource": {"cpu": "9"}}), queue("y", parent="x")],
    [queue("x", capability={"cpu": "-1"}), queue("y", parent="x", guarantee={"resource": {"cpu": "9"}})],
]


@settings(max_examples=drawn(40), deadline=None)
@given(seed=SEEDS, bad=st.sampled_from(BAD))
def test_queues_without_a_place_change_nobodys_verdict(seed, bad):
    plain, crooked = world(seed, tree=True)[0], world(seed, tree=True)[0]
    crooked.feed(
        *bad, *(m for q in ("x", "y") for m in (group(f"in-{q}", queue=q), pod(f"in-{q}-0", f"in-{q}", cpu="2")))
    )
    plain.cycle()
    crooked.cycle()
    assert crooked.world.binds == plain.world.binds
    assert crooked.scheduler.failures == []


@settings(max_examples=drawn(25), deadline=None)
@given(seed=SEEDS, tree=st.booleans())
def test_a_queue_without_jobs_or_guarantee_changes_nobodys_verdict(seed, tree):
    plain, more = world(seed, tree=tree)[0], world(seed, tree=tree)[0]
    more.feed(queue("idle", deserved={"cpu": "5"}, capability={"cpu": "3"}))
    for made in (plain, more):
        made.cycle()
    assert plain.world.binds == more.world.binds


@settings(max_examples=drawn(25), deadline=None)
@given(seed=SEEDS, tree=st.booleans(), factor=st.sampled_from([2, 3, 7]))
def test_scaling_cpu_everywhere_changes_no_verdict(seed, tree, factor):
    # Scores of nodes are of no interest here: there is one node.
    plain, scaled = world(seed, tree=tree)[0], world(seed, tree=tree, factor=factor)[0]
    for made in (plain, scaled):
        made.cycle()
    assert plain.world.binds == scaled.world.binds


@settings(max_examples=drawn(40), deadline=None)
@given(seed=SEEDS)
def test_victims_leave_every_queue_its_guarantee_and_take_only_what_is_above_a_due(seed):
    made, rng = world(seed, tree=True)
    session, plugin = opened(made)
    waiting = [t for t in made.cluster.tasks.values() if t.status.name == "PENDING"]
    running = [t for t in made.cluster.tasks.values() if t.status.name == "RUNNING"]
    if not waiting or not running:
        return
    claimant = rng.choice(waiting)
    rng.shuffle(running)
    mine = next(registered for registered in session.reclaimable if registered.plugin == "capacity")
    victims = mine.function(claimant, running)
    left = {name: account.held for name, account in plugin.accounts.items()}
    stays = {j.key: {t.uid: t for t in j.tasks.values() if t.node is not None} for j in made.cluster.jobs.values()}
    for task in victims:
        if task.uid not in stays[task.job.key]:
            continue  # it went with its gang, which was judged once
        gang = stays[task.job.key]
        unit = list(gang.values()) if len(gang) - 1 < task.job.min_member else [task]
        for member in unit:
            del gang[member.uid]
        account = plugin.accounts[task.job.queue]
        amounts = sum(member.shape.request.vector for member in unit)
        asked = amounts > 0
        above = (left[task.job.queue] > account.deserved) & asked & account.compared
        named = {name for member in unit for name, units in member.shape.request.amounts.items() if units}
        assert (above[[0, 1, *range(3, len(above))]]).any() or not account.named & named
        own = plugin.accounts[claimant.job.queue]
        for each in (account, *account.above):
            left[each.queue.name] = left[each.queue.name] - amounts
            if each not in (own, *own.above):
                assert (left[each.queue.name] >= each.guarantee)[asked].all()
