"""An API server in memory that does to its watchers whatever a script says, and behaves once the script is over."""

import asyncio
from collections import deque

import msgspec

from pumice.api import kinds
from pumice.kube import errors

KIND = kinds.POD_GROUP
encode = msgspec.json.encode


def manifest(name, uid, version):
    metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"minMember": version}}


def event(event_type, found):
    return encode({"type": event_type, "object": found})


def status(code, reason="", message="as the script says"):
    return event("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": message})


def bookmark(version, *, end=False):
    annotations = {"k8s.io/initial-events-end": "true"} if end else {}
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})


class WatchServer:
    """Serves one kind. `streaming` is "offered", "refused" (422) or "broken" (accepted, then an ERROR event)."""

    def __init__(self, script=(), *, streaming="offered", kind=KIND):
        self.kind = kind
        self.script = deque(script)
        self.streaming = streaming
        self.version = 100
        self.compacted = 0
        self.served = True
        self.serves_at_end = True
        self.era = 0  # a watch of an earlier one has ended
        self.objects = {}
        self.history = []  # (version, type, manifest)
        self.requests = []
        self.snapshots = {}
        self.idle = asyncio.Event()
        self._uids = 0

    # -- writes

    def write(self, name, verb="modify"):
        """Create an object that does not exist; modify or delete one that does, or delete and create it."""
        before = self.objects.get(name)
        if before is not None and verb in ("delete", "recreate"):
            self._record("DELETED", name, before["metadata"]["uid"])
        if before is None or verb == "recreate":
            self._uids += 1
            self._record("ADDED", name, f"uid-{self._uids:04}")
        elif verb == "modify":
            self._record("MODIFIED", name, before["metadata"]["uid"])

    def _record(self, event_type, name, uid):
        self.version += 1
        found = manifest(name, uid, self.version)
        self.history.append((self.version, event_type, found))
        if event_type == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = found

    def withdraw(self):
        """Stop serving the kind, as when its definition is deleted: its objects are gone, nobody is told."""
        self.served = False
        self.era += 1
        self.version += 1
        self.objects.clear()
        self.history.clear()
        self.compacted = self.version

    def next_step(self):
        """Do what the script says about the cluster, and return the first step that is about the connection; "" at its end."""
        while self.script:
            step, *rest = self.script.popleft()
            if step == "write":
                if self.served:
                    self.write(*rest)
            elif step == "compact":
                self.compacted = self.version
            elif step == "withdraw":
                self.withdraw()
            elif step == "serve":
                self.served = True
            else:
                return step
        self.served = self.served or self.serves_at_end
        return ""

    # -- the client's side

    async def request(self, method, path):
        """Answer discovery, which is open to everybody."""
        assert (method, path) == ("GET", f"/apis/{self.kind.api_version}")
        if not self.served:
            raise errors.ApiError(404, "NotFound", "the server could not find the requested resource")
        return encode({"resources": [{"name": self.kind.plural}]})

    async def list_page(self, kind, *, query):
        assert kind is self.kind
        self.requests.append(("list", dict(query)))
        await asyncio.sleep(0)
        step = self.next_step()
        self.answer(step)
        if step == "oversize":
            raise errors.OversizeError("the answer is too large")
        if step == "garbled":
            return b'{"metadata": {"resourceVer'
        version, _, offset = query.get("continue", f"{self.version}-0").partition("-")
        if "continue" in query and (step == "gone" or int(version) < self.compacted):
            raise errors.ApiError(410, "Expired", "the continue token is too old")
        found = self.snapshots.setdefault(version, list(self.objects.values()))
        start, limit = int(offset), int(query["limit"])
        metadata = {"resourceVersion": version}
        if len(found) > start + limit:
            metadata["continue"] = f"{version}-{start + limit}"
        return encode({"metadata": metadata, "items": found[start : start + limit]})

    async def stream(self, kind, *, query, silence):
        assert kind is self.kind
        assert query["allowWatchBookmarks"] == "true"
        self.requests.append(("watch", dict(query)))
        await asyncio.sleep(0)
        step = self.next_step()
        self.answer(step)
        lines = self._streaming() if "sendInitialEvents" in query else self._resuming(query, step)
        async for line in lines:
            yield line

    async def _streaming(self):
        if self.streaming == "refused":
            raise errors.ApiError(422, "Invalid", "sendInitialEvents: Forbidden")
        if self.streaming == "broken":
            yield status(500, "InternalError", "unsupported")
            return
        version, era = self.version, self.era
        for found in list(self.objects.values()):
            yield event("ADDED", found)
            async for line in self._misbehaviour(self.next_step(), version, follow=False):
                if line is None:
                    return
                yield line
            if era != self.era:
                return
        for entry in [
            entry for entry in self.history if entry[0] > version
        ]:  # what happened meanwhile comes before the end
            version = entry[0]
            yield event(*entry[1:])
        yield bookmark(version, end=True)
        async for line in self._following(version):
            yield line

    async def _resuming(self, query, step):
        version = int(query["resourceVersion"])
        if version < self.compacted or step == "gone":
            if step == "late":
                yield status(410, "Expired")
                return
            raise errors.ApiError(410, "Expired", f"too old resource version: {version} ({self.compacted})")
        async for line in self._following(version):
            yield line

    def answer(self, step):
        """Refuse a request, if the kind is not served or the script says so; permissions are asked first."""
        if not self.served and step != "forbidden":
            raise errors.ApiError(404, "NotFound", "the server could not find the requested resource")
        if step == "cut":
            raise errors.UnreachableError("connection refused")
        if step == "silence":
            raise errors.SilenceError("no byte for 90 s")
        codes = {"unauthorized": 401, "forbidden": 403, "busy": 429, "failure": 500}
        if step in codes:
            raise errors.ApiError(codes[step], step, f"{step}, as the script says")

    async def _following(self, version):
        era = self.era
        while True:
            step = self.next_step()
            if era != self.era:
                return
            async for line in self._misbehaviour(step, version, follow=True):
                if line is None:
                    return
                yield line
            pending = [entry for entry in self.history if entry[0] > version]
            if pending:
                version, event_type, found = pending[0]
                yield event(event_type, found)
            elif step == "":
                yield bookmark(self.version)
                self.idle.set()
                await asyncio.sleep(3600)

    async def _misbehaviour(self, step, version, *, follow):
        """Give lines that a well-behaved server would not send, raise, or give None for the end of the stream."""
        if step == "cut":
            raise errors.BrokenConnectionError("the connection was reset")
        if step == "silence":
            raise errors.SilenceError("no byte for 90 s")
        if step == "garbled":
            yield b'{"type":"ADDED","object":{"metadata":{"na'
        elif step in ("gone", "failure"):
            yield status(410 if step == "gone" else 500, "Expired" if step == "gone" else "InternalError")
            yield None
        elif step == "end":
            yield None
        elif step == "bookmark":
            yield bookmark(version) if follow else bookmark(version - 1)
        elif step == "repeat" and follow:
            for entry in self.history:
                if entry[0] <= version:
                    yield event(*entry[1:])
        await asyncio.sleep(0)
