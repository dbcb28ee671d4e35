"""Who looks on at the storm must see: each rule, broken on purpose, is told."""

from __future__ import annotations

import json

import pytest

from pumice.api import kinds
from pumice.kube import lease, rivals
from pumice.kube.writes import evicting
from pumice.model import nodes
from pumice.plugins.predicates.devices import pools
from pumice.sim.identity import Key
from tests.storm import device_objects, economy, extended, life, objects, oracle, program, structs, telling, world


@pytest.fixture
def made():
    made = world.World(1)
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    made.create(objects.node("n0", 4))
    return made


def pod(made, name, cpu, *, group="", job=""):
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    labels = {"volcano.sh/job-name": job, "volcano.sh/task-spec": "t0"} if job else {}
    metadata = {"name": name, "namespace": "a", "annotations": annotations, "labels": labels}
    made.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": objects.pod_spec(cpu)})


def bind(made, name):
    uid = made.store.find(Key(kinds.POD, "a", name))["metadata"]["uid"]
    made.store.bind(Key(kinds.POD, "a", name), uid=uid, node="n0")


def rules(made):
    return [rule for rule, _ in made.oracle.broken]


def test_too_much_on_a_node_is_seen(made):
    pod(made, "p", 3)
    pod(made, "q", 3)
    bind(made, "p")
    assert rules(made) == []
    bind(made, "q")
    assert rules(made) == ["room"]


def test_who_writes_without_the_lease_is_seen(made):
    made.oracle.sent("sched-a#1", b"POST /api/v1/namespaces/a/pods/p/binding HTTP/1.1\r\n", "")
    assert rules(made) == ["lease"]
    made.oracle.sent("user", b"POST /api/v1/namespaces/a/pods HTTP/1.1\r\n", "")
    assert rules(made) == ["lease"]


def test_who_hammers_is_seen(made):
    path = "/apis/scheduling.volcano.sh/v1beta1/queues"
    for number in range(30):
        made.oracle.economy.sent("sched-a#1", "POST", path, f"POST {path} {number}".encode())
    assert rules(made) == []
    for _ in range(30):
        made.oracle.economy.sent("sched-a#1", "POST", path, b"POST the same")
    assert rules(made) == ["hammers"]


def group(made, name, least):
    metadata = {"name": name, "namespace": "a"}
    made.create(
        {
            "apiVersion": kinds.POD_GROUP.api_version,
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": {"minMember": least},
        }
    )


def test_a_gang_in_part_and_a_gang_that_fits_and_waits_are_seen(made):
    group(made, "g", 2)
    pod(made, "p", 1, group="g")
    pod(made, "q", 1, group="g")
    bind(made, "p")
    made.oracle.judge(0.0)
    assert {"part", "fits"} <= set(rules(made))


def test_programs_that_do_not_run_are_seen(made):
    made.oracle.judge(0.0)
    assert rules(made) == ["alive"] * 4


def test_a_pod_too_many_is_seen(made):
    made.create(objects.job("j", [(1, 1, 3)], 1))
    owner = made.store.find(Key(kinds.JOB, "a", "j"))["metadata"]["uid"]
    for name in ("j-t0-0", "j-t0-1"):
        metadata = {
            "name": name,
            "namespace": "a",
            "labels": {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "t0"},
            "ownerReferences": [{"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": owner}],
        }
        made.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": objects.pod_spec(1)})
    assert rules(made) == ["twice"]


# -- evictions -------------------------------------------------------------------------------------------------------

WHY = "preempt for pod a/claimant of group a/g in queue default by the rules of gang, plan 1"
MARKED = b'{"status": {"conditions": [{"type": "DisruptionTarget"}]}}'
DELETE = b"DELETE /api/v1/namespaces/a/pods/p HTTP/1.1\r\n\r\n"


def mark(made, name, message):
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}
    made.store.patch_status(Key(kinds.POD, "a", name), {"status": {"conditions": [condition]}})


def lead(made, office, holder):
    metadata = {"name": office, "namespace": "kube-system"}
    made.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {"holderIdentity": holder},
        }
    )


def test_a_delete_that_says_not_for_whom_is_seen(made):
    lead(made, "volcano", "sched-a#1")
    pod(made, "p", 1)
    made.oracle.sent("sched-a#1", DELETE, "")
    mark(made, "p", "because")
    made.oracle.sent("sched-a#1", DELETE, "")
    assert rules(made) == ["unexplained"] * 2
    mark(made, "p", WHY)
    made.oracle.sent("sched-a#1", DELETE, "")
    assert len(rules(made)) == 2


def test_a_delete_that_means_another_pod_of_that_name_is_none_of_this_one(made):
    lead(made, "volcano", "sched-a#1")
    pod(made, "p", 1)
    uid = made.store.find(Key(kinds.POD, "a", "p"))["metadata"]["uid"]
    for meant, told in (("gone", []), (uid, ["unexplained"])):
        made.oracle.sent("sched-a#1", DELETE + json.dumps({"preconditions": {"uid": meant}}).encode(), "")
        assert rules(made) == told


