"""What may be taken for granted by what functions say that they read: each fact by table."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.framework import independence
from pumice.framework.independence import Independence, Victims
from pumice.framework.reads import NOTHING, Reads

NODE, COLUMNS, TASKS, OTHERS = Reads.NODE, Reads.COLUMNS, Reads.TASKS, Reads.OTHER_NODES
TASK, JOB, QUEUE, TIME = Reads.TASK, Reads.JOB, Reads.QUEUE, Reads.TIME
ALL = (NODE, COLUMNS, TASKS, OTHERS, TASK, JOB, QUEUE, TIME)


def reading(*reads, basis=None):
    return [SimpleNamespace(reads=each, basis=basis, plugin="somebody") for each in reads]


def facts(*, handlers=(False, False), all_nodes=True, apart=(False, False), names=False, named=False, **asked):
    """The facts of a session whose points have functions that read so much."""
    refuses, looks = handlers
    points = {
        name: reading(*asked.get(name, ())) for name in ("pre_predicate", "allocatable", "job_valid", "job_pipelined")
    }
    session = SimpleNamespace(
        **points, names_nodes=names, handlers=SimpleNamespace(may_refuse=refuses, look_around=looks)
    )
    nodes = SimpleNamespace(
        looks_at_all_nodes=all_nodes,
        tells_subjects_apart=apart[0],
        tells_tasks_apart=apart[1],
        names_apart=lambda plugin: named and plugin == "somebody",
    )
    return Independence(session, nodes)


MAY_READ = {
    "refusals_go_by_shape": ("pre_predicate", {NOTHING, NODE}),
    "limits_go_by_queues": ("allocatable", {NOTHING, QUEUE}),
    "validity_goes_by_queues": ("job_valid", {NOTHING, QUEUE}),
    "waiting_goes_by_numbers": ("job_pipelined", {NOTHING}),
}


@pytest.mark.parametrize("fact", MAY_READ)
@pytest.mark.parametrize("reads", [NOTHING, *ALL])
def test_a_fact_about_those_who_are_asked_follows_from_what_each_of_them_reads(fact, reads):
    point, may_read = MAY_READ[fact]
    for others in ((), (NOTHING,)):
        assert getattr(facts(**{point: (*others, reads)}), fact) is (reads in may_read)
    assert getattr(facts(), fact) is True


@pytest.mark.parametrize("handlers", [(False, False), (True, False), (False, True), (True, True)])
def test_placements_stand_where_nobody_may_refuse_them_and_are_told_together_where_nobody_looks_around(handlers):
    found = facts(handlers=handlers)
    assert found.placements_stand is (not handlers[0])
    assert found.placements_are_told_together is (handlers == (False, False))


@pytest.mark.parametrize("is_so", [False, True])
def test_what_is_known_of_functions_about_nodes_is_passed_on(is_so):
    assert facts(all_nodes=is_so).all_nodes_are_looked_at is is_so
    assert facts(apart=(is_so, not is_so)).equals_share_answers is not is_so
    assert facts(apart=(not is_so, is_so)).siblings_share_answers is not is_so
    assert facts(names=is_so).nodes_are_chosen_by_scores is not is_so


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("reads", [NOTHING, *ALL])
def test_answers_are_shared_if_nobody_who_is_asked_before_nodes_tells_pods_apart_without_naming_by_what(reads, named):
    found = facts(pre_predicate=(NOTHING, reads), named=named)
    passes = reads in (COLUMNS, TASKS, OTHERS)  # a placement changes it, whatever it is named after
    assert found.equals_share_answers is (not passes and (named or reads not in (TASK, JOB, QUEUE, TIME)))
    assert found.siblings_share_answers is (not passes and (named or reads is not TASK))


# ---- those who decide about victims


def victims(*tiers, protections=(), final_veto=False):
    voting = SimpleNamespace(tiers=[reading(*tier) for tier in tiers], final_veto=final_veto)
    return Victims(voting, reading(*protections))


VOTES = {
    "votes_go_by_numbers": {NOTHING},
    "votes_go_by_priority": {NOTHING, NODE, TASKS, TASK, TIME},
    "votes_know_jobs": {JOB},
    "votes_know_amounts": {COLUMNS},
    "votes_count_who_goes": {OTHERS},
}


@pytest.mark.parametrize("fact", VOTES)
@pytest.mark.parametrize("reads", [NOTHING, *ALL])
def test_a_fact_about_votes_follows_from_what_any_of_them_reads(fact, reads):
    for tiers in ([(reads,)], [(NOTHING, reads)], [(), (NOTHING,), (reads,)]):
        assert getattr(victims(*tiers), fact) is (reads in VOTES[fact])


OUTVOTED = [
    ([], False, True),
    ([()], False, True),
    ([(NOTHING,)], False, True),
    ([(NOTHING,) * 2], False, True),
    ([(NOTHING,) * 3], False, False),  # two may agree on nobody, and the third decide alone
    ([(NOTHING,), (NOTHING,)], False, False),
    ([(), (NOTHING,) * 2, ()], False, True),
    ([(NOTHING,) * 3], True, True),
    ([(NOTHING,), (NOTHING,)], True, True),
]


@pytest.mark.parametrize(("tiers", "final_veto", "is_so"), OUTVOTED)
def test_nobody_is_outvoted_where_one_tier_of_two_at_most_votes_or_all_have_to_agree(tiers, final_veto, is_so):
    assert victims(*tiers, final_veto=final_veto).nobody_is_outvoted is is_so


FIRSTS = [
    ([], None),
    ([(NOTHING,)], None),  # there is no other
    ([(NOTHING,), ()], None),
    ([(NOTHING,), (JOB,)], 0),
    ([(), (NOTHING, NOTHING), (JOB,)], 1),
    ([(JOB,), (NOTHING,)], None),
    ([(NOTHING, TASK), (NOTHING,)], None),
]


@pytest.mark.parametrize(("tiers", "first"), FIRSTS)
def test_of_several_tiers_the_first_gives_the_same_alone_if_it_goes_by_numbers(tiers, first):
    assert victims(*tiers).first_tier_of_several == first


@pytest.mark.parametrize("reads", [NOTHING, *ALL])
def test_candidates_are_looked_at_where_a_vote_or_a_protection_knows_more_of_them_than_numbers(reads):
    assert victims((NOTHING, reads)).candidates_are_looked_at is (reads == TASK)
    assert victims((NOTHING,), protections=(reads,)).candidates_are_looked_at is (reads == TASK)


PROTECTIONS = [  # reads, by pod or queue, stays, goes by queue, counts evictions
    (NOTHING, True, True, False, False),
    (TASK, True, True, False, False),
    (QUEUE, True, True, True, False),
    (QUEUE | TASK, False, False, False, False),
    (OTHERS, False, False, False, True),
    (OTHERS | QUEUE, False, False, False, True),
    (OTHERS | TASK, False, False, False, True),
    (JOB, False, True, False, False),
    (TIME, False, True, False, False),
]


@pytest.mark.parametrize(("reads", "by_pod_or_queue", "stays", "by_queue", "counts"), PROTECTIONS)
def test_what_protections_know_says_when_they_have_to_be_asked_again(reads, by_pod_or_queue, stays, by_queue, counts):
    (each,) = reading(reads)
    for protections in ((reads,), (NOTHING, reads), (reads, TASK)):
        found = victims(protections=protections)
        assert found.protections_go_by_pod_or_queue is by_pod_or_queue
        assert found.protections_stay is stays
    assert independence.goes_by_queue(each) is by_queue
    assert independence.counts_evictions(each) is counts


@pytest.mark.parametrize(
    ("reads", "basis", "stays"),
    [
        (NOTHING, None, True),
        (TASK, None, True),
        (JOB, None, False),
        (TASK | QUEUE, None, False),
        (QUEUE, list, True),
        (TIME, None, False),
        (TIME, list, False),
        (QUEUE | TIME, list, False),
    ],
)
def test_an_answer_stays_with_what_it_rests_on_unless_it_reads_the_clock(reads, basis, stays):
    (each,) = reading(reads, basis=basis)
    assert independence.stays_with_its_basis(each) is stays
