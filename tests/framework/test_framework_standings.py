"""Who is looked at again at the end of a cycle, and how long what nodes could ever do for a job is remembered."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.framework import standings
from pumice.model.statuses import Status

FLAGS = ("dirty", "pending", "dormant", "attempted", "rests")


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(FLAGS, st.booleans())), max_size=5))
def test_whoever_was_tried_waits_or_has_changed_is_looked_at_unless_it_is_known_that_nothing_new_can_be_said(jobs):
    made = {f"j{i}": SimpleNamespace(key=f"j{i}", tasks={f"uid{i}": None}, **flags) for i, flags in enumerate(jobs)}

    def those(wanted):
        return {key: job for key, job in made.items() if wanted(job)}

    session = SimpleNamespace(
        cluster=SimpleNamespace(
            pending_jobs=those(lambda job: job.pending),
            dirty_jobs=those(lambda job: job.dirty),
        ),
        findings=SimpleNamespace(dormant=those(lambda job: job.dormant), attempted=those(lambda job: job.attempted)),
        awake=those(lambda job: job.pending and not job.dormant),
        resting_holders={uid: None for job in made.values() if job.rests for uid in job.tasks},
    )
    expected = those(
        lambda job: (
            job.attempted or (job.pending and not job.dormant) or (job.dirty and not job.dormant and not job.rests)
        )
    )
    found = standings.noticed(session)
    assert len(found) == len(expected)
    assert {job.key for job in found} == expected.keys()


@pytest.mark.parametrize(
    ("group", "version", "found"),
    [
        ("the same", 7, "remembered"),
        ("another", 7, ([], "")),
        ("the same", 8, ([], "")),
        ("another", 8, ([], "")),
    ],
)
def test_what_nodes_could_do_for_a_job_is_remembered_as_long_as_its_group_and_its_pods_are_what_they_were(
    group, version, found
):
    groups = {"the same": object(), "another": object()}
    jobs = {"j": (groups["the same"], 7, "remembered")}
    session = SimpleNamespace(outlooks=SimpleNamespace(jobs=jobs), job_ready=lambda _: True)
    job = SimpleNamespace(key="j", group=groups[group], version=version, pending={}, min_member=2)
    assert standings.outlook_of(session, job, {}) == found
    assert jobs["j"] == (groups[group], version, found)


def said_of(*, phase="Inqueue", pending=True, waiting=0, allocated=0, cycle=5, said="text"):
    """Whose words count for a job, in cycle 5."""
    session = SimpleNamespace(
        number=5,
        findings=SimpleNamespace(phase=lambda _: phase),
        record=SimpleNamespace(verdict=lambda _, source: SimpleNamespace(cycle=cycle, said=said, source=source)),
    )
    tally = SimpleNamespace(waiting=waiting, counts={Status.ALLOCATED: allocated})
    job = SimpleNamespace(key="j", pending={"uid": None} if pending else {}, tally=tally)
    found = standings.verdict(session, job)
    return found and found.source


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("waiting", [0, 1])
@pytest.mark.parametrize("allocated", [0, 1])
def test_of_a_job_counts_what_enqueue_says_until_it_is_let_in_then_what_allocate_says_while_no_member_has_a_node(
    pending, waiting, allocated
):
    members = {"pending": pending, "waiting": waiting, "allocated": allocated}
    assert said_of(phase="Pending", **members) == "enqueue"
    assert said_of(**members) == ("allocate" if pending and not waiting and not allocated else None)


@pytest.mark.parametrize(("cycle", "said", "counts"), [(5, "text", True), (4, "text", False), (5, 7, False)])
def test_only_what_was_said_in_words_and_in_this_cycle_counts(cycle, said, counts):
    assert bool(said_of(cycle=cycle, said=said)) is counts
