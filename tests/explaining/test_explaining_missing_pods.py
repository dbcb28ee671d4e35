"""What is said of a gang that lacks pods, or whose pods wait for gates, held against the rules written down once more: by every small number of pods of each kind."""

from __future__ import annotations

import itertools

import pytest
from explaining_worlds import asked

from builders import GANG, Desk, group, node, pod
from pumice.api import names

LOOSE = GANG.replace(", {name: gang}", "")
GATES = [{"name": names.QUEUE_GATE}, {"name": "example.com/hold"}]
KINDS = {
    "waiting": {},
    "gated": {"schedulingGates": GATES},
    "running": {"node": "n"},
    "bound": {"node": "n", "phase": "Pending"},
    "succeeded": {"node": "n", "phase": "Succeeded"},
    "failed": {"node": "n", "phase": "Failed"},
    "going": {"node": "n", "deleting": True},
}
NOWHERE = ("no node has 33 cpu at all: ", "even empty nodes ")
CROWDS = [
    dict(zip(KINDS, counts, strict=True))
    for counts in itertools.product((0, 1, 2), (0, 1, 2), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1))
]


def told(minimum, crowd, config):
    """What is said of a group of which so many pods of each kind exist; those that wait fit nowhere."""
    made = Desk(config).feed(node("n", cpu="32"), group("g", minimum))
    for kind, count in crowd.items():
        cpu = "33" if kind in ("waiting", "gated") else "1"
        made.feed(*(pod(f"{kind}-{i}", "g", cpu=cpu, **KINDS[kind]) for i in range(count)))
    (explained,) = asked(made, ("job", "a/g"))
    return explained.cause


def expected(minimum, crowd, *, counts):
    """Say the same by the rules: whoever has a node or succeeded is ready, and valid are those and whoever may get one."""
    waiting, gated, *placed = crowd.values()
    running, bound, succeeded, failed, going = placed
    ready = running + bound + succeeded
    valid = ready + waiting + gated
    few = f"only {valid} of the {minimum} pods that minMember needs exist"
    gates = f"{gated} of its {sum(crowd.values())} pods wait for scheduling gates to be taken off: example.com/hold"
    if not any(crowd.values()):
        return f"it has no pods yet, minMember is {minimum}" if counts else ""
    if not waiting + gated:  # it lacks some only if those that ended or are going would not have been enough
        return few if counts and max(valid, ready + failed + going) < minimum else ""
    if not counts or ready:
        return NOWHERE if waiting else gates
    if valid < minimum:
        return few
    return gates if gated and waiting < minimum else NOWHERE


UNPLACED = [crowd for crowd in CROWDS if not any([*crowd.values()][2:])]
NONE_WAITS = [crowd for crowd in CROWDS if not crowd["waiting"] + crowd["gated"]]


@pytest.mark.parametrize("minimum", [2, 3, 4])
@pytest.mark.parametrize("crowds", [UNPLACED, NONE_WAITS], ids=["none is placed", "none waits"])
def test_what_lacks_of_a_gang_of_which_nobody_has_a_node_or_everybody_is_counted_by_the_rules(crowds, minimum):
    for crowd in crowds:
        said, wanted = told(minimum, crowd, GANG), expected(minimum, crowd, counts=True)
        assert said.startswith(wanted) if wanted is NOWHERE else said == wanted, (crowd, said)


@pytest.mark.parametrize("minimum", [1, 2, 3])
@pytest.mark.parametrize("counts", [True, False], ids=["minimums count", "without gangs"])
@pytest.mark.parametrize("part", range(3))
def test_what_lacks_is_counted_by_the_rules(minimum, counts, part):
    for crowd in CROWDS[part + 3 * minimum :: 23]:
        said = told(minimum, crowd, GANG if counts else LOOSE)
        wanted = expected(minimum, crowd, counts=counts)
        assert said.startswith(wanted) if wanted is NOWHERE else said == wanted, (crowd, said)
