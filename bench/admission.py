"""What a webhook costs whoever creates an object: a whole answer over TLS on loopback, beside one at a path where nothing is judged."""

from __future__ import annotations

import asyncio
import datetime as dt
import io
import json
import ssl
import time
from typing import Any

import aiohttp

from bench import cases
from pumice.admission import rules, surroundings
from pumice.admission.requests import RuleSettings
from pumice.api import kinds
from pumice.server import serving
from pumice.server.admission import answering, certificates
from pumice.server.flags.addresses import Address
from pumice.server.logs.logs import Log

REQUESTS = 2000
QUEUES = 1000
LIMIT = 10.0  # milliseconds
NOTHING = "/nothing/validate"


def everything() -> list[Any]:
    """Give the measurements of this module."""
    return [answers]


def answers() -> list[cases.Figure]:
    """Time answers about a job of four tasks in a cluster of a thousand queues, one after another and in turn with the floor, and one about a very large job."""
    found = asyncio.run(_measured())
    floor = found.pop("floor")
    return [
        cases.Figure(
            name, value, "ms", f"≤ {LIMIT:g} ms" if limited else "", value <= LIMIT or not limited, floor, "ms"
        )
        for name, (value, limited) in found.items()
    ]


async def _measured() -> dict[str, Any]:
    bundle = certificates.make(["127.0.0.1"], dt.datetime.now(dt.UTC))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificates.load(context, bundle)
    served = answering.Answering(rules.RULES, _cluster(), RuleSettings(), Log())
    listener = serving.Listener(served.app())
    bound = await listener.start(Address("127.0.0.1", 0), context)
    trusted = ssl.create_default_context(cadata=bundle.authorities.decode())
    url, small, large = f"https://{bound}", _review(_job(4, 2)), _review(_job(400, 8))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session:
        paths = [url + NOTHING, f"{url}/jobs/validate", f"{url}/jobs/mutate"]
        (floor, _), (validate, busy), (mutate, _) = await _times(session, paths, small, REQUESTS)
        ((huge, _),) = await _times(session, [f"{url}/jobs/validate"], large, 5)
    await listener.cleanup()
    return {
        "floor": _part(floor, 0.5),
        "a job is judged, median": (_part(validate, 0.5), True),
        "a job is judged, 99 of 100": (_part(validate, 0.99), True),
        "a job is judged, processor time of both sides, median": (_part(busy, 0.5), True),
        "a job is judged, processor time of both sides, 99 of 100": (_part(busy, 0.99), True),
        "a job is completed, 99 of 100": (_part(mutate, 0.99), True),
        "nothing is judged, 99 of 100": (_part(floor, 0.99), False),
        f"a job of {len(large) // 1024} KiB (400 tasks of 8 containers) is judged": (_part(huge, 0.5), False),
    }


Times = tuple[list[float], list[float]]


async def _times(session: aiohttp.ClientSession, urls: list[str], body: bytes, count: int) -> list[Times]:
    """Ask again and again, in turn, so that other work of the machine slows all of them down; gives the times in milliseconds, those of the clock and those of the processor."""
    found: list[Times] = [([], []) for _ in urls]
    for _ in range(count):
        for url, (times, busy) in zip(urls, found, strict=True):
            began, worked = time.perf_counter(), time.process_time()
            async with session.post(url, data=io.BytesIO(body), headers={"Content-Type": "application/json"}) as answer:
                read = await answer.read()
            times.append((time.perf_counter() - began) * 1000)
            busy.append((time.process_time() - worked) * 1000)
            if b'"allowed":true' not in read:
                raise RuntimeError(read[:500].decode())
    return [(sorted(times), sorted(busy)) for times, busy in found]


def _part(times: list[float], part: float) -> float:
    return times[min(len(times) - 1, int(len(times) * part))]


def _cluster() -> surroundings.KnownObjects:
    around = surroundings.KnownObjects()
    for name in ("root", "default", *(f"queue-{index}" for index in range(QUEUES))):
        around.put(kinds.QUEUE, {"metadata": {"name": name}, "spec": {"parent": "root"}})
    return around


def _job(tasks: int, containers: int) -> dict[str, Any]:
    container = {
        "image": "registry.example/train:1.2",
        "command": ["sh", "-c", "python train.py"],
        "env": [{"name": f"VARIABLE_{index}", "value": "x"} for index in range(8)],
        "ports": [{"name": "peer", "containerPort": 2222}],
        "resources": {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {"cpu": "4", "nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {
        "containers": [{**container, "name": f"c{index}"} for index in range(containers)],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"pool": "gpu"},
    }
    made = [
        {"name": f"t{index}", "replicas": 4, "minAvailable": 4, "template": {"spec": pod}, "policies": [{"event": "PodFailed", "action": "RestartTask"}]}
        for index in range(tasks)
    ]  # fmt: skip
    spec = {"queue": "default", "minAvailable": 4 * tasks, "schedulerName": "volcano", "tasks": made, "plugins": {"svc": [], "env": []}}  # fmt: skip
    return {"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": {"name": "job", "namespace": "default"}, "spec": spec}  # fmt: skip


def _review(manifest: dict[str, Any]) -> bytes:
    request = {"uid": "u", "operation": "CREATE", "name": "job", "namespace": "default", "object": manifest}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()
