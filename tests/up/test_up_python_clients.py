"""The official Python client and kubernetes_asyncio on a cluster of `pumice up`: every answer becomes the model that they expect."""

from __future__ import annotations

import asyncio
import functools
import json
from unittest import mock

import aiohttp
import kubernetes
import kubernetes_asyncio
import pytest
import yaml
from kubernetes import client as models
from kubernetes.dynamic import DynamicClient

from pumice.kube.calls.open_sockets import OpenSockets
from testbed import waiting
from testbed.waiting import until

GROUP = ("scheduling.volcano.sh", "v1beta1")
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: planets.python.example.com}
spec:
  group: python.example.com
  scope: Namespaced
  names: {plural: planets, singular: planet, kind: Planet}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def api(cluster):
    with kubernetes.config.new_client_from_config(cluster.kubeconfig) as made:
        yield made


@pytest.fixture
def core(api):
    return models.CoreV1Api(api)


@pytest.fixture
def home(core):
    """A namespace of the test's own, made by the client under test."""
    wanted = models.V1Namespace(metadata=models.V1ObjectMeta(generate_name="python-"))
    return core.create_namespace(wanted).metadata.name


def pod(name, *command, **labels):
    container = models.V1Container(name="c", image="busybox", command=list(command) or None)
    return models.V1Pod(
        metadata=models.V1ObjectMeta(name=name, labels=labels or None),
        spec=models.V1PodSpec(containers=[container], restart_policy="Never"),
    )


def test_a_pod_is_followed_from_its_creation_to_its_end(core, home):
    made = core.create_namespaced_pod(home, pod("hello", "sh", "-c", "echo from python; sleep 2"))
    phases = []
    watch = kubernetes.watch.Watch()
    for event in watch.stream(
        core.list_namespaced_pod, home, resource_version=made.metadata.resource_version, timeout_seconds=240
    ):
        assert isinstance(event["object"], models.V1Pod)
        phases += [event["object"].status.phase] * (event["object"].status.phase not in phases)
        if phases[-1] == "Succeeded":
            watch.stop()
    assert phases == ["Pending", "Running", "Succeeded"]
    assert core.read_namespaced_pod_log("hello", home) == "from python\n"

    def told():
        events = core.list_namespaced_event(home, field_selector="involvedObject.name=hello").items
        return {event.reason for event in events}

    until(lambda: {"Scheduled", "Started"} <= told(), told)  # whoever binds tells of it afterwards


def test_a_deployment_is_created_scaled_patched_and_deleted(api, core, home):
    apps = models.AppsV1Api(api)
    template = models.V1PodTemplateSpec(
        metadata=models.V1ObjectMeta(labels={"app": "web"}),
        spec=models.V1PodSpec(containers=[models.V1Container(name="c", image="nginx:1")]),
    )
    spec = models.V1DeploymentSpec(
        replicas=2, selector=models.V1LabelSelector(match_labels={"app": "web"}), template=template
    )
    apps.create_namespaced_deployment(home, models.V1Deployment(metadata=models.V1ObjectMeta(name="web"), spec=spec))
    until(lambda: apps.read_namespaced_deployment("web", home).status.ready_replicas == 2)
    scaled = apps.patch_namespaced_deployment_scale("web", home, {"spec": {"replicas": 4}})
    assert scaled.spec.replicas == 4
    until(lambda: apps.read_namespaced_deployment("web", home).status.ready_replicas == 4)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    apps.patch_namespaced_deployment("web", home, image)
    until(lambda: apps.read_namespaced_deployment_status("web", home).status.updated_replicas == 4)
    apps.delete_namespaced_deployment("web", home, propagation_policy="Foreground")
    until(lambda: core.list_namespaced_pod(home).items == [])


def test_a_list_comes_in_pages_and_by_selectors(core, home):
    for number in range(5):
        core.create_namespaced_config_map(
            home, models.V1ConfigMap(metadata=models.V1ObjectMeta(name=f"m{number}", labels={"odd": str(number % 2)}))
        )
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(home, limit=2, _continue=token, label_selector="odd")
        names += [each.metadata.name for each in page.items]
        token = page.metadata._continue  # noqa: SLF001  so the client calls what is a keyword here
        if not token:
            break
    assert names == ["m0", "m1", "m2", "m3", "m4"]
    assert len(core.list_namespaced_config_map(home, label_selector="odd=1").items) == 2
    deleted = core.delete_collection_namespaced_config_map(home, label_selector="odd=1")
    assert deleted.kind in ("Status", "ConfigMapList")
    assert len(core.list_namespaced_config_map(home, label_selector="odd").items) == 3


def test_what_is_refused_is_an_exception_with_a_status(core, home):
    with pytest.raises(models.ApiException) as missing:
        core.read_namespaced_pod("nobody", home)
    assert (missing.value.status, json.loads(missing.value.body)["reason"]) == (404, "NotFound")
    with pytest.raises(models.ApiException) as invalid:
        core.create_namespaced_pod(home, pod("Not A Name"))
    body = json.loads(invalid.value.body)
    assert (invalid.value.status, body["details"]["causes"][0]["field"]) == (422, "metadata.name")
    core.create_namespaced_config_map(home, models.V1ConfigMap(metadata=models.V1ObjectMeta(name="m")))
    stale = core.read_namespaced_config_map("m", home)
    core.patch_namespaced_config_map("m", home, {"data": {"a": "1"}})
    with pytest.raises(models.ApiException) as conflict:
        core.replace_namespaced_config_map("m", home, stale)
    assert conflict.value.status == 409


