"""The objects that the tests put into a real cluster, and what the API server says of them: a view of its own, past the proxy."""

from __future__ import annotations

import json
from collections import defaultdict

from pumice.api import kinds, names, quantity
from pumice.kube.calls import client, paths
from testbed import calling

FINISHED = ("Succeeded", "Failed")


class ClusterView:
    """One namespace of a cluster, and its nodes."""

    def __init__(self, server):
        self.server = server
        self.namespace = server.new_namespace()

    # -- writing -----------------------------------------------------------------------------------------------

    def call(self, method, kind, name="", body=None, subresource=""):
        path = paths.path(kind, self.namespace if kind.namespaced else "", name, subresource)
        content_type = client.JSON
        if method == "PATCH":
            content_type = "application/json-patch+json" if isinstance(body, list) else client.MERGE
        return self.server.call(method, path, body, content_type=content_type)

    def create(self, kind, name, **fields):
        """Create an object; `annotations` and `labels` go where they belong."""
        metadata = {"name": name, **{key: fields.pop(key) for key in ("annotations", "labels") if key in fields}}
        return self.call(
            "POST", kind, body={"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}
        )

    def node(self, name, cpu, **fields):
        """Create a healthy node; admission taints every new one, and no node controller is there to take that off again."""
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {"allocatable": sizes(cpu), "capacity": sizes(cpu), "conditions": [ready]}
        self.create(kinds.NODE, name, status=status, **fields)
        return self.call("PATCH", kinds.NODE, name, {"spec": {"taints": None}})

    def resize(self, name, cpu):
        """Let a node offer something else."""
        body = {"status": {"allocatable": sizes(cpu), "capacity": sizes(cpu)}}
        return self.call("PATCH", kinds.NODE, name, body, "status")

    def group(self, name, min_member, **spec):
        return self.create(kinds.POD_GROUP, name, spec={"minMember": min_member, **spec})

    def pod(self, name, group, cpu="1", **fields):
        """Create a pod that asks for some cpu, of a group or of none."""
        resources = {"requests": {"cpu": cpu}} if cpu else {}
        spec = {
            "schedulerName": "volcano",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "x", "resources": resources}],
            **fields.pop("spec", {}),
        }
        annotations = {**({names.GROUP_NAME: group} if group else {}), **fields.pop("annotations", {})}
        return self.create(kinds.POD, name, annotations=annotations, spec=spec, **fields)

    def gang(self, name, members, *, min_member=None, cpu="1", **spec):
        """Create a group and its pods, `NAME-0` and so on."""
        self.group(name, members if min_member is None else min_member, **spec)
        for index in range(members):
            self.pod(f"{name}-{index}", name, cpu)

    def delete(self, kind, name, **options):
        self.call("DELETE", kind, name, {"apiVersion": "v1", "kind": "DeleteOptions", **options})

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, kind, name):
        try:
            return self.call("GET", kind, name)
        except calling.CallError as error:
            if error.answer.status != 404:
                raise
            return None

    def list(self, kind):
        """Every object of a kind, of pods and groups those of this namespace."""
        return self.call("GET", kind)["items"]

    def bound(self, group=""):
        """Name the pods that have a node, all or those of a group."""
        return {
            pod["metadata"]["name"]
            for pod in self.list(kinds.POD)
            if pod["spec"].get("nodeName")
            and group in ("", pod["metadata"].get("annotations", {}).get(names.GROUP_NAME))
        }

    def phases(self):
        """Say the phase of every group."""
        return {
            group["metadata"]["name"]: group.get("status", {}).get("phase", "") for group in self.list(kinds.POD_GROUP)
        }

    def end_state(self):
        """Say what is left of a story: which pods are where, and how the groups are."""
        return {
            "bound": self.bound(),
            "pods": {pod["metadata"]["name"] for pod in self.list(kinds.POD)},
            "phases": self.phases(),
        }

    def events(self, kind, name):
        """Give the messages of the events about an object, whichever namespace they are in."""
        found = self.server.call("GET", "/api/v1/events")["items"]
        return [
            event["message"]
            for event in found
            if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind.name, name)
            and event["involvedObject"].get("namespace", "") in ("", self.namespace)
        ]

    # -- what must hold ----------------------------------------------------------------------------------------

    def over_committed(self):
        """Name the nodes whose unfinished pods ask for more than they offer, counting pods of every namespace."""
        asked = defaultdict(int)
        for pod in self.server.call("GET", "/api/v1/pods")["items"]:
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in FINISHED:
                for container in pod["spec"]["containers"]:
                    requests = container.get("resources", {}).get("requests", {})
                    asked[pod["spec"]["nodeName"]] += quantity.milli(requests.get("cpu", "0"))
        offers = {
            node["metadata"]["name"]: quantity.milli(node["status"].get("allocatable", {}).get("cpu", "0"))
            for node in self.list(kinds.NODE)
        }
        return {name: (asked[name], offer) for name, offer in offers.items() if asked[name] > offer}

    def broken_gangs(self):
        """Name the groups of which some pods are bound, but fewer than the minimum."""
        minimums = {group["metadata"]["name"]: group["spec"].get("minMember") for group in self.list(kinds.POD_GROUP)}
        bound = {name: len(self.bound(name)) for name in minimums}
        return {
            name: (bound[name], least)
            for name, least in minimums.items()
            if isinstance(least, int) and 0 < bound[name] < least
        }

    def story(self):
        """Everything there is to know when a test fails."""
        pods = {
            pod["metadata"]["name"]: [
                pod["spec"].get("nodeName"),
                pod["status"].get("phase"),
                pod["status"].get("conditions"),
            ]
            for pod in self.list(kinds.POD)
        }
        groups = {group["metadata"]["name"]: group.get("status") for group in self.list(kinds.POD_GROUP)}
        return json.dumps({"pods": pods, "groups": groups}, indent=1)


def sizes(cpu):
    return {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
