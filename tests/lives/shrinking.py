"""Makes a life smaller while the same check still finds something in it."""

from __future__ import annotations

from dataclasses import replace

from pumice.recording import reducing
from tests.lives import judge, rest, worlds

ROUNDS = 6


def shrink(script, check):
    """Drop jobs, objects, steps and cycles as long as the finding stays."""
    assert finds(script, check), f"{check} finds nothing in the life as it is written out"
    for _ in range(ROUNDS):
        size = _size(script)
        for smaller in (_without_jobs, _without_objects, _without_steps, _with_fewer_cycles, _without_details):
            script = smaller(script, check)
        if _size(script) == size:
            break
    return script


def finds(script, check):
    """Tell whether a check still finds something."""
    try:
        optional = [each for each in rest.OPTIONAL if each.__name__ == check]
        return any(finding.check == check for finding in judge.judge(script, optional)[1])
    except Exception as error:  # noqa: BLE001  a life that cannot be played has no finding, or is one
        return check == "fell_over" and error is not None


def _size(script):
    return len(script.given) + sum(len(str(step)) for step in script.steps) + len(str(script.given))


def _without_jobs(script, check):
    for name in sorted(_jobs(script)):
        smaller = _drop(script, lambda manifest, name=name: _job_of(manifest) == name)
        if finds(smaller, check):
            script = smaller
    return script


def _without_objects(script, check):
    return replace(script, given=reducing.minimal(script.given, lambda kept: finds(replace(script, given=kept), check)))


def _without_steps(script, check):
    for step in list(script.steps):
        steps = [other for other in script.steps if other is not step]
        if len(steps) < len(script.steps) and finds(replace(script, steps=steps), check):
            script = replace(script, steps=steps)
    return script


def _with_fewer_cycles(script, check):
    """Cut off what comes after the finding."""
    for cut in (16, 8, 4, 2, 1):
        while len(script.steps) > cut and finds(replace(script, steps=script.steps[:-cut]), check):
            script = replace(script, steps=script.steps[:-cut])
    return script


def _without_details(script, check):
    """Take fields off objects that do not matter."""
    for index, manifest in enumerate(script.given):
        for path in _fields(manifest):
            given = [*script.given[:index], _without(script.given[index], path), *script.given[index + 1 :]]
            if given[index] != script.given[index] and finds(replace(script, given=given), check):
                script = replace(script, given=given)
    return script


OPTIONAL = (
    ("metadata", "labels"),
    ("metadata", "annotations", worlds.PREEMPTABLE),
    ("metadata", "annotations", worlds.RUN_TIME),
    ("spec", "tolerations"),
    ("spec", "nodeSelector"),
    ("spec", "priorityClassName"),
    ("spec", "minResources"),
    ("spec", "minTaskMember"),
    ("spec", "capability"),
    ("spec", "guarantee"),
    ("spec", "deserved"),
    ("spec", "reclaimable"),
    ("spec", "priority"),
    ("spec", "taints"),
)


def _fields(manifest):
    return [path for path in OPTIONAL if _has(manifest, path)]


def _has(manifest, path):
    for part in path:
        if not isinstance(manifest, dict) or part not in manifest:
            return False
        manifest = manifest[part]
    return True


def _without(manifest, path):
    first, *rest = path
    if not rest:
        return {key: value for key, value in manifest.items() if key != first}
    return {**manifest, first: _without(manifest[first], rest)}


def _drop(script, is_dropped):
    """Take objects out of the beginning and of everything that is applied later."""
    given = [manifest for manifest in script.given if not is_dropped(manifest)]
    steps = []
    for step in script.steps:
        if "apply" in step:
            kept = [manifest for manifest in step["apply"] if not is_dropped(manifest)]
            if kept:
                steps.append(step if len(kept) == len(step["apply"]) else {"apply": kept})
        else:
            steps.append(step)
    return replace(script, given=given, steps=steps)


def _jobs(script):
    applied = [manifest for step in script.steps for manifest in step.get("apply", [])]
    return {_job_of(manifest) for manifest in [*script.given, *applied]} - {""}


def _job_of(manifest):
    if manifest["kind"] == "PodGroup":
        return manifest["metadata"]["name"]
    return manifest["metadata"].get("annotations", {}).get(worlds.GROUP_NAME, "") if manifest["kind"] == "Pod" else ""
