"""The same inputs under another policy: each cycle is decided once more on the recorded state.

What follows from a decision is that of the recorded world (a pod that was bound stays bound), so the two policies are compared cycle by cycle, on the same
state each time, and never drift apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.recording import state
from pumice.recording.player import Inputs, adopt
from pumice.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.cache.effects import Effect
    from pumice.framework.configuration import Configuration
    from pumice.recording.effects import Plain
    from pumice.recording.lines import ReadStep
    from pumice.recording.player import Player

NOTHING: Final = "nothing"


class Parting(msgspec.Struct):
    """Where two policies decide differently about somebody: from which cycle on, and in how many."""

    cycle: int
    now: int
    subject: str
    recorded: str
    other: str
    cycles: int = 1


class OtherPolicy:
    """Decides every cycle under another configuration too."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.partings: dict[tuple[str, str, str], Parting] = {}
        self.cycles = 0  # in which the policies part
        self.broke = 0  # in which the other one broke down

    def decide(self, player: Player, step: ReadStep) -> list[Effect]:
        """Decide a cycle that was not played yet, on a copy."""
        inputs = copy(player)
        assert inputs.cache is not None  # noqa: S101  it was just made
        known = state.Known(inputs.cache, inputs.reservations, player.scheduler.cycles)
        made = Scheduler(inputs.cache, self._configuration, lambda: step.now, known=player.known)
        adopt(made, known)
        inputs.cache.inputs = inputs
        inputs.prepare(step)
        try:
            made.cycle()
        except Exception:  # noqa: BLE001  whatever a policy raises is its own
            self.broke += 1
        return inputs.sent

    def compare(self, step: ReadStep, recorded: Iterable[Plain], other: Iterable[Plain]) -> list[Parting]:
        """Return what is decided differently in a cycle and was not before."""
        here, there = decisions(recorded), decisions(other)
        fresh = []
        differing = [subject for subject in {**here, **there} if here.get(subject) != there.get(subject)]
        self.cycles += bool(differing)
        for subject in differing:
            key = (subject, here.get(subject, NOTHING), there.get(subject, NOTHING))
            known = self.partings.get(key)
            if known is None:
                found = self.partings[key] = Parting(step.cycle, step.now, *key)
                fresh.append(found)
            else:
                known.cycles += 1
        return fresh


class Copied(Inputs):
    """Inputs of a copy, with the holds that belong to it."""

    reservations: Any = None


def copy(player: Player) -> Copied:
    """Copy all that a player's scheduler knows."""
    inputs = Copied()
    table = state.capture(player.scheduler, player.inputs.ledger, None).table()
    known = state.restore(table, inputs, inputs.ledger)
    inputs.cache, inputs.reservations = known.cache, known.reservations
    return inputs


def decisions(effects: Iterable[Plain]) -> dict[str, str]:
    """Return what was decided about whom: binds, evictions, nominations and phases; texts and counts are none."""
    found: dict[str, str] = {}
    for effect in effects:
        match effect:
            case ["bind", namespace, name, _, node, *_]:
                found[f"pod {namespace}/{name}"] = f"bind to {node}"
            case ["evict", namespace, name, *_]:
                found[f"pod {namespace}/{name}"] = "evict"
            case ["patch", kind, namespace, name, _, {"status": {"nominatedNodeName": str(node)}}, *_] if kind:
                found[f"pod {namespace}/{name}"] = f"nominate to {node}"
            case ["patch", kind, namespace, name, _, {"status": {"phase": str(phase)}}, *_] if kind:
                found[f"group {namespace}/{name}"] = f"phase {phase}"
    return found
