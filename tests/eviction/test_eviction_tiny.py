"""Every plan that is made in a tiny world is one that the exhaustive reference allows, and none is missed that it finds.

`PUMICE_FUZZ=1` draws worlds that nobody has seen before, and more of them.
"""

from __future__ import annotations

import random

import pytest
import tiny_checks
import tiny_lives
import tiny_worlds

from drawing import FUZZ, drawn
from pumice.actions.eviction import exhaustive, search, trimming

WORLDS = drawn(2000, 40)
LIVES = drawn(400, 12)
FIRST = random.SystemRandom().randrange(10**6, 10**9) if FUZZ else 20_000
# Worlds in which a rule was broken once.
MENDED = (
    ("inside one job nobody goes while its minimum is not reached", 86, ""),
    ("inside one job a plan is for as many members as are lacking", 366, ""),
    ("a job that keeps its minimum loses a pod before one that does not", 609, ""),
    ("the same on one node", 2036, ""),
    ("reclaim asks for each member whether its queue may, in the state reached", 780, ""),
    ("a queue that deserves nothing reclaims nothing", 51, ""),
    ("a less important pod goes first in gangreclaim", 1706, ""),
    ("pods that stay use up nobody's allowance in gangreclaim", 1832, ""),
    ("a gang that goes whole is judged once in gangreclaim", 1649, ""),
    ("the same by capacity", 2616, ""),
    ("whom the victims' job would take back is not taken", 1554, ""),
    ("a job that keeps its minimum without those who are offered does not go whole", 2927, ""),
    ("where gang votes a minimum stays, also if several members take from one job", 2979, ""),
    ("a gang goes whole from two nodes for two members", 2017, ""),
    ("the pod that a job can spare goes where it helps both members", 2765, ""),
    ("the same in reclaim", 1853, ""),
    ("who goes for one member opens the queue's limit for another that takes nobody", 51293, ""),
    ("pods of a queue are asked about in victim order, the due is left with the last", 50782, ""),
    ("of few units the best set goes, for a limit of the queue too", 50642, ""),
    ("a job without a minimum goes before one that is left without its own", 2672, ""),
    ("the same in gangreclaim", 51150, ""),
    ("a queue beyond its due may exchange a pod for one inside itself", 20214, "gangpreempt"),
    ("a pod that drf gives alone is offered though one before it of its job is refused", 301958, "preempt"),
    ("the same of a job that lacks more than one member", 300821, "preempt"),
    ("a further member finds a plan though one of another shape does not", 300045, "preempt"),
    ("a pod goes for another member of its node than the first", 300403, "preempt"),
    ("who waits for room that was made for it is no candidate", 300727, "preempt"),
    ("a job without a minimum is no gang that is judged once", 300333, "reclaim"),
    ("the same in gangreclaim", 303769, "gangreclaim"),
    ("a pod that was bound a moment ago goes with the rest of its gang", 302630, "reclaim"),
    ("a job that would come back if it went whole gives what it can spare", 301501, "reclaim"),
    ("the same on one node", 303060, "reclaim"),
    ("the same of two jobs in gangreclaim", 302224, "gangreclaim"),
    ("who would come back still has a say in which tier decides", 301406, "preempt"),
    ("a member that waits for room counts for no vote about its job", 500118, "preempt"),
    ("members who find no room beside others of their job ask for themselves", 500054, "reclaim"),
    ("a job with a minimum of one is no gang that is judged once", 501136, "gangreclaim"),
    ("pods of a job each of which it can spare, but not all of them, cost as much as the job", 910410, "preempt"),
    ("a member for whom there is room without a plan counts for the minimum", 910515, "preempt"),
    ("whose next plans do not last goes on to the claimant's pods, however far away that is", 20208, "reclaim"),
    ("the same in gangreclaim", 20208, "gangreclaim"),
)
# Worlds in which evictions went round for ever.
ENDED = (
    ("three jobs take from each other in turn", 5615, ""),
    ("one of two equals takes others only as long as they do not come back", 20208, "reclaim"),
    ("the same in gangreclaim", 20208, "gangreclaim"),
)


@pytest.mark.parametrize("action", tiny_worlds.ACTIONS)
def test_what_is_committed_passes_every_rule_and_nothing_is_missed(action, record_property):
    notes, findings = tiny_checks.search(range(FIRST, FIRST + WORLDS), action)
    record_property("what was seen", dict(notes))
    assert notes["plans"] > WORLDS // 10, "the worlds ask for no evictions"
    assert notes["nobody evicted"] > WORLDS // 10, "the worlds have no claimants that wait"
    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize("action", tiny_worlds.ACTIONS)
def test_what_is_found_among_many_passes_every_rule_too(action, monkeypatch):
    """With nothing tried in every combination the other searchers are asked, which may miss a plan or take a dearer one."""
    monkeypatch.setattr(exhaustive, "MOST", 0)
    notes, findings = tiny_checks.search(range(FIRST, FIRST + WORLDS // 3), action)
    broken = [str(finding) for finding in findings if not any(word in finding.rule for word in ("missed", "rank"))]
    assert notes["plans"] > WORLDS // 30, "the worlds ask for no evictions"
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("seed", "action"), [each[1:] for each in MENDED], ids=[each[0] for each in MENDED])
def test_a_rule_that_was_broken_once_holds(seed, action):
    check = tiny_checks.Check(seed, action)
    assert not check.findings, "\n".join(map(str, check.findings))


def test_of_a_gang_that_was_taken_whole_no_more_goes_than_is_needed_where_not_every_combination_is_tried(monkeypatch):
    monkeypatch.setattr(exhaustive, "MOST", 0)
    check = tiny_checks.Check(520144, "gangpreempt")
    assert check.ran.evictions == ["a/j0-2"]
    assert not check.findings
    monkeypatch.setattr(trimming, "_take_a_part", lambda *_: None)
    assert len(tiny_checks.Check(520144, "gangpreempt").ran.evictions) == 3


@pytest.mark.parametrize(("seed", "action"), [each[1:] for each in ENDED], ids=[each[0] for each in ENDED])
def test_evictions_that_went_round_once_end(seed, action):
    found, late = tiny_lives.repeated(tiny_worlds.draw(seed, action))
    assert not found, f"{found[0][0]} is evicted for {found[0][1]} once more"
    assert not late, "evictions go on"


@pytest.mark.parametrize(("seed", "action"), [each[1:] for each in ENDED], ids=[each[0] for each in ENDED])
def test_they_go_round_if_it_is_not_looked_at_where_later_plans_lead(seed, action, monkeypatch):
    monkeypatch.setattr(search, "DEEPER", 0)
    found, late = tiny_lives.repeated(tiny_worlds.draw(seed, action))
    assert found
    assert late


@pytest.mark.parametrize("action", tiny_worlds.ACTIONS)
def test_evictions_end_though_everybody_comes_back(action):
    for seed in range(FIRST, FIRST + LIVES):
        found, late = tiny_lives.repeated(tiny_worlds.draw(seed, action))
        assert not found, f"world {seed}: {found[0][0]} is evicted for {found[0][1]} once more"
        assert not late, f"world {seed}: evictions go on"
