"""What is done to a cluster before it is simulated: objects applied and deleted, nodes drained, as admission, kubectl and controllers would do it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.admission import requests
from pumice.admission.jobs import completing
from pumice.api import kinds, names
from pumice.scenario.stage import SimulatedStage, StepError
from pumice.study.state import Manifest, StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.cache.options import Options


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to a cluster before its cycles run."""

    apply: tuple[Manifest, ...] = ()
    delete: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()


NO_CHANGE = Change()


def make(stage: SimulatedStage, change: Change, options: Options) -> None:
    """Do to the cluster what is asked; what it refuses is told."""
    try:
        stage.apply([_admitted(each, options) for each in change.apply])
        for node in change.drain:
            _drain(stage, node)
        stage.delete(list(change.delete), None)
    except StepError as error:
        raise StudyError(str(error).removeprefix("delete: ").removeprefix("apply: ")) from error


def _admitted(manifest: Manifest, options: Options) -> Manifest:
    """Fill in a Job what admission would."""
    spec = manifest.get("spec")
    if kinds.find(str(manifest.get("apiVersion")), str(manifest.get("kind"))) is not kinds.JOB or not isinstance(
        spec, dict
    ):
        return manifest
    spec = copy.deepcopy(spec)
    completing.complete_spec(spec, requests.RuleSettings(scheduler_names=tuple(options.scheduler_name)))
    return {**manifest, "spec": spec}


def _drain(stage: SimulatedStage, name: str) -> None:
    """Cordon a node and send its pods away, as `kubectl drain` does; whoever made them makes them anew."""
    node = next((each for each in stage.cluster.store.scan(kinds.NODE) if each["metadata"]["name"] == name), None)
    if node is None:
        raise StudyError(f"--drain {name}: no such node")
    stage.patch([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"unschedulable": True}}])
    on_it = [pod for pod in stage.cluster.store.scan(kinds.POD) if (pod.get("spec") or {}).get("nodeName") == name]
    going = [copy.deepcopy(dict(pod)) for pod in on_it if not _stays(pod) and not is_finished(pod)]
    stage.delete([f"pod/{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in going], None)
    stage.cluster.settle()  # a Job's controller makes its own
    stage.apply([_anew(pod) for pod in going if _is_made_anew(pod) and not job_of(stage, pod)])


def _stays(pod: Any) -> bool:
    owners = [owner.get("kind") for owner in pod["metadata"].get("ownerReferences") or ()]
    return "DaemonSet" in owners or "Node" in owners


def is_finished(pod: Any) -> bool:
    """Tell whether a pod has run to its end."""
    return (pod.get("status") or {}).get("phase") in (names.PHASE_SUCCEEDED, names.PHASE_FAILED)


def _is_made_anew(pod: Manifest) -> bool:
    return bool(
        pod["metadata"].get("ownerReferences")
        or names.GROUP_NAME in (pod["metadata"].get("annotations") or {})
        or pod["spec"].get("schedulingGroup")
    )


def _anew(pod: Manifest) -> Manifest:
    metadata = {key: value for key, value in pod["metadata"].items() if key not in _OF_ONE_LIFE}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


_OF_ONE_LIFE = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}
)


def job_of(stage: SimulatedStage, found: Mapping[str, Any]) -> str:
    """Return the namespace and name of the Volcano Job that an object belongs to; empty if there is none."""
    for owner in found["metadata"].get("ownerReferences") or ():
        key = stage.cluster.store.owner(str(owner.get("uid")))
        if key is not None and key.kind is kinds.JOB:
            return f"{key.namespace}/{key.name}"
    return ""
