"""Plays a script: takes its steps, does what controllers would do, and tells whoever watches about each cycle."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

from tests.lives import worlds
from tests.lives.stage import Stage


@dataclass
class Cycle:
    """One cycle: what the API server showed before and after it, and what the scheduler said."""

    number: int
    before: object
    after: object
    trace: list
    broken: list
    writes: dict  # made in this cycle
    events: list
    evicted: list  # uids of pods evicted in this cycle
    changed: bool  # whether anything but the scheduler and its consequences changed since the cycle before
    remaining: int  # cycles of the tail that are still to come, or -1 before the tail
    restarted: bool = False


@dataclass
class Life:
    """A script that was played: the same script without controllers, and its cycles."""

    script: object
    steps: list = field(default_factory=list)
    cycles: list = field(default_factory=list)

    def written_out(self):
        """Give the script with everything in it that controllers did."""
        return replace(self.script, steps=self.steps, late={}, replaces=False)


class Player:
    """Plays one script on a stage of its own."""

    def __init__(self, script, *, given=None, stage=Stage):
        self.script = script
        self.stage = stage(script.policy.text, copy.deepcopy(given or script.given))
        self.life = Life(script)
        self._late = dict(script.late)
        self._gone = set()
        self._changed = True
        self._restarted = False
        self._templates = {}
        self._deleted = set()
        self._last_change = _last_change(script)

    def play(self, watch=lambda cycle: None):
        """Take all steps; whoever watches is told after each cycle, and may end the life by returning true."""
        for index, step in enumerate(self.script.steps):
            if "cycles" in step:
                for _ in range(step["cycles"]):
                    if self._cycle(index, watch):
                        return self.life
            else:
                self._take(step)
        return self.life

    def _take(self, step):
        step = copy.deepcopy(step)
        if "apply" in step:
            self.stage.apply(step["apply"])
        elif "patch" in step:
            step["patch"] = self.stage.patch(step["patch"])
        elif "delete" in step:
            self._deleted |= {reference.removeprefix("pod/") for reference in step["delete"]}
            step["delete"] = self.stage.delete(step["delete"], step.get("grace"))
        elif "fail" in step:
            self.stage.fail(**step["fail"])
        elif "restart" in step:
            self.stage.restart()
            self._restarted = True
        if any(step.values()):
            self.life.steps.append(step)
            self._changed = True

    def _cycle(self, index, watch):
        stage = self.stage
        before, written, told = stage.objects(), stage.writes(), set(stage.evicted())
        for key, pod in before["Pod"].items():
            self._templates.setdefault(pod["metadata"]["uid"], (key, pod))
        trace, broken = stage.decide()
        after, writes = stage.objects(), stage.writes()
        number = len(self.life.cycles) + 1
        cycle = Cycle(
            number,
            before,
            after,
            trace,
            broken,
            {name: writes[name] - written[name] for name in writes},
            stage.events(written["events"]),
            [uid for uid in stage.evicted() if uid not in told],
            self._changed,
            self.script.cycles - number if index > self._last_change else -1,
            self._restarted,
        )
        self.life.cycles.append(cycle)
        self.life.steps.append({"cycles": 1})
        self._changed = self._restarted = False
        ended = watch(cycle)
        stage.wait()
        self._follow(after)
        return ended

    # ---- controllers

    def _follow(self, seen):
        """Create what waits for its group to be let in, and replace what was evicted and is gone."""
        for name in [name for name in self._late if self._is_in(seen, name)]:
            self._take({"apply": self._late.pop(name)})
        if not self.script.replaces:
            return
        there = {pod["metadata"]["uid"] for pod in self.stage.objects()["Pod"].values()}
        for uid in self.stage.evicted():
            if uid in there or uid in self._gone or uid not in self._templates:
                continue
            self._gone.add(uid)
            key, pod = self._templates[uid]
            group = f"{worlds.SPACE}/{pod['metadata']['annotations'].get(worlds.GROUP_NAME)}"
            if key not in self._deleted and group in self.stage.objects()["PodGroup"]:
                self._take({"apply": [_successor(pod)]})

    def _is_in(self, seen, name):
        group = seen["PodGroup"].get(f"{worlds.SPACE}/{name}")
        return group is not None and group.get("status", {}).get("phase") in ("Inqueue", "Running")


def _successor(pod):
    metadata, spec = pod["metadata"], dict(pod["spec"])
    for added in ("nodeName", "priority"):
        spec.pop(added, None)
    kept = {
        key: copy.deepcopy(metadata[key]) for key in ("name", "namespace", "annotations", "labels") if key in metadata
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": copy.deepcopy(spec)}


def _last_change(script):
    """Give the place of the last step that is no cycle."""
    return max((index for index, step in enumerate(script.steps) if "cycles" not in step), default=-1)
