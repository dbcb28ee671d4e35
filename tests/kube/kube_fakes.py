"""An API server in a dictionary, for tests of what writes to one: every call is noted, and may be held up or made to fail."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json

from pumice.api import kinds
from pumice.kube import errors
from testbed import waiting


def not_found(text="not found"):
    return errors.ApiError(404, "NotFound", text)


def conflict(text="the object has been modified"):
    return errors.ApiError(409, "Conflict", text)


class FakeApi:
    """Objects by plural, namespace and name; `fail[verb]` is a list of errors to raise, `hold[verb]` an asyncio.Event to wait for.

    Without the lease (`leading`) no write leaves, as with the client.
    """

    def __init__(self, served=()):
        self.objects = {}
        self.calls = []
        self.fail = {}
        self.hold = {}
        self.served = list(served)
        self.leading = True
        self.most_at_once = self._at_once = 0
        self.versions = itertools.count(1)

    async def _enter(self, verb, *what):
        if not self.leading and verb not in ("get", "request"):
            raise errors.UnreachableError(f"{verb} was not sent: the lease is not held", transient=False)
        self.calls.append((verb, *what))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if verb in self.hold:
                await self.hold[verb].wait()
            else:
                await asyncio.sleep(0)
            if self.fail.get(verb):
                error = self.fail[verb].pop(0)
                if error is not None:
                    raise error
        finally:
            self._at_once -= 1

    def verbs(self):
        return [call[0] for call in self.calls]

    def add(self, kind, manifest):
        metadata = manifest["metadata"]
        metadata.setdefault("uid", f"uid-{metadata['name']}")
        metadata["resourceVersion"] = str(next(self.versions))
        self.objects[kind.plural, metadata.get("namespace", ""), metadata["name"]] = manifest
        return manifest

    def find(self, kind, namespace, name):
        found = self.objects.get((kind.plural, namespace, name))
        if found is None:
            raise not_found(f"{kind.plural} {namespace}/{name} not found")
        return found

    async def request(self, method, path, **_):
        await self._enter("request", path)
        return json.dumps({"resources": [{"name": name} for name in self.served]}).encode()

    async def get(self, kind, namespace, name):
        await self._enter("get", kind.plural, name)
        return copy.deepcopy(self.find(kind, namespace, name))

    async def create(self, kind, manifest):
        await self._enter("create", kind.plural, manifest["metadata"]["name"])
        key = (kind.plural, manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
        if key in self.objects:
            raise errors.ApiError(409, "AlreadyExists", f"{key} exists")
        return copy.deepcopy(self.add(kind, copy.deepcopy(dict(manifest))))

    async def patch(self, kind, namespace, name, body, *, subresource="", strategic=False):
        await self._enter("patch", kind.plural, name, subresource)
        found = self.find(kind, namespace, name)
        stated = body.get("metadata", {})
        if stated.get("uid") not in (None, found["metadata"]["uid"]):
            text = f'Pod "{name}" is invalid: metadata.uid: Invalid value: "{stated["uid"]}": field is immutable'
            raise errors.ApiError(422, "Invalid", text)
        if stated.get("resourceVersion") not in (None, found["metadata"]["resourceVersion"]):
            raise conflict()
        merge(found, body)
        found["metadata"]["resourceVersion"] = str(next(self.versions))
        return copy.deepcopy(found)

    async def delete(self, kind, namespace, name, *, uid="", grace_seconds=None, policy=""):
        await self._enter("delete", kind.plural, name, grace_seconds)
        if uid not in ("", self.find(kind, namespace, name)["metadata"]["uid"]):
            raise conflict("uid")
        del self.objects[kind.plural, namespace, name]

    async def bind(self, namespace, name, uid, node, annotations):
        await self._enter("bind", namespace, name)
        pod = self.find(kinds.POD, namespace, name)
        if uid not in ("", pod["metadata"]["uid"]):
            raise conflict("uid")
        if pod.setdefault("spec", {}).get("nodeName"):
            raise conflict(f"pod {name} is already assigned to node {pod['spec']['nodeName']}")
        pod["spec"]["nodeName"] = node


def merge(target, body):
    for key, value in body.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            merge(target.setdefault(key, {}), value)
        else:
            target[key] = copy.deepcopy(value)


def pod(name="p", namespace="a", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {},
    }


async def until(condition):
    """Let the loop run until something has become true."""
    await waiting.soon(condition, every=0.001)
