"""Controllers of Volcano's Jobs on a real API server that fails them: never more pods than replicas, none orphaned, no retry lost or counted twice."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from job_lives import NAME, PODS, Controllers, Stage, phase, state, whole_life

from pumice.api import kinds
from testbed import faults, waiting
from testbed.proxy import Proxy

# Requests about objects of a namespace, which watches are not; events are nobody's concern.
REQUESTS = "/namespaces/{}/(?!events)"
GIVES_UP = 3.0  # seconds after which a request that is held up keeps nobody from working


@contextlib.asynccontextmanager
async def playing(defined, proxy, **more):
    async with Stage(defined) as stage:
        controllers = await Controllers(proxy.url, **more).start()
        try:
            yield stage, controllers
        finally:
            await controllers.kill()


def disturb(proxy, namespaces, make):
    """Let something befall the first request about the first namespace, the second about the second, and so on."""
    for number, namespace in enumerate(namespaces):
        proxy.disturb(make(), "*", REQUESTS.format(namespace), skip=number)


async def length_of_a_life(stage, proxy):
    """Live once without faults, and give how many requests that took."""
    (namespace,) = await stage.begin(1, whole_life)
    await stage.submit([namespace])
    await stage.completed([namespace])
    return sum(proxy.count(method, REQUESTS.format(namespace)) for method in ("GET", "POST", "PATCH", "DELETE"))


@pytest.mark.parametrize(
    ("fault", "timeout"),
    [
        (faults.Cut, waiting.PATIENCE),
        (faults.Lose, waiting.PATIENCE),
        (lambda: faults.Slow(3.0), 2.0),
        (lambda: faults.Late(3.0), 2.0),
    ],
    ids=["never sent", "answer lost", "answer later than anybody waits", "served later than anybody waits"],
)
def test_a_job_lives_as_if_nothing_had_happened_whichever_request_fails(defined, proxy, fault, timeout):
    async def scene():
        async with playing(defined, proxy, timeout=timeout) as (stage, _):
            length = await length_of_a_life(stage, proxy)
            assert length > 3 * PODS
            namespaces = await stage.begin(length, whole_life)
            disturb(proxy, namespaces, fault)
            await stage.submit(namespaces)
            await stage.completed(namespaces)
            await stage.until(lambda: not proxy.busy, "nothing is on its way")

    asyncio.run(scene())


@pytest.mark.parametrize("then", [faults.Cut, faults.Pass], ids=["never arrives", "arrives after the take-over"])
def test_a_job_is_taken_over_by_the_next_whichever_request_the_first_is_killed_in(defined, proxy, then):
    async def scene():
        async with Stage(defined) as stage:
            first = await Controllers(proxy.url, timeout=GIVES_UP).start()
            length = await length_of_a_life(stage, proxy)
            namespaces = await stage.begin(length, whole_life)
            held = faults.Hold(then())
            disturb(proxy, namespaces, lambda: held)
            await stage.submit(namespaces)
            await stage.until(
                lambda: proxy.serving("/namespaces/") + stage.states(namespaces).count("Completed") >= length,
                "every Job is held up, or done",
            )
            await first.kill()
            second = await Controllers(proxy.url, timeout=GIVES_UP).start()
            await stage.until(lambda: stage.states(namespaces).count("Completed") > length // 2, "taken over")
            proxy.calm()
            try:
                await stage.completed(namespaces)
            finally:
                await second.kill()

    asyncio.run(scene())


def test_watches_that_are_late_by_seconds_make_no_pod_too_many_and_count_no_retry_twice(defined, proxy):
    async def scene():
        async with playing(defined, proxy, silence=2.0) as (stage, _):
            namespaces = await stage.begin(4, whole_life)
            # Whatever the controllers watch stays open and says nothing more, three times over.
            proxy.disturb(faults.SilenceWatch(1), "GET", "watch=", times=30)
            proxy.cut("watch=")
            await stage.submit(namespaces)
            await stage.completed(namespaces)

    asyncio.run(scene())


async def run_only(stage, namespace):
    """Let pods run, and nothing else."""
    await stage.let_in(namespace)
    for pod in stage.pods(namespace):
        if phase(pod) == "Pending":
            await stage.set_phase(pod, "Running")


def test_pods_that_others_delete_are_made_again_and_counted_as_the_policy_says(defined, proxy):
    async def scene():
        async with playing(defined, proxy) as (stage, _):
            plain, restarting = await stage.begin(2, run_only)
            await stage.submit([plain], policies=())
            await stage.submit([restarting], policies=({"event": "PodEvicted", "action": "RestartJob"},))
            both = [plain, restarting]
            await stage.until(lambda: stage.states(both) == ["Running", "Running"], "running")
            before = {pod["metadata"]["uid"] for namespace in both for pod in stage.pods(namespace)}
            for namespace in both:
                await stage.client.delete(kinds.POD, namespace, f"{NAME}-a-1")
            await stage.until(
                lambda: (
                    stage.job(restarting)["status"].get("retryCount") == 1
                    and all(len(stage.pods(each)) == PODS for each in both)
                    and stage.states(both) == ["Running", "Running"]
                ),
                "running again",
            )
            after = [{pod["metadata"]["uid"] for pod in stage.pods(namespace)} for namespace in both]
            assert (len(after[0] - before), len(after[1] - before)) == (1, PODS)
            assert stage.job(plain)["status"].get("retryCount", 0) == 0
            assert not stage.problems

    asyncio.run(scene())


def test_a_quota_that_refuses_pods_holds_a_job_up_and_is_told_of_and_costs_nobody_else_anything(defined, proxy):
    async def scene():
        async with playing(defined, proxy) as (stage, _):
            tight, free = await stage.begin(2, run_only)
            hard = {"pods": "1"}
            quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": tight}}
            await stage.client.create(kinds.RESOURCE_QUOTA, {**quota, "spec": {"hard": hard}})
            status = {"status": {"hard": hard, "used": {"pods": "0"}}}  # nobody here keeps account of quotas
            await stage.client.patch(kinds.RESOURCE_QUOTA, tight, "q", status, subresource="status")
            await stage.submit([tight, free])
            await stage.until(lambda: state(stage.job(free) or {}) == "Running", "the other runs")
            await stage.until(lambda: len(stage.pods(tight)) == 1, "as many as the quota lets in")

            async def told():
                page = await stage.client.list_page(kinds.EVENT, namespace=tight, query={})
                return [each for each in json.loads(page)["items"] if each["reason"] == "FailedCreate"]

            async with asyncio.timeout(waiting.PATIENCE):
                while not await told():  # noqa: ASYNC110  what it asks about is on a server
                    await asyncio.sleep(0.1)
            assert "exceeded quota" in (await told())[0]["message"]
            await stage.client.delete(kinds.RESOURCE_QUOTA, tight, "q")
            await stage.until(lambda: state(stage.job(tight)) == "Running", "running once it is lifted")
            assert stage.job(tight)["status"].get("retryCount", 0) == 0
            assert not stage.problems

    asyncio.run(scene())


async def nothing(_stage, _namespace):
    """Leave groups waiting and pods pending."""


async def let_in_only(stage, namespace):
    await stage.let_in(namespace)


def test_nothing_more_is_made_for_a_job_that_is_deleted_in_any_phase(defined, proxy):
    async def scene():
        async with playing(defined, proxy) as (stage, _):
            waiting, pending, running, ending = [
                (await stage.begin(1, play))[0] for play in (nothing, let_in_only, run_only, whole_life)
            ]
            everywhere = [waiting, pending, running, ending]
            await stage.submit(everywhere)
            await stage.until(
                lambda: (
                    stage.states(everywhere) == ["Pending", "Pending", "Running", "Completed"]
                    and len(stage.pods(pending)) == PODS
                ),
                "each in its phase",
            )
            there = {each: {pod["metadata"]["uid"] for pod in stage.pods(each)} for each in everywhere}
            for namespace in everywhere:
                await stage.client.delete(kinds.JOB, namespace, NAME)
            await stage.until(lambda: not any(stage.job(each) for each in everywhere), "gone")
            # One more Job shows that the controllers have had their turns.
            (later,) = await stage.begin(1, whole_life)
            await stage.submit([later])
            await stage.completed([later])
            for namespace in everywhere:
                assert {pod["metadata"]["uid"] for pod in stage.pods(namespace)} <= there[namespace]

    asyncio.run(scene())


def test_while_a_webhook_is_away_nothing_is_lost_and_nothing_counted(defined, proxy):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": "away.pumice.dev",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    kind = kinds.Kind(
        name="ValidatingWebhookConfiguration",
        group="admissionregistration.k8s.io",
        version="v1",
        plural="validatingwebhookconfigurations",
        namespaced=False,
    )

    async def scene():
        async with playing(defined, proxy) as (stage, _):
            (namespace,) = await stage.begin(1, whole_life)
            selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            webhooks = [{**hook, "namespaceSelector": selector}]
            manifest = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "away"}}
            await stage.client.create(kind, {**manifest, "webhooks": webhooks})
            try:
                await stage.submit([namespace])
                await stage.until(lambda: proxy.count("POST", f"/namespaces/{namespace}/pods") > 2, "tried again")
                assert not stage.pods(namespace)
            finally:
                await stage.client.delete(kind, "", "away")
            await stage.completed([namespace])

    asyncio.run(scene())


@pytest.fixture
def proxy(defined):
    defined.empty()
    with Proxy(defined.url, defined.token, defined.ca_file) as running:
        yield running
