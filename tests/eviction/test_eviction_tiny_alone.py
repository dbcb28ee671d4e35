"""Each way of looking for victims alone, in tiny worlds: what it finds passes every rule, and it misses nothing that the exhaustive reference finds.

Otherwise one way makes up for what another misses, and nobody would know.
"""

from __future__ import annotations

import pytest
import tiny_checks
import tiny_worlds

from drawing import drawn
from pumice.actions.eviction import bundles, exhaustive, proposals

WORLDS = drawn(200, 10)
BEGINNINGS = range(20_000, 20_000 + 6 * WORLDS, WORLDS)
GANG_FORMS = ("gangpreempt", "gangreclaim")
EVERYBODY = (exhaustive.EverySet, proposals.CheapestNodes, bundles.Bundles)


def with_nobody_but(looking, monkeypatch):
    for each in EVERYBODY:
        if each is not looking:
            monkeypatch.setattr(each, "proposals", lambda *_: iter(()))


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("action", tiny_worlds.ACTIONS)
def test_the_cheapest_nodes_miss_nothing(action, beginning, monkeypatch):
    with_nobody_but(proposals.CheapestNodes, monkeypatch)
    notes, findings = tiny_checks.search(range(beginning, beginning + WORLDS), action)
    assert notes["plans"]
    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("action", GANG_FORMS)
def test_bundles_miss_nothing_though_they_may_take_dearer_ones(action, beginning, monkeypatch):
    with_nobody_but(bundles.Bundles, monkeypatch)
    notes, findings = tiny_checks.search(range(beginning, beginning + WORLDS), action)
    broken = [str(finding) for finding in findings if "rank" not in finding.rule]
    assert notes["plans"]
    assert not broken, "\n".join(broken)
