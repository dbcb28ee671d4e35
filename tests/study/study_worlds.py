"""Random clusters to study: lives of `tests/lives`, lived for a few cycles, then left as they are."""

from __future__ import annotations

from pumice.api import duration
from pumice.cache.options import Options
from pumice.framework import configuration, registry
from pumice.scenario.stage import SimulatedStage
from pumice.study import comparing, configuring, files
from pumice.study.rehearsal import Rehearsal
from pumice.study.state import State
from tests.lives import scripts

KNOWN = registry.installed()


def played(seed, policy="", cycles=4):
    """Return the stage of a random cluster after some cycles, with its policy."""
    script = scripts.draw(seed, policy)
    settings = configuration.load(script.policy.text, KNOWN.catalog(), "config")
    stage = SimulatedStage(settings, Options(), KNOWN)
    stage.breakdowns = True
    stage.apply(script.given)
    stage.connect()
    for _ in range(cycles):
        stage.cycle(duration.SECOND)
    return stage


def seen(stage):
    """Read a stage as it is now."""
    now = stage.cluster.clock.now()
    return State(source="a life", now=now, objects=files.stored(stage.cluster), configuration=stage.configuration)


def lived(seed, policy="", cycles=4):
    """Return the state of a random cluster after some cycles, with its policy."""
    return seen(played(seed, policy, cycles))


def rehearsed(state):
    """Build the model of a state."""
    return Rehearsal(state.objects, state.configuration, Options(), state.now, KNOWN)


def policy_of(state):
    """Return the policy that came with a state."""
    return configuring.choose(state, KNOWN)


def staged(state):
    """Put a state on a stage of its own."""
    return comparing.staged(state, policy_of(state), KNOWN)