def test_an_eviction_in_vain_and_one_that_was_not_finished_are_seen(made):
    lead(made, "volcano", "sched-a#1")
    group(made, "g", 1)
    pod(made, "p", 1)
    pod(made, "claimant", 1, group="g")
    mark(made, "p", WHY)
    made.oracle.sent("sched-a#1", DELETE, "")
    made.oracle.evictions.judge()
    assert rules(made) == ["in vain"]  # who has marked it does not run any more
    made.oracle.broken.clear()
    made.schedulers[0].run = "sched-a#1"
    made.oracle.sent("sched-a#1", b"PATCH /api/v1/namespaces/a/pods/p/status HTTP/1.1\r\n\r\n" + MARKED, "")
    made.oracle.evictions.judge()
    assert sorted(rules(made)) == ["in vain", "unfinished"]
    for moment, told in ((made.loop.now + 10.0, ["in vain"]), (made.loop.now + 61.0, ["in vain", "unfinished"])):
        made.oracle.broken.clear()
        made.schedulers[0].run, made.ended["sched-a#1"] = "", moment  # who has marked it had no time to finish, or had
        made.oracle.evictions.judge()
        assert sorted(rules(made)) == told
    made.store.delete(Key(kinds.POD, "a", "p"))
    bind(made, "claimant")
    made.oracle.broken.clear()
    made.oracle.evictions.judge()
    assert rules(made) == []


def test_who_writes_again_after_a_rival_has_written_is_seen(made):
    lead(made, "volcano", "sched-a#1")
    lead(made, "rival", "rival-a#1")
    write = b"PATCH /api/v1/namespaces/a/pods/p/status HTTP/1.1\r\n\r\n"
    made.oracle.sent("sched-a#1", write, "")
    made.oracle.sent("rival-a#1", write, "")
    assert rules(made) == []
    made.oracle.sent("sched-a#1", write, "")
    assert rules(made) == ["rivals"]


@pytest.mark.parametrize(
    ("led", "path", "told"),
    [(1000.0, "podgroups/g", []), (900.0, "podgroups/g", ["quiet"]), (1000.0, "pods/p/binding", ["quiet"])],
)
def test_reasons_that_nobody_has_asked_for_are_seen_but_of_who_has_just_begun_to_lead(made, led, path, told):
    made.loop.now = led
    lead(made, "volcano", "sched-a#1")
    made.loop.now = 1060.0
    made.oracle.sent("sched-a#1", f"PATCH /apis/x/v1/namespaces/a/{path} HTTP/1.1\r\n".encode(), "")
    made.oracle.judge(1050.0)
    assert [rule for rule in rules(made) if rule == "quiet"] == told


# -- what writes cost ------------------------------------------------------------------------------------------------


def test_a_write_that_changes_nothing_in_fair_weather_is_seen(made):
    lead(made, "volcano", "sched-a#1")
    pod(made, "p", 1)
    made.oracle.economy.fair_since = -100.0

    def sent(body):
        head = b"PATCH /api/v1/namespaces/a/pods/p/status HTTP/1.1\r\n\r\n"
        made.oracle.sent("sched-a#1", head + json.dumps(body).encode(), "")
        return rules(made)

    assert sent({"status": {"phase": "Pending"}}) == []  # nobody has heard of the pod
    made.loop.now += economy.HEARD
    assert sent({"status": {"phase": "Running"}}) == []
    assert sent({"status": {"conditions": [{"type": "PodScheduled"}]}}) == []
    assert sent({"status": {"phase": "Pending", "nominatedNodeName": None}}) == ["empty"]


def test_what_the_last_release_could_not_read_is_seen(made):
    group(made, "g", 1)
    assert rules(made) == []
    made.store.patch(Key(kinds.POD_GROUP, "a", "g"), {"spec": {"minMember": "one"}})
    assert rules(made) == ["unreadable"]


def test_what_is_kept_of_a_release_describes_its_records():
    """It is that of the only release there is, so nothing may read less than it did; a new field is no matter."""
    for name, before in structs.kept().items():
        now = structs.today().get(name, {})
        for field, schema in before.get("properties", {}).items():
            assert now.get("properties", {}).get(field) == schema, f"{name}.{field}"


def test_too_many_connections_timers_tasks_and_lines_are_seen(made):
    program = made.schedulers[0]
    program.run = "sched-a#1"
    program.log.write("line\n" * 1000)
    made.oracle.economy.judge()
    assert [text.partition(" has ")[2] for _, text in made.oracle.broken] == ["1000 lines in its log, more than 40"]


