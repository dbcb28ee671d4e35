"""Watches against a real API server: streamed and paged lists, cuts, compaction, restarts, silence, kinds that come and go."""

import asyncio
import json
import random
import uuid

import pytest
from watch_cluster import Pods, following, until_equal
from watch_sink import CheckingSink

from pumice.api import decoding, kinds
from pumice.cache.options import Options
from pumice.kube.watches import discovery, informers
from pumice.kube.watches.watching import WatchSpec
from testbed import waiting


@pytest.fixture(
    params=[
        pytest.param("api_server", marks=pytest.mark.kube),
        pytest.param("old_api_server", marks=[pytest.mark.kube, pytest.mark.old_etcd]),
    ]
)
def pods(request):
    """Pods on a server that streams lists, and on one over an etcd that is too old for it."""
    server = request.getfixturevalue(request.param)
    return Pods(server, server.new_namespace())


def spec_of(pods, **more):
    return WatchSpec(kinds.POD, field_selector=pods.selector, **more)


def history(pods):
    """Create, modify, delete and create again."""
    for name in "abc":
        pods.create(name)
    pods.modify("a", "1")
    pods.delete("b")
    pods.delete("c")
    pods.create("c")


def check_following(pods, expected):
    async def run():
        sink = CheckingSink()
        await asyncio.to_thread(pods.create, "before")
        async with following(pods.server, [spec_of(pods)], sink) as (informer, recording):
            await informer.wait_synced()
            assert list(sink.known) == ["before"]
            await asyncio.to_thread(history, pods)
            await until_equal(pods, sink)
            assert recording.asked == expected
            of_c = [event_type for event_type, name, *_ in sink.told if name == "c"]
            assert [event_type for event_type in of_c if event_type != "MODIFIED"] == ["ADDED", "DELETED", "ADDED"]

    asyncio.run(run())


def test_a_real_server_streams_its_list_and_goes_on_in_the_same_request(api_server, namespace):
    check_following(Pods(api_server, namespace), ["stream"])


def test_over_an_old_etcd_streams_are_declined_and_lists_are_paged(old_api_server):
    check_following(Pods(old_api_server, old_api_server.new_namespace()), ["stream", "list", "watch"])


def test_pages_make_up_the_whole_list(pods):
    async def run():
        sink = CheckingSink()
        for index in range(23):
            await asyncio.to_thread(pods.create, f"p{index}")
        async with following(pods.server, [spec_of(pods)], sink, page_size=5, streaming=False) as (informer, recording):
            await informer.wait_synced()
            assert sink.known == await asyncio.to_thread(pods.state)
            assert recording.asked[:5] == ["list"] * 5

    asyncio.run(run())


@pytest.mark.parametrize("streaming", [True, False])
def test_a_watch_that_is_cut_again_and_again_loses_nothing(pods, streaming):
    dice = random.Random(5)  # noqa: S311  a test's own dice

    def write():
        living = set()
        for step in range(60):
            name = dice.choice("abcde")
            if name not in living:
                pods.create(name)
                living.add(name)
            elif dice.random() < 0.4:
                pods.delete(name)
                living.discard(name)
            else:
                pods.modify(name, str(step))

    async def run():
        sink = CheckingSink()
        cuts = [dice.randint(1, 6) for _ in range(12)]
        specs = [spec_of(pods)]
        async with following(pods.server, specs, sink, cuts=cuts, streaming=streaming) as (informer, recording):
            await informer.wait_synced()
            await asyncio.to_thread(write)
            await until_equal(pods, sink)
            assert recording.asked.count("watch") >= 3

    asyncio.run(run())


def test_history_that_is_gone_is_replaced_by_a_list(pods):
    """The watch is kept away while pods change and etcd forgets; then its version is answered with 410."""

    async def run():
        sink = CheckingSink()
        await asyncio.to_thread(history, pods)
        async with following(pods.server, [spec_of(pods)], sink) as (informer, recording):
            await informer.wait_synced()
            recording.away = True
            uid = sink.known["c"][0]
            await asyncio.to_thread(pods.modify, "a", "2")
            await asyncio.to_thread(pods.delete, "c")
            await asyncio.to_thread(pods.create, "c")
            await asyncio.to_thread(pods.create, "d")
            await asyncio.to_thread(pods.server.forget_history)
            sink.told.clear()
            recording.away = False
            await until_equal(pods, sink)
            assert informer.report()[0].lists == 2
            told = [(event_type, name) for event_type, name, *_ in sink.told]
            assert sorted(told) == [("ADDED", "c"), ("ADDED", "d"), ("DELETED", "c"), ("MODIFIED", "a")]
            assert next(each for each in sink.told if each[:2] == ("DELETED", "c"))[2] == uid

    asyncio.run(run())