def test_a_budget_keeps_a_pod_from_being_evicted(api, core, home):
    policy = models.PolicyV1Api(api)
    core.create_namespaced_pod(home, pod("precious", app="p"))
    until(lambda: core.read_namespaced_pod("precious", home).status.phase == "Running")
    spec = models.V1PodDisruptionBudgetSpec(min_available=1, selector=models.V1LabelSelector(match_labels={"app": "p"}))
    budget = models.V1PodDisruptionBudget(metadata=models.V1ObjectMeta(name="keep"), spec=spec)
    policy.create_namespaced_pod_disruption_budget(home, budget)
    eviction = models.V1Eviction(metadata=models.V1ObjectMeta(name="precious", namespace=home))
    with pytest.raises(models.ApiException) as refused:
        core.create_namespaced_pod_eviction("precious", home, eviction)
    assert refused.value.status == 429
    policy.delete_namespaced_pod_disruption_budget("keep", home)
    core.create_namespaced_pod_eviction("precious", home, eviction)
    until(lambda: core.list_namespaced_pod(home).items == [])


def test_custom_objects_and_kinds_are_reached_by_the_dynamic_client(api, home, tmp_path):
    kubernetes.utils.create_from_dict(api, yaml.safe_load(DEFINITION))
    dynamic = DynamicClient(api)
    planets = until(lambda: dynamic.resources.search(kind="Planet"))[0]
    body = {"apiVersion": "python.example.com/v1", "kind": "Planet", "metadata": {"name": "mars"}, "spec": {"moons": 2}}
    planets.create(body=body, namespace=home)
    applied = planets.server_side_apply(
        body={**body, "spec": {"moons": 2, "rings": False}}, namespace=home, field_manager="astronomer"
    )
    assert applied.spec.rings is False
    assert "astronomer" in {entry.manager for entry in applied.metadata.managedFields}
    assert [each.metadata.name for each in planets.get(namespace=home).items] == ["mars"]
    groups = models.CustomObjectsApi(api)
    wanted = {"apiVersion": "/".join(GROUP), "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    groups.create_namespaced_custom_object(*GROUP, home, "podgroups", wanted)
    until(lambda: groups.get_namespaced_custom_object(*GROUP, home, "podgroups", "g").get("status"))
    planets.delete(name="mars", namespace=home)
    assert planets.get(namespace=home).items == []


def test_discovery_version_and_openapi_are_read(api):
    assert models.VersionApi(api).get_code().git_version.startswith("v1.36")
    assert "apps" in {group.name for group in models.ApisApi(api).get_api_versions().groups}
    named = {each.name for each in models.BatchV1Api(api).get_api_resources().resources}
    assert {"jobs", "jobs/status", "cronjobs"} <= named


# ---- kubernetes_asyncio


@pytest.fixture
def asynchronous(cluster):
    """Runs a coroutine that is given the asynchronous client."""

    def run(work):
        async def inside():
            configuration = kubernetes_asyncio.client.Configuration()
            await kubernetes_asyncio.config.load_kube_config(cluster.kubeconfig, client_configuration=configuration)
            # A watch that is left early leaves its connection to the garbage collector, which may find it in any test.
            sockets = OpenSockets()
            connector = functools.partial(aiohttp.TCPConnector, socket_factory=sockets.make)
            with mock.patch("aiohttp.TCPConnector", connector):
                client = kubernetes_asyncio.client.ApiClient(configuration)
            try:
                async with client as api, asyncio.timeout(waiting.PATIENCE):
                    return await work(kubernetes_asyncio.client.CoreV1Api(api))
            finally:
                await sockets.end()

        return asyncio.run(inside())

    return run


def test_an_asynchronous_watch_tells_every_change_in_order(asynchronous, home):
    async def follow(core):
        maps = {"api_version": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
        first = await core.list_namespaced_config_map(home)
        await core.create_namespaced_config_map(home, maps)
        await core.patch_namespaced_config_map("m", home, {"data": {"a": "1"}})
        await core.patch_namespaced_config_map("m", home, {"data": {"a": "2"}})
        await core.delete_namespaced_config_map("m", home)
        seen = []
        async with kubernetes_asyncio.watch.Watch() as watch:
            version = first.metadata.resource_version
            async for event in watch.stream(
                core.list_namespaced_config_map, home, resource_version=version, timeout_seconds=240
            ):
                seen.append((event["type"], (event["object"].data or {}).get("a")))
                if event["type"] == "DELETED":
                    break
        return seen

    seen = asynchronous(follow)
    assert seen == [("ADDED", None), ("MODIFIED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_an_asynchronous_watch_of_pods_sees_them_scheduled_and_ended(asynchronous, home):
    async def follow(core):
        container = {"name": "c", "image": "busybox", "command": ["sleep", "1"]}
        names = [f"p{number}" for number in range(5)]
        spec = {"restartPolicy": "Never", "containers": [container]}
        await asyncio.gather(
            *(core.create_namespaced_pod(home, {"metadata": {"name": name}, "spec": spec}) for name in names)
        )
        ended = {}
        async with kubernetes_asyncio.watch.Watch() as watch:
            async for event in watch.stream(core.list_namespaced_pod, home, timeout_seconds=240):
                found = event["object"]
                if found.status.phase == "Succeeded":
                    ended[found.metadata.name] = found.spec.node_name
                if len(ended) == len(names):
                    break
        return ended

    ended = asynchronous(follow)
    assert sorted(ended) == [f"p{number}" for number in range(5)]
    assert all(node.startswith("node-") for node in ended.values())


def test_an_asynchronous_watch_ends_by_itself_when_its_time_is_over(asynchronous, home):
    async def follow(core):
        async with kubernetes_asyncio.watch.Watch() as watch:
            return [event async for event in watch.stream(core.list_namespaced_secret, home, timeout_seconds=1)]

    assert asynchronous(follow) == []
