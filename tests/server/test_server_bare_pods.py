"""Pods that nobody grouped, on a real API server: they are bound with their group's name, and those that wait get it by themselves."""

from __future__ import annotations

import pytest
from server_process import PODS, ROOT, Process, node, placed, pod, wait_for

pytestmark = pytest.mark.kube

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"


def unnamed(server, namespace):
    """Return the pods that do not name the group which is made for them."""
    metadata = [each["metadata"] for each in server.call("GET", PODS.format(namespace))["items"]]
    own = {each["name"]: each.get("annotations", {}).get("scheduling.k8s.io/group-name") for each in metadata}
    return [each["name"] for each in metadata if own[each["name"]] != f"podgroup-{each['uid']}"]


@pytest.fixture
def server(api_server):
    api_server.empty()
    api_server.crds(ROOT / "deploy" / "crds")
    node(api_server, "n1")
    return api_server


def test_a_pod_names_its_group_with_its_bind_or_once_it_has_waited(server):
    namespace = server.new_namespace()
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        pod(server, namespace, "fits", cpu="1")
        wait_for(lambda: "fits" in placed(server, namespace), scheduler)
        assert unnamed(server, namespace) == []
        pod(server, namespace, "large", cpu="64")
        wait_for(lambda: not unnamed(server, namespace), scheduler)
        groups = server.call("GET", GROUPS.format(namespace))["items"]
        assert sorted(each["metadata"]["ownerReferences"][0]["name"] for each in groups) == ["fits", "large"]
