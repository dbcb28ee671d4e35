"""What a scheduler decided in a life, line by line, so that two schedulers can be compared.

Run as a program it prints the decisions of some lives as JSON lines, with whatever `pumice` the interpreter finds.
"""

from __future__ import annotations

import functools
import json
import re
import sys

from tests.lives import scripts
from tests.lives.player import Player
from tests.lives.stage import Stage


def lines(life):
    """Give, cycle by cycle, what changed in the objects that the scheduler writes, and its events."""
    found = []
    for cycle in life.cycles:
        said = [*_pods(cycle), *_groups(cycle), *_queues(cycle)]
        said += [f"event {reference} {reason}: {message}" for reference, reason, message in cycle.events]
        said += [f"broke down: {text}" for text in cycle.broken]
        found.append(said)
    return found


def of_seed(seed, wanted="", *, plain=False):
    """Play a seed, maybe without shortcuts, and give its decisions; a scheduler that falls over has decided that."""
    try:
        return lines(Player(scripts.draw(seed, wanted), stage=functools.partial(Stage, plain=plain)).play())
    except Exception as error:  # noqa: BLE001  what falls over is compared like everything else
        return [[f"fell over: {type(error).__name__}: {error}"]]


def _pods(cycle):
    before, after = cycle.before["Pod"], cycle.after["Pod"]
    for key in sorted(after):
        old, new = before.get(key, {}), after[key]
        if old is new:
            continue
        if not old.get("spec", {}).get("nodeName") and new["spec"].get("nodeName"):
            yield f"bind {key} to {new['spec']['nodeName']}"
        if not old.get("metadata", {}).get("deletionTimestamp") and new["metadata"].get("deletionTimestamp"):
            reason = next((c.get("message") for c in _conditions(new) if c["type"] == "DisruptionTarget"), "")
            # Plans are counted from one again after a restart.
            yield f"evict {key} for {re.sub(r', plan [0-9]+', '', reason)}"
        was, now = (each.get("status", {}).get("nominatedNodeName", "") for each in (old, new))
        if was != now:
            yield f"nominate {key} to {now or 'nobody'}"
        yield from _told(f"pod {key}", old, new)
    for key in sorted(set(before) - set(after)):
        yield f"gone {key}"


def _groups(cycle):
    before, after = cycle.before["PodGroup"], cycle.after["PodGroup"]
    for key in sorted(after):
        old, new = before.get(key, {}), after[key]
        was, now = (each.get("status", {}).get("phase", "") for each in (old, new))
        if was != now:
            yield f"phase {key} {was or 'none'} to {now or 'none'}"
        yield from _told(f"group {key}", old, new)


def _queues(cycle):
    before, after = cycle.before["Queue"], cycle.after["Queue"]
    for key in sorted(after):
        was, now = (each.get(key, {}).get("status", {}) for each in (before, after))
        if was != now:
            yield f"queue {key} {json.dumps(now, sort_keys=True)}"


def _told(subject, old, new):
    was, now = _texts(old), _texts(new)
    for kind in sorted(now):
        if was.get(kind) != now[kind]:
            yield f"condition {subject} {kind} {' '.join(now[kind])}"


def _texts(manifest):
    return {c["type"]: (c.get("status", ""), c.get("reason", ""), c.get("message", "")) for c in _conditions(manifest)}


def _conditions(manifest):
    return manifest.get("status", {}).get("conditions", [])


def main():
    """Print the decisions of seeds FIRST to LAST, of policies whose name holds a text; `plain` after it takes no shortcuts."""
    first, last, wanted = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
    for seed in range(first, last):
        print(json.dumps([seed, of_seed(seed, wanted, plain="plain" in sys.argv[4:])]), flush=True)  # noqa: T201  the other side reads it


if __name__ == "__main__":
    main()
