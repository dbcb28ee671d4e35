import http.client
import json
import time

import pytest

from testbed import calling, commands, processes, server

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def pods_in(api, namespace):
    return [pod["metadata"]["name"] for pod in api.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]]


def test_kubectl_applies_a_namespace_and_a_pod(api_server):
    manifests = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "applied"}},
        POD | {"metadata": {"name": "a", "namespace": "applied"}},
    ]
    shown = api_server.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, manifests)))
    assert shown == "namespace/applied created\npod/a created\n"
    assert pods_in(api_server, "applied") == ["a"]
    assert api_server.kubectl("get", "pod", "a", "-n", "applied", "-o", "name", "--context", "certificate") == "pod/a\n"


def test_server_and_kubectl_name_the_version_they_were_built_from(api_server):
    versions = json.loads(api_server.kubectl("version", "-o", "json"))
    for side in ("clientVersion", "serverVersion"):
        assert versions[side]["gitVersion"].startswith(f"v{versions[side]['major']}.{versions[side]['minor']}.")


def test_what_kubectl_refuses_is_raised_in_its_words(api_server, namespace):
    with pytest.raises(server.KubectlError, match='pods "missing" not found'):
        api_server.kubectl("get", "pod", "missing", "-n", namespace)


def test_strangers_are_refused(api_server):
    stranger = calling.Caller(api_server.port, "not the token", api_server.ca_file)
    assert stranger.answer("GET", "/api/v1/nodes").status == http.client.UNAUTHORIZED


def test_what_was_written_outlives_a_restart_at_the_same_address(api_server, namespace):
    api_server.call("POST", f"/api/v1/namespaces/{namespace}/pods", POD)
    url, (etcd, before) = api_server.url, api_server.pids
    with api_server.down(), pytest.raises(ConnectionRefusedError):
        api_server.call("GET", "/readyz")
    assert (api_server.url, api_server.pids[0]) == (url, etcd)
    assert api_server.pids[1] != before
    assert pods_in(api_server, namespace) == ["a"]


def test_a_frozen_server_answers_later(api_server):
    with api_server.frozen(), pytest.raises(TimeoutError):
        api_server.call("GET", "/readyz", timeout=0.2)
    assert api_server.call("GET", "/readyz") == "ok"
    started = time.monotonic()
    api_server.pause(0.1)
    assert time.monotonic() - started >= 0.1


def test_without_history_pages_and_watches_from_before_have_expired(api_server, namespace):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name in "ab":
        api_server.call("POST", pods, POD | {"metadata": {"name": name}})
    page = api_server.call("GET", f"{pods}?limit=1")["metadata"]
    api_server.call("POST", pods, POD | {"metadata": {"name": "c"}})
    api_server.forget_history()
    with pytest.raises(calling.CallError) as error:
        api_server.call("GET", f"{pods}?limit=1&continue={page['continue']}")
    assert error.value.answer.status == http.client.GONE
    event = api_server.call("GET", f"{pods}?watch=1&resourceVersion={page['resourceVersion']}&timeoutSeconds=5")
    assert (event["type"], event["object"]["code"]) == ("ERROR", http.client.GONE)


def test_an_emptied_server_has_no_pods_nodes_or_custom_objects(api_server, namespace, tmp_path):
    api_server.empty()  # whatever other tests have left
    (tmp_path / "widgets.yaml").write_text(WIDGETS)
    api_server.crds(tmp_path)
    widgets = f"/apis/example.com/v1/namespaces/{namespace}/widgets"
    api_server.call(
        "POST",
        widgets,
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "finalizers": ["example.com/held"]},
        },
    )
    api_server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    api_server.call("POST", f"/api/v1/namespaces/{namespace}/pods", POD | {"spec": POD["spec"] | {"nodeName": "n"}})
    api_server.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 9})
    api_server.empty()
    for path in (widgets, "/api/v1/nodes", "/api/v1/pods"):
        assert api_server.call("GET", path)["items"] == [], path
    classes = api_server.call("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")["items"]
    assert [one["metadata"]["name"] for one in classes] == ["system-cluster-critical", "system-node-critical"]
    assert api_server.call("GET", "/api/v1/namespaces/default/services/kubernetes")["metadata"]["name"] == "kubernetes"


def test_each_namespace_is_new(api_server, namespace):
    other = api_server.new_namespace()
    assert other != namespace
    assert pods_in(api_server, other) == []


@pytest.mark.kube
def test_a_server_that_cannot_start_says_why():
    broken = server.ApiServer(arguments=("--no-such-flag",))
    with pytest.raises(processes.StartError, match="kube-apiserver ended with 1:") as error:
        broken.start()
    assert "unknown flag: --no-such-flag" in str(error.value)
    with pytest.raises(RuntimeError, match="not running"):
        broken.folder  # noqa: B018  # asking is the test


@pytest.mark.kube
def test_a_port_that_somebody_took_first_is_given_up(monkeypatch):
    api, tried = server.ApiServer(), []

    def start():
        tried.append(api.port)
        if len(tried) < 3:
            raise processes.PortTakenError("bind: address already in use")

    monkeypatch.setattr(api, "_start_api", start)
    monkeypatch.setattr(commands, "etcd", lambda *_: ["/bin/sleep", "60"])
    monkeypatch.setattr(calling, "etcd_is_healthy", lambda _: True)
    with api:
        assert len(set(tried)) == 3
        assert api.url == f"https://127.0.0.1:{tried[-1]}"
        assert api.url in api.kubeconfig.read_text()


def test_definitions_are_applied_again_only_if_something_has_happened_to_one(api_server, tmp_path, monkeypatch):
    (tmp_path / "widgets.yaml").write_text(WIDGETS)
    api_server.crds(tmp_path)
    widgets = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    asked, kubectl = [], api_server.kubectl
    monkeypatch.setattr(api_server, "kubectl", lambda *given, **more: asked.append(given[0]) or kubectl(*given, **more))

    def applied():
        asked.clear()
        api_server.crds(tmp_path)
        return "apply" in asked

    def patch(**change):
        api_server.call("PATCH", widgets, change, content_type="application/merge-patch+json")

    assert not applied()
    patch(metadata={"labels": {"a": "b"}})
    assert applied()
    patch(spec={"names": {"shortNames": ["wid"]}})
    assert applied()
    api_server.call("DELETE", widgets)
    assert applied()
    assert api_server.call("GET", "/apis/example.com/v1/widgets")["items"] == []
    (tmp_path / "widgets.yaml").write_text(WIDGETS.replace("kind: Widget}", "kind: Widget, shortNames: [w]}"))
    assert applied()
    assert not applied()
