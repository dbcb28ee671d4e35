"""Controllers on the simulated cluster, in virtual time."""

from pumice.api import duration, kinds
from pumice.controllers import standard
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.reconciling import Reconciler
from pumice.sim.store import ObjectStore

TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}}


def test_a_job_runs_and_goes_when_its_time_to_live_is_over_in_virtual_time():
    clock = VirtualClock()
    store = ObjectStore(clock.now)
    said = []
    reconciler = Reconciler(store, clock, standard.controllers(), tell=said.append)
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE, "completions": 3, "parallelism": 2}
    metadata = {"name": "j", "namespace": "a"}
    job = Key(kinds.BATCH_JOB, "a", "j")
    spec["ttlSecondsAfterFinished"] = 60
    store.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    while reconciler.react():
        pods = list(store.scan(kinds.POD))
        assert sum("status" not in pod for pod in pods) <= 2
        for pod in pods:
            if "status" not in pod:
                store.patch_status(Key(kinds.POD, "a", pod["metadata"]["name"]), {"status": {"phase": "Succeeded"}})
    assert store.find(job)["status"]["succeeded"] == 3
    assert [note.reason for note in said].count("SuccessfulCreate") == 3
    due = clock.now() + 60 * duration.SECOND
    while (soon := reconciler.next_due()) < due:
        assert store.find(job) is not None
        clock.advance_to(soon)
        reconciler.react()
    assert soon == due
    assert store.find(job) is not None
    clock.advance_to(due)
    reconciler.react()
    assert store.find(job) is None
