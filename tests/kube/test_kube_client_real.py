"""The client against a real API server."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
import yaml

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.calls.client import Client

pytestmark = pytest.mark.kube


def run(server, use, *, context="", **options):
    """Call `use(client)` with a client of the server's kubeconfig."""

    async def main():
        target = connection.load(str(server.kubeconfig), context, environ={})
        async with Client(target, **options) as api:
            return await use(api)

    return asyncio.run(main())


def pod(namespace, name="p", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "schedulerName": "volcano", **spec},
    }


async def refusal(awaitable):
    with pytest.raises(errors.ApiError) as caught:
        await awaitable
    return caught.value


@pytest.mark.parametrize("context", ["token", "certificate"])
def test_token_and_client_certificate_both_open_the_door(api_server, context):
    found = run(api_server, lambda api: api.get(kinds.NAMESPACE, "", "default"), context=context)
    assert found["metadata"]["name"] == "default"


def test_a_wrong_token_is_refused_by_name_with_a_next_step(api_server, tmp_path):
    content = yaml.safe_load(api_server.kubeconfig.read_text())
    for user in content["users"]:
        user["user"] = {"token": "tok-hush"}
    for cluster in content["clusters"]:
        cluster["cluster"]["certificate-authority"] = str(api_server.ca_file)
        cluster["cluster"].pop("certificate-authority-data", None)
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))

    async def main():
        async with Client(connection.load(str(path), environ={})) as api:
            return await refusal(api.get(kinds.NAMESPACE, "", "default"))

    error = asyncio.run(main())
    user = content["contexts"][0]["context"]["user"]
    assert (error.status, error.failure.code) == (401, "refused")
    assert f"user {user!r} of context 'token' in {path}" in str(error)
    assert "fetch new ones" in str(error)
    assert "hush" not in str(error)


def test_a_pod_from_creation_to_deletion(api_server, namespace):
    async def use(api):
        made = await api.create(kinds.POD, pod(namespace))
        uid = made["metadata"]["uid"]
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
        patched = await api.patch(
            kinds.POD, namespace, "p", {"status": {"conditions": [condition]}}, subresource="status", strategic=True
        )
        assert [part["reason"] for part in patched["status"]["conditions"]] == ["Unschedulable"]
        other = {"type": "Ready", "status": "False"}
        patched = await api.patch(
            kinds.POD, namespace, "p", {"status": {"conditions": [other]}}, subresource="status", strategic=True
        )
        assert {part["type"] for part in patched["status"]["conditions"]} == {"PodScheduled", "Ready"}
        merged = await api.patch(kinds.POD, namespace, "p", {"metadata": {"annotations": {"a": "1"}}})
        assert merged["metadata"]["annotations"] == {"a": "1"}

        assert (await refusal(api.create(kinds.POD, pod(namespace)))).failure.code == "conflict"
        assert (await refusal(api.bind(namespace, "p", "other-uid", "n1", {}))).failure.code == "conflict"
        await api.bind(namespace, "p", uid, "n1", {"b": "2"})
        bound = await api.get(kinds.POD, namespace, "p")
        assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n1", {"a": "1", "b": "2"})
        twice = await refusal(api.bind(namespace, "p", uid, "n2", {}))
        assert (twice.status, twice.failure.code) == (409, "conflict")

        wrong = await refusal(api.delete(kinds.POD, namespace, "p", uid="other-uid"))
        assert wrong.failure.code == "conflict"
        await api.delete(kinds.POD, namespace, "p", uid=uid, grace_seconds=0)
        gone = await refusal(api.get(kinds.POD, namespace, "p"))
        assert (gone.status, gone.reason, gone.failure.code) == (404, "NotFound", "notfound")
        assert (await refusal(api.bind(namespace, "p", uid, "n1", {}))).failure.code == "notfound"

    run(api_server, use)


def test_what_is_not_valid_is_refused_with_the_field(api_server, namespace):
    error = run(api_server, lambda api: refusal(api.create(kinds.POD, pod(namespace, "UPPER"))))
    assert (error.status, error.reason, error.failure.code) == (422, "Invalid", "refused")
    assert "metadata.name" in str(error)


