"""Volcano's kinds on a local cluster: completed and judged as webhooks would, with the same findings, and nothing else is touched."""

from __future__ import annotations

import pytest

from admission import admission_objects as objects
from pumice.apiserver import cluster, requests, resources, statuses
from pumice.local_cluster import contents
from pumice.sim import structure
from pumice.sim.clock import VirtualClock
from pumice.sim.store import ObjectStore

OPTIONS = requests.Options(manager="test")


@pytest.fixture
def server():
    made = cluster.Cluster(ObjectStore(VirtualClock().now, has_generation=resources.has_generation), VirtualClock().now)
    made.start()
    contents.install(made)
    made.judge_volcano_kinds()
    return made


def target(server, manifest, **more):
    resource = server.registry.of_kind(manifest["apiVersion"], manifest["kind"])
    return requests.Target(resource=resource, namespace=manifest["metadata"].get("namespace", ""), **more)


def create(server, manifest, warnings=None):
    found = [] if warnings is None else warnings
    return server.writing.create(target(server, manifest), structure.copied(manifest), OPTIONS, found)


def patch(server, manifest, body, subresource=""):
    where = target(server, manifest, name=manifest["metadata"]["name"], subresource=subresource)
    return server.writing.patch(where, ("merge", body), OPTIONS, [])[0]


BROKEN = [
    objects.job(minAvailable=9, queue="nope", plugins={"x": []}),
    objects.queue(guarantee={"resource": {"cpu": 2}}),
    objects.pod_group(queue="nope"),
    objects.hyper_node({"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}),
    objects.cron_job(schedule="x"),
]


@pytest.mark.parametrize("manifest", BROKEN, ids=lambda each: each["kind"])
def test_an_object_is_refused_with_the_findings_of_its_rules(server, manifest):
    with pytest.raises(statuses.Problem) as caught:
        create(server, manifest)

    causes = [(each["field"], each["message"]) for each in caught.value.details["causes"]]
    assert causes == objects.refusals(manifest)
    assert caught.value.code == 422
    assert caught.value.message.startswith(f'admission webhook "validate{manifest["kind"].lower()}.volcano.sh" denied')


def test_a_job_is_stored_as_it_was_completed_and_warnings_are_passed_on(server):
    warnings = []

    stored = create(server, objects.job(queue="", minAvailable=0, priorityClassName="high"), warnings)

    spec = stored["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["minAvailable"], spec["maxRetry"]) == (
        "default",
        "volcano",
        2,
        3,
    )
    assert spec["tasks"][0]["minAvailable"] == 2
    assert ["no such PriorityClass" in each for each in warnings] == [True]


def test_only_numbers_of_pods_may_change_and_the_status_is_nobodys_business(server):
    job = objects.job()
    create(server, job)

    with pytest.raises(statuses.Problem, match=r"spec\.queue: may not change"):
        patch(server, job, {"spec": {"queue": "q"}})
    assert patch(server, job, {"spec": {"minAvailable": 2}})["spec"]["minAvailable"] == 2
    assert patch(server, job, {"status": {"state": {"phase": "Running"}}}, "status")["status"]


def test_the_tree_of_queues_is_followed_as_it_grows_and_shrinks(server):
    create(server, objects.queue("p"))
    create(server, objects.queue("c", parent="p"))

    with pytest.raises(statuses.Problem, match=r"has 1 queues below it \(c\)"):
        create(server, objects.job(queue="p"))
    parent = target(server, objects.queue("p"), name="p")
    with pytest.raises(statuses.Problem, match="delete these first"):
        server.deleting.delete(parent, {}, dry_run=False)
    server.deleting.delete(target(server, objects.queue("c"), name="c"), {}, dry_run=False)
    create(server, objects.job(queue="p"))
    server.deleting.delete(parent, {}, dry_run=False)


def test_default_and_root_stay(server):
    for name in ("default", "root"):
        with pytest.raises(statuses.Problem, match="may not be deleted"):
            server.deleting.delete(target(server, objects.queue(name), name=name), {}, dry_run=False)


def test_nothing_is_asked_about_the_systems_own_namespace(server):
    wrong = objects.edited(objects.job(minAvailable=9), ("metadata", "namespace"), "kube-system")

    assert create(server, wrong)["spec"]["minAvailable"] == 9


def test_what_only_we_find_wrong_is_stored_with_a_warning_and_refused_where_rules_are_strict(server):
    manifest, warnings = objects.job(policies=[{"action": "AbortJob", "events": ["PodFailed", "PodFailed"]}]), []
    told = "spec.policies[0].events[1]: is PodFailed, which the same policy lists already; once is enough"

    create(server, manifest, warnings)
    server.judge_volcano_kinds(strict=True)
    with pytest.raises(statuses.Problem) as caught:
        create(server, objects.edited(manifest, ("metadata", "name"), "other"))

    assert warnings == [told]
    assert caught.value.message.endswith(told)