def test_retries_that_are_counted_twice_and_what_an_owner_has_left_are_seen(made):
    made.create(objects.job("j", [(1, 1, 3)], 1))
    key = Key(kinds.JOB, "a", "j")
    made.store.patch_status(key, {"status": {"retryCount": 1}})
    assert rules(made) == []
    made.store.patch_status(key, {"status": {"retryCount": 3}})
    assert rules(made) == ["retries"]
    owner = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": "another"}
    metadata = {"name": "p", "namespace": "a", "ownerReferences": [owner]}
    made.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": objects.pod_spec(1)})
    made.oracle.judge_owners()
    assert rules(made) == ["retries", "orphan"]


# -- defects in the programs -----------------------------------------------------------------------------------------


def broken_rules(happen):
    """Give the rules that are broken where this happens to a world."""

    def live(_):
        made = life.begun()
        happen(made)
        return rules(made)

    return set(telling.apart(live))


def work(made):
    """Give somebody something to do all the time."""
    made.create(objects.node("n0", 4))
    for number in range(30):
        made.create(objects.job(f"j{number}", [(1, 1, 2)], 1))
        made.run_until(made.loop.now + 1.0)


def preempt(made):
    """Let an important Job come to a cluster that a less important one fills."""
    made.create(objects.node("n0", 4))
    conf = objects.configuration(objects.GOOD[2])["data"]
    made.store.patch(Key(kinds.CONFIG_MAP, objects.HOME, objects.CONFIGURATION), {"data": conf})
    made.create(objects.job("small", [(4, 1, 1000)], 1, priority="low"))
    made.run_until(15.0)
    made.create(objects.job("great", [(2, 1, 1000)], 2, priority="high"))
    made.run_until(25.0)
    made.oracle.evictions.judge()


def install_twice(made):
    """Install the scheduler a second time, and give both something to do."""
    made.rivals.append(program.Scheduler(made, "rival-a", "rival"))
    made.rivals[0].start()
    work(made)


def grab(self, found, now, wall):
    """Take a Lease, whoever holds it."""
    return self._write(found or lease.Record(version=""), now, wall)


def silent(marks):
    def told(self, effect):
        made = marks(self, effect)
        for condition in made["status"]["conditions"]:
            condition["message"] = "evicted"
        return made

    return told


async def mark_only(self, effect):
    """Mark a victim, and forget to delete it."""
    where = (effect.namespace, effect.name)
    await self._api.patch(kinds.POD, *where, self._marks(effect), subresource="status", strategic=True)


def lose_amounts(made):
    """Let a node lose its GPUs for good, and somebody ask for one long after."""
    made.create(objects.node("n0", 4, gpus=2))
    made.run_until(10.0)
    made.store.patch_status(Key(kinds.NODE, "", "n0"), {"status": {"allocatable": {extended.GPU: "0"}}})
    made.run_until(10.0 + oracle.VIEW + 5.0)
    made.create(objects.pod("p", 1000, objects.pod_spec(1, gpus=1)))
    made.run_until(made.loop.now + 10.0)


def taint_all(made):
    """Let a rule taint every device, and somebody claim one long after."""
    made.create(objects.node("n0", 4))
    for each in device_objects.slices("n0", ("small", "large"), 1, 1):
        made.create(each)
    made.create(device_objects.taint_rule("t", {}, {"key": "sick", "effect": "NoSchedule"}))
    made.run_until(10.0 + oracle.VIEW)
    made.create(objects.pod("p", 1000, objects.pod_spec(1, claims=[{"resourceClaimTemplateName": "one"}])))
    made.run_until(made.loop.now + 10.0)


def never_fewer(register):
    def registered(self, record, node, allocatable, native):
        known = vars(never_fewer).setdefault(node.metadata.name, {})
        known.update({name: max(units, known.get(name, 0)) for name, units in allocatable.items()})
        return register(self, record, node, known, native)

    return registered


DEFECTS = [
    (lose_amounts, (nodes.NodeTable, "register"), never_fewer(nodes.NodeTable.register), "room"),
    (taint_all, (pools.Catalogue, "_taints"), lambda *_: (), "tainted"),
    (work, (lease.Candidate, "look"), grab, "lease"),
    (preempt, (evicting.ApiEvictor, "_marks"), silent(evicting.ApiEvictor._marks), "unexplained"),  # noqa: SLF001  where the defect is put
    (preempt, (evicting.ApiEvictor, "_disrupt"), mark_only, "unfinished"),
    (install_twice, (rivals.Rivals, "judge"), lambda *_: None, "rivals"),
]


@pytest.mark.parametrize(("happen", "place", "defect", "rule"), DEFECTS)
def test_a_defect_is_told_and_nothing_without_it(monkeypatch, happen, place, defect, rule):
    assert broken_rules(happen) == set()
    monkeypatch.setattr(*place, defect)
    assert rule in broken_rules(happen)
