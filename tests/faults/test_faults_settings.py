"""What the scheduler itself depends on, broken and mended while it runs: its configuration, its credentials, the queues it made."""

from __future__ import annotations

from faults_process import Scheduler
from rig import Rig

from pumice.api import kinds
from pumice.kube.access import credentials
from testbed import faults, waiting

GOOD = (
    'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}]\n'
)
CLOSED = GOOD.replace("enqueue, allocate, backfill", "enqueue")
BROKEN = {
    "unknown plugin": GOOD.replace("gang", "gangs"),
    "no YAML": "actions: [",
    "wrong type": GOOD.replace("[{name: priority}", "[{name: 7}"),
    "nothing": "",
}


def test_a_broken_configuration_changes_nothing_and_a_mended_one_counts(view, proxy, tmp_path):
    path = tmp_path / "scheduler.conf"
    path.write_text(GOOD)
    view.node("n1", 20)
    with Scheduler(proxy, "--leader-elect=false", f"--scheduler-conf={path}") as scheduler:
        scheduler.says("every list is complete")
        for number, text in enumerate(BROKEN.values()):
            path.write_text(text)
            waiting.until(lambda n=number: scheduler.log.count("configuration refused") > n, tell=lambda: scheduler.log)
            view.gang(f"gang-{number}", 2)
            waiting.until(lambda n=number: view.phases().get(f"gang-{n}") == "Running", tell=lambda: scheduler.log)
        path.unlink()
        scheduler.says("configuration cannot be read")
        view.gang("without", 2)
        waiting.until(lambda: view.phases()["without"] == "Running", tell=lambda: scheduler.log)
        path.write_text(CLOSED)
        scheduler.says("actions=enqueue\n")
        view.gang("closed", 2)
        waiting.until(lambda: view.phases()["closed"] == "Inqueue", tell=lambda: scheduler.log)
        assert view.bound("closed") == set()
        path.write_text(GOOD)
        waiting.until(lambda: set(view.phases().values()) == {"Running"}, tell=lambda: scheduler.log)
        assert scheduler.stop() == 0
    assert not view.over_committed()
    assert not view.broken_gangs()


def test_a_token_that_expires_is_read_again(view, proxy, tmp_path):
    path = tmp_path / "token"
    first, second = "as good as any", "better"
    path.write_text(first)
    proxy.token = first
    with Rig(view, proxy, credentials=credentials.TokenFile(path)) as rig:
        view.node("n1", 4)
        view.gang("one", 2)
        waiting.until(lambda: view.phases() == {"one": "Running"}, tell=view.story)
        proxy.token = second
        proxy.cut()
        view.gang("two", 2)
        path.write_text(second)
        waiting.until(lambda: set(view.phases().values()) == {"Running"}, tell=view.story)
        rig.check()


def test_a_pod_without_a_group_gets_one_whatever_befalls_these_writes(view, proxy):
    """Lost answers, refusals in passing and cuts, of the creation of the group and of the patch that names it on the pod."""
    for fault in (faults.Lose(), faults.Answer(500), faults.Cut(), faults.Answer(429, retry_after=0)):
        proxy.disturb(fault, "POST", "/podgroups$")
        proxy.disturb(fault, "PATCH", "/pods/alone-.$")
    view.node("n1", 4)
    with Scheduler(proxy, "--leader-elect=false") as scheduler:
        for index in range(4):
            view.pod(f"alone-{index}", "")
        waiting.until(lambda: len(view.bound()) == 4, tell=lambda: scheduler.log)
        waiting.until(lambda: list(view.phases().values()) == ["Running"] * 4, tell=lambda: scheduler.log)
        assert scheduler.stop() == 0
    assert not view.over_committed()


def test_a_queue_that_is_deleted_takes_its_jobs_with_it_until_it_is_back(rig):
    rig.view.create(kinds.QUEUE, "batch", spec={"weight": 1})
    rig.view.node("n1", 4)
    rig.view.gang("one", 2, queue="batch")
    waiting.until(lambda: rig.view.phases() == {"one": "Running"}, tell=rig.view.story)
    rig.view.delete(kinds.QUEUE, "batch")
    waiting.until(lambda: "batch" not in rig.cluster.queues)
    rig.view.gang("two", 2, queue="batch")
    waiting.until(lambda: rig.task("two-1"))
    rig.check()
    assert rig.view.bound() == {"one-0", "one-1"}
    rig.view.create(kinds.QUEUE, "batch", spec={"weight": 1})
    waiting.until(lambda: rig.view.phases() == {"one": "Running", "two": "Running"}, tell=rig.view.story)
    rig.check()