def test_a_server_that_is_away_for_a_while_is_followed_on(pods):
    async def run():
        sink = CheckingSink()
        await asyncio.to_thread(history, pods)
        async with following(pods.server, [spec_of(pods)], sink) as (informer, _):
            await informer.wait_synced()
            await asyncio.to_thread(pods.server.restart)
            assert informer.synced
            await asyncio.to_thread(pods.create, "later")
            await until_equal(pods, sink)
            report = informer.report()[0]
            assert (report.state, report.error) == ("watching", "")
            assert report.errors > 0

    asyncio.run(run())


def test_a_server_that_falls_silent_is_noticed(pods):
    async def run():
        sink = CheckingSink()
        await asyncio.to_thread(pods.create, "a")
        async with following(pods.server, [spec_of(pods)], sink, silence=1.0) as (informer, recording):
            await informer.wait_synced()
            with pods.server.frozen():
                await waiting.soon(lambda: informer.report()[0].errors > 0)
            await asyncio.to_thread(pods.modify, "a", "1")
            await until_equal(pods, sink)
            assert len(recording.asked) > 1

    asyncio.run(run())


def test_a_watch_on_which_nothing_happens_catches_up_by_a_list(pods):
    async def run():
        sink = CheckingSink()
        async with following(pods.server, [spec_of(pods)], sink) as (informer, recording):
            await informer.wait_synced()
            made = await asyncio.to_thread(pods.server.new_namespace)
            found = await asyncio.to_thread(pods.server.call, "GET", f"/api/v1/namespaces/{made}")
            version = found["metadata"]["resourceVersion"]
            await asyncio.wait_for(informer.catch_up(version), waiting.PATIENCE)
            assert int(informer.report()[0].version) >= int(version)
            assert recording.asked in (["stream", "stream"], ["stream", "list", "watch", "list", "watch"])

    asyncio.run(run())


def test_pods_of_others_are_followed_while_they_hold_a_node(pods):
    """The others' watch brings pods of the whole cluster, several of one name among them; only this test's count."""
    prefix = f"p{uuid.uuid4().hex[:8]}-"

    async def run():
        own, others = CheckingSink(prefix), CheckingSink(prefix)
        first, second, *_ = informers.standard(Options(scheduler_name=(pods.scheduler,)))
        async with (
            following(pods.server, [first], own) as (ours, _),
            following(pods.server, [second], others) as (theirs, _),
        ):
            await ours.wait_synced()
            await theirs.wait_synced()
            await asyncio.to_thread(pods.create, f"{prefix}mine")
            await asyncio.to_thread(pods.create, f"{prefix}waiting", scheduler="else")
            await asyncio.to_thread(pods.create, f"{prefix}bound", node="n", scheduler="else")
            await waiting.soon(
                lambda: list(own.known) == [f"{prefix}mine"] and list(others.known) == [f"{prefix}bound"]
            )
            await asyncio.to_thread(pods.finish, f"{prefix}mine")
            await asyncio.to_thread(pods.finish, f"{prefix}bound")
            await waiting.soon(lambda: not others.known and len(own.told) == 2)
            assert list(own.known) == [f"{prefix}mine"]

    asyncio.run(run())


def test_everything_a_scheduler_follows_is_listed_or_not_served(api_server):
    class Sink:
        def feed(self, kind, event_type, found, raw):
            assert not isinstance(found, decoding.Malformed)

    async def run():
        async with following(api_server, informers.standard(Options()), Sink()) as (informer, _):
            await asyncio.wait_for(informer.wait_synced(), waiting.PATIENCE)
            # A server that others compact meanwhile may end a watch, which then begins with a list again.
            await waiting.soon(lambda: {report.state for report in informer.report()} <= {"watching", "absent"})
            reports = {str(report.watch): report for report in informer.report()}
            assert [report.error for report in reports.values()] == [""] * len(reports)
            assert reports["namespaces"].state == "watching"
            assert reports["podgroups.scheduling.sigs.dev/v1alpha2"].state == "absent"
            await asyncio.wait_for(
                informer.catch_up(max((r.version for r in reports.values() if r.version), key=int)), waiting.PATIENCE
            )

    asyncio.run(run())


