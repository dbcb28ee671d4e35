"""Simulated kubelets on an API: what is bound starts, what has run its time ends, what is terminating goes."""

from __future__ import annotations

import asyncio
import json

import pytest

import builders
from kube import virtual_loop
from pumice.api import decoding, kinds
from pumice.fleet import kubelets
from pumice.kube import errors


class Api:
    """Remembers the writes; the first of them may fail."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.patches = []
        self.statuses = []
        self.deleted = []

    def _fail(self):
        if self.failures:
            raise self.failures.pop(0)

    async def patch(self, kind, namespace, name, body, *, subresource="", strategic=False):
        self._fail()
        assert (kind, subresource, strategic) == (kinds.POD, "status", True)
        self.patches.append((name, body["status"]["phase"], body["metadata"]["uid"]))
        self.statuses.append(body["status"])

    async def delete(self, kind, namespace, name, *, uid="", grace_seconds=None):
        self._fail()
        assert grace_seconds == 0
        self.deleted.append((name, uid))


def served(api, *events, at=0.0, seconds=0.05, nodes=("n1",)):
    """Feed pod events to the kubelets of some nodes and let them work; `at` is the second of the builders' day."""

    async def run():
        fleet = kubelets.Kubelets(
            api, dict.fromkeys(nodes, "10.10.0.1"), workers=2, now=lambda: builders.NOW / 1e6 + at
        )
        task = asyncio.create_task(fleet.run())
        for event, manifest in events:
            fleet.feed(kinds.POD, event, decoding.decode(manifest), json.dumps(manifest).encode())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return fleet

    return virtual_loop.run(run())


def running(**fields):
    pod = builders.pod("p", node="n1", **fields)
    pod["status"]["startTime"] = builders.stamp(0)
    return pod


def test_a_bound_pod_starts():
    api = Api()
    fleet = served(api, ("ADDED", builders.pod("p", node="n1", phase="Pending")))
    assert api.patches == [("p", "Running", "a.p")]
    assert fleet.counts.started == 1


@pytest.mark.parametrize("pod", [builders.pod("p"), builders.pod("p", node="other", phase="Pending"), running()])
def test_a_pod_that_asks_for_nothing_is_left_alone(pod):
    api = Api()
    served(api, ("ADDED", pod))
    assert (api.patches, api.deleted) == ([], [])


@pytest.mark.parametrize(("annotation", "phase"), [({}, "Succeeded"), ({"pumice.dev/exit": "failed"}, "Failed")])
def test_a_pod_ends_when_its_run_time_is_over(annotation, phase):
    api = Api()
    pod = running(annotations={"pumice.dev/run-time": "60s", **annotation})
    served(api, ("ADDED", pod), at=59.9)
    assert api.patches == []
    served(api, ("ADDED", pod), at=60)
    assert api.patches == [("p", phase, "a.p")]


def test_a_terminating_pod_goes_when_its_grace_is_over():
    api = Api()
    pod = running(deleting=30)
    served(api, ("MODIFIED", pod), at=20)
    assert api.deleted == []
    served(api, ("MODIFIED", pod), at=30)
    assert api.deleted == [("p", "a.p")]


def test_a_finished_pod_that_is_deleted_goes_at_once():
    api = Api()
    served(api, ("MODIFIED", running(deleting=30, phase="Succeeded")), at=1)
    assert api.deleted == [("p", "a.p")]


def test_the_same_state_twice_is_acted_on_once():
    api = Api()
    pod = builders.pod("p", node="n1", phase="Pending")
    served(api, ("ADDED", pod), ("MODIFIED", pod))
    assert len(api.patches) == 1


def test_a_pod_that_is_gone_is_forgotten():
    api = Api()
    pod = builders.pod("p", node="n1", phase="Pending")
    served(api, ("ADDED", pod), ("DELETED", pod))
    assert api.patches == []


def test_a_request_that_failed_is_repeated(monkeypatch):
    monkeypatch.setattr(kubelets, "RETRY", 0.01)
    api = Api(errors.UnreachableError("no"), errors.ApiError(500, "InternalError", "no"))
    fleet = served(api, ("ADDED", builders.pod("p", node="n1", phase="Pending")), seconds=0.2)
    assert api.patches == [("p", "Running", "a.p")]
    assert fleet.counts.failed == 2


def test_a_pod_that_somebody_else_removed_is_not_asked_for_again():
    api = Api(errors.ApiError(404, "NotFound", "no"))
    fleet = served(api, ("ADDED", builders.pod("p", node="n1", phase="Pending")))
    assert (api.patches, fleet.counts.failed) == ([], 0)


@pytest.mark.parametrize(
    ("annotation", "code", "reason"),
    [
        ({}, 0, "Completed"),
        ({"pumice.dev/exit": "failed"}, 1, "Error"),
        ({"pumice.dev/exit-code": "137"}, 137, "Error"),
    ],
)
def test_containers_say_how_they_ended(annotation, code, reason):
    api = Api()
    pod = running(annotations={"pumice.dev/run-time": "60s", **annotation})
    served(api, ("ADDED", pod), at=60)
    (status,) = api.statuses
    (container,) = status["containerStatuses"]
    ended = container["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], container["ready"]) == (code, reason, False)
    assert ended["startedAt"] < ended["finishedAt"]