def test_an_eviction_respects_a_disruption_budget(api_server, namespace):
    async def use(api):
        await api.create(kinds.POD, pod(namespace, "free"))
        await api.evict(namespace, "free", grace_seconds=0)
        assert (await refusal(api.get(kinds.POD, namespace, "free"))).status == 404

        guarded = pod(namespace, "guarded")
        guarded["metadata"]["labels"] = {"app": "x"}
        made = await api.create(kinds.POD, guarded)
        await api.bind(namespace, "guarded", made["metadata"]["uid"], "n1", {})
        running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await api.patch(kinds.POD, namespace, "guarded", running, subresource="status", strategic=True)
        budget = {"metadata": {"namespace": namespace, "name": "b"},
                  "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}  # fmt: skip
        made = await api.create(kinds.POD_DISRUPTION_BUDGET, budget)
        status = {"observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": 0, "currentHealthy": 1,
                  "desiredHealthy": 1, "expectedPods": 1}  # fmt: skip
        await api.patch(kinds.POD_DISRUPTION_BUDGET, namespace, "b", {"status": status}, subresource="status")
        error = await refusal(api.evict(namespace, "guarded"))
        assert (error.status, error.budget_forbids, error.failure.code) == (429, True, "refused")

    run(api_server, use)


def test_a_lease_is_replaced_only_by_whoever_saw_its_last_version(api_server, namespace):
    async def use(api):
        made = await api.create(
            kinds.LEASE, {"metadata": {"namespace": namespace, "name": "l"}, "spec": {"holderIdentity": "a"}}
        )
        newer = await api.replace(kinds.LEASE, {**made, "spec": {"holderIdentity": "b"}})
        assert newer["spec"]["holderIdentity"] == "b"
        error = await refusal(api.replace(kinds.LEASE, {**made, "spec": {"holderIdentity": "c"}}))
        assert (error.status, error.failure.code) == (409, "conflict")

    run(api_server, use)


def test_a_list_in_pages_and_a_watch_from_its_version(api_server, namespace):
    async def use(api):
        for number in range(5):
            await api.create(kinds.POD, pod(namespace, f"p{number}"))
        first = msgspec.json.decode(await api.list_page(kinds.POD, namespace=namespace, query={"limit": 3}))
        token = first["metadata"]["continue"]
        rest = msgspec.json.decode(
            await api.list_page(kinds.POD, namespace=namespace, query={"limit": 3, "continue": token})
        )
        names = [item["metadata"]["name"] for page in (first, rest) for item in page["items"]]
        assert names == [f"p{number}" for number in range(5)]

        query = {"resourceVersion": rest["metadata"]["resourceVersion"], "allowWatchBookmarks": True}
        stream = api.stream(kinds.POD, namespace=namespace, query=query, silence=30)
        # 250 KB: four times what a line reader takes by default
        large = {"metadata": {"annotations": {"large": "x" * 250_000}}}
        await api.patch(kinds.POD, namespace, "p0", large)
        event = msgspec.json.decode(await anext(stream))
        assert (event["type"], len(event["object"]["metadata"]["annotations"]["large"])) == ("MODIFIED", 250_000)
        await stream.aclose()

    run(api_server, use)


def test_a_watch_of_what_is_not_served_or_not_understood_is_refused(api_server):
    async def use(api):
        unknown = msgspec.structs.replace(kinds.HYPER_NODE, group="nowhere.example.com")
        missing = await refusal(anext(api.stream(unknown, silence=30)))
        unclear = await refusal(anext(api.stream(kinds.POD, query={"fieldSelector": "no.such=1"}, silence=30)))
        return missing.status, unclear.status

    assert run(api_server, use) == (404, 400)


def test_a_frozen_server_leaves_a_bind_unknown_and_a_read_of_the_pod_tells(api_server, namespace):
    async def use(api):
        made = await api.create(kinds.POD, pod(namespace))
        with api_server.frozen(), pytest.raises(errors.UnknownOutcomeError):
            await api.bind(namespace, "p", made["metadata"]["uid"], "n1", {})
        found = await api.get(kinds.POD, namespace, "p")
        return found["spec"].get("nodeName", "")

    assert run(api_server, use, timeout=2.0) in ("", "n1")


def test_reads_and_writes_get_through_once_a_stopped_server_is_back(api_server, namespace):
    async def use(api):
        made = await api.create(kinds.POD, pod(namespace))
        with api_server.down():
            await asyncio.sleep(0.1)  # the loop learns that its kept connections are closed
            with pytest.raises(errors.UnreachableError):
                await api.request("GET", "/version", attempts=1)
            with pytest.raises(errors.UnreachableError):
                await api.bind(namespace, "p", made["metadata"]["uid"], "n1", {})
        await api.bind(namespace, "p", made["metadata"]["uid"], "n1", {})

    run(api_server, use)