# -- kinds that come and go

SOURCES = "/apis/datadependency.volcano.sh/v1alpha1/datasources"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "datasources.datadependency.volcano.sh"},
    "spec": {
        "group": "datadependency.volcano.sh",
        "scope": "Cluster",
        "names": {"plural": "datasources", "singular": "datasource", "kind": "DataSource"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def source(name, depth):
    """Return an object as JSON, since the usual encoders do not go to any depth."""
    head = b'{"apiVersion":"datadependency.volcano.sh/v1alpha1","kind":"DataSource","metadata":{"name":"%s"},"x":'
    return head % name.encode() + b"[" * depth + b"]" * depth + b"}"


def test_a_kind_is_followed_from_its_definition_to_its_end(api_server):
    sinks = []

    class Sink(CheckingSink):
        def feed(self, kind, event_type, found, raw):
            super().feed(kind, event_type, found, raw)
            sinks.append(type(found).__name__)

    async def run():
        sink, spec = Sink(), WatchSpec(kinds.DATA_SOURCE)
        async with following(api_server, [spec], sink, probe_interval=0.3) as (informer, recording):
            await informer.wait_synced()
            assert informer.report()[0].state == "absent"
            await asyncio.to_thread(api_server.call, "POST", DEFINITIONS, DEFINITION)
            await waiting.soon(lambda: informer.report()[0].state == "watching")
            for name, depth in (("a", 1), ("deep", 3000)):
                await recording.client.request("POST", SOURCES, body=source(name, depth))
            await waiting.soon(lambda: list(sink.known) == ["a", "deep"])
            assert sinks == ["Opaque", "Malformed"]
            await check_list(api_server, spec)
            await asyncio.to_thread(api_server.call, "DELETE", f"{DEFINITIONS}/datasources.datadependency.volcano.sh")
            await waiting.soon(lambda: not sink.known)
            await waiting.soon(lambda: informer.report()[0].state == "absent")

    asyncio.run(run())


async def check_list(api_server, spec):
    """One object that nobody can read does not make a list unreadable."""
    sink = CheckingSink()
    async with following(api_server, [spec], sink, streaming=False) as (informer, _):
        await asyncio.wait_for(informer.wait_synced(), waiting.PATIENCE)
        assert sorted(sink.known) == ["a", "deep"]


def test_what_a_real_server_serves_is_told_with_subresources(api_server):
    async def run():
        async with following(api_server, [], CheckingSink()) as (_, recording):
            return await discovery.served(recording.client)

    found = asyncio.run(run())
    assert {
        ("v1", "pods"),
        ("v1", "pods/binding"),
        ("apps/v1", "replicasets"),
        ("policy/v1", "poddisruptionbudgets"),
    } <= found
    assert not any(group_version == "scheduling.sigs.dev/v1alpha2" for group_version, _ in found)


def test_an_account_without_permission_is_told_which_one_it_lacks(api_server, namespace, tmp_path):
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api_server.call("POST", account, {"metadata": {"name": "poor"}})
    token = api_server.call("POST", f"{account}/poor/token", {"spec": {}})["status"]["token"]
    settings = json.loads(api_server.kubeconfig.read_text())
    settings["users"] = [{"name": "token", "user": {"token": token}}]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(settings))

    async def run():
        specs = [WatchSpec(kinds.NODE), WatchSpec(kinds.SIGS_POD_GROUP)]
        async with following(api_server, specs, CheckingSink(), kubeconfig=kubeconfig) as (informer, _):
            await waiting.soon(lambda: [report.state for report in informer.report()] == ["forbidden", "absent"])
            assert not informer.synced
            error = informer.report()[0].error
            assert f"system:serviceaccount:{namespace}:poor" in error
            assert 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]' in error
            rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
            await asyncio.to_thread(grant, api_server, namespace, rule)
            await asyncio.wait_for(informer.wait_synced(), waiting.PATIENCE)
            assert informer.report()[0].error == ""

    asyncio.run(run())


def grant(server, namespace, rule):
    base, name = "/apis/rbac.authorization.k8s.io/v1", f"poor-{namespace}"
    server.call("POST", f"{base}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    server.call(
        "POST",
        f"{base}/clusterrolebindings",
        {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "poor", "namespace": namespace}],
        },
    )
