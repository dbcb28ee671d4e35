"""The same life lived otherwise: lists in another order, a scheduler that is started again, or one without shortcuts. Decisions must not depend on any of it."""

from __future__ import annotations

import copy
import functools
import random
from dataclasses import replace

from tests.lives import decisions
from tests.lives.findings import Finding
from tests.lives.player import Player
from tests.lives.stage import Stage

DECIDED = ("bind", "evict", "nominate", "phase", "broke")


def shuffled(script):
    """Lists may come in any order (19): the same objects, listed otherwise, give the same decisions, texts included."""
    first = Player(script)
    given = [manifest for kind in first.stage.objects().kinds.values() for manifest in kind.values()]
    given = [manifest for manifest in copy.deepcopy(given) if _is_given(script, manifest)]
    straight, other = list(given), list(given)
    random.Random(script.seed).shuffle(other)  # noqa: S311  an order, not a secret
    return _compare(script, straight, other, "order", ("bind", "evict", "nominate", "phase", "condition", "broke"))


def restarted(script):
    """Memory is derivable (design 10): a scheduler that is started again between two cycles goes on as the old one would have.

    Only lives without faults are asked: what a write has come to is known to the scheduler that sent it.
    """
    if any("fail" in step or "restart" in step for step in script.steps):
        return []
    pick = random.Random(script.seed)  # noqa: S311  as above
    steps = []
    for step in script.steps:
        if "cycles" in step and steps and pick.random() < 0.3:
            steps.append({"restart": True})
        steps.append(step)
    mine = decisions.lines(Player(script).play())
    yours = decisions.lines(Player(replace(script, steps=steps)).play())
    return _differences(mine, yours, "restart", DECIDED)


def plain(script, *, life=None, texts=False):
    """Shortcuts change no decision: whoever takes none does the same in the same order, and says of evictions the same; with `texts` every word is compared.

    Without, reasons to wait are left out: whoever is passed over in a cycle may be told of new numbers, or of a cause beside the same refusal, in a later one.
    The `life` with shortcuts need not be lived again if it was before.
    """
    mine = decisions.lines(life or Player(script).play())
    yours = decisions.lines(Player(script, stage=functools.partial(Stage, plain=True)).play())
    return _differences(mine, yours, "plain", _is_said if texts else _is_done)


def _is_said(_):
    return True


def _is_done(line):
    """Tell whether a line is no reason to wait."""
    return not any(f" {word}" in line for word in ("PodScheduled False", "Unschedulable", "FailedScheduling"))


def _compare(script, straight, other, name, kinds):
    mine, yours = (decisions.lines(Player(script, given=given).play()) for given in (straight, other))
    return _differences(mine, yours, name, kinds)


def _sorted(side, kinds):
    return sorted(line for line in side if line.startswith(kinds))


def _differences(mine, yours, name, kinds):
    """Give the first cycle that differs: in lines that a function picks, or in those of some kinds whatever their order."""
    for number, sides in enumerate(zip(mine, yours, strict=True), 1):
        left, right = (list(filter(kinds, side)) if callable(kinds) else _sorted(side, kinds) for side in sides)
        if left != right:
            lost = [line for line in left if line not in right]
            found = [line for line in right if line not in left]
            return [Finding(name, number, f"- {'; '.join(lost[:3])} + {'; '.join(found[:3])}")]
    return []


def _is_given(script, manifest):
    """Tell whether an object is one of the script's own; those that every cluster has are there already."""
    names = {(each["kind"], each["metadata"]["name"]) for each in script.given}
    return (manifest["kind"], manifest["metadata"]["name"]) in names


VARIANTS = (shuffled, restarted, plain)
