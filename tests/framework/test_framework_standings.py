"""Who is looked at again at the end of a cycle, and how long what nodes could ever do for a job is remembered."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.framework import standings
from pumice.framework.never_running import MOST_SHAPES
from pumice.framework.reasons import FitSummary, of_queue, summary
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


# ---- what is no news

HELD = "holds {} of its 8 cpu"
ESSENCES = [
    ("a queue holds other numbers", of_queue("q", HELD.format(3)), of_queue("q", HELD.format(14)), True),
    ("a queue says something else", of_queue("q", HELD.format(3)), of_queue("q", "is closed"), False),
    ("another queue says it", of_queue("q", HELD.format(3)), of_queue("r", HELD.format(3)), False),
    ("as many nodes refuse it", summary(2, [("Insufficient cpu", 2)]), summary(2, [("Insufficient cpu", 2)]), True),
    ("more nodes refuse it", summary(2, [("Insufficient cpu", 2)]), summary(3, [("Insufficient cpu", 3)]), False),
    ("it would delay somebody by more", FitSummary(0, (), "delays a/x by 3 s"), FitSummary(0, (), "delays a/x by 14 s"), True),
    ("it would delay somebody else", FitSummary(0, (), "delays a/x by 3 s"), FitSummary(0, (), "delays a/y by 3 s"), False),
    ("something is said of nodes that refuse it", FitSummary(2, (("a", 1),), "as 1"), FitSummary(2, (("a", 1),), "as 2"), False),
    ("nothing is said", FitSummary(0, ()), FitSummary(0, (), "as"), False),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two", "is_same"), [row[1:] for row in ESSENCES], ids=[row[0] for row in ESSENCES])
def test_why_a_task_found_no_node_is_news_if_it_is_more_than_what_moves_with_others(one, two, is_same):
    assert (standings.essence(one) == standings.essence(two)) is is_same


def shape(serial, never="", volumes=False):
    constraints = SimpleNamespace(has_volumes=volumes)
    return SimpleNamespace(serial=serial, never=never, constraint_class=SimpleNamespace(constraints=constraints))


def looking(ready=False, verdict=None):
    """A session that knows what will always keep pods from nodes, and counts how often it is asked."""
    asked = []

    def of(task):
        asked.append(task.shape.serial)
        return SimpleNamespace(never=task.shape.never)

    return SimpleNamespace(
        asked=asked,
        outlooks=SimpleNamespace(jobs={}, of=of, epoch=(1, 2, 3)),
        cluster=SimpleNamespace(nodes=SimpleNamespace(claims=4)),
        never_running=SimpleNamespace(verdict=lambda _: verdict),
        job_ready=lambda _: ready,
    )


def waiting(*shapes, minimum=2, gated=()):
    pending = {f"p{i}": SimpleNamespace(shape=each, externally_gated=i in gated) for i, each in enumerate(shapes)}
    return SimpleNamespace(key="j", group="g", version=1, pending=pending, min_member=minimum)


LARGE, CLOSED = "no node has 9 cpu at all: the largest of 2, n1, has 4", "all 2 nodes are closed"
LARGE_KEY, EPOCH = "no node has # cpu at all", (1, 2, 3, 4)
OUTLOOKS = [
    ("each reason once, whatever the numbers", waiting(shape(1, LARGE), shape(2, LARGE), shape(3)), ([LARGE_KEY], "")),
    ("all reasons", waiting(shape(1, LARGE), shape(2, CLOSED)), (["all # nodes are closed", LARGE_KEY], "")),
    ("not of those that somebody else holds back", waiting(shape(1, LARGE), shape(2), gated=(0,)), ([], "")),
    ("volumes have a say", waiting(shape(1, LARGE), shape(2, volumes=True)), EPOCH),
    ("there are very many kinds", waiting(*(shape(i) for i in range(MOST_SHAPES + 1))), EPOCH),
    ("there are many kinds", waiting(*(shape(i) for i in range(MOST_SHAPES))), ([], "")),
    ("one alone", waiting(shape(1, LARGE), minimum=1), LARGE_KEY),
    ("one alone of a group that needs none", waiting(shape(1, LARGE), minimum=0), LARGE_KEY),
    ("one alone with a volume", waiting(shape(1, volumes=True), minimum=1), EPOCH),
    ("one of a group that needs more", waiting(shape(1, LARGE), minimum=2), ([LARGE_KEY], "")),
    ("two of a group that needs one", waiting(shape(1, LARGE), shape(2), minimum=1), ([LARGE_KEY], "")),
]


@pytest.mark.parametrize(("job", "found"), [row[1:] for row in OUTLOOKS], ids=[row[0] for row in OUTLOOKS])
def test_what_nodes_could_ever_do_for_a_job_is_told_by_its_reasons(job, found):
    assert standings.outlook_of(looking(), job, {}) == found


@pytest.mark.parametrize(("ready", "told"), [(False, "it needs # pods"), (True, "")])
def test_what_keeps_a_job_from_starting_is_told_until_it_has_started(ready, told):
    assert standings.outlook_of(looking(ready, "it needs 9 pods"), waiting(shape(1), shape(2)), {}) == ([], told)


def test_pods_of_one_shape_are_looked_up_once():
    session, known = looking(), {}
    for _ in range(2):
        standings.outlook_of(session, waiting(shape(1), minimum=1), known)
    assert session.asked == [1]


def said(text="no room", cycle=3):
    return SimpleNamespace(source="s", text=text, said=text, cycle=cycle)


VERDICTS = [
    ("it was not let in", {"phase": "Pending"}, {"enqueue": said(), "allocate": said("other")}, "no room"),
    ("it was tried", {}, {"enqueue": said(), "allocate": said("other")}, "other"),
    ("nothing was said of it", {}, {"enqueue": said()}, None),
    ("that was in an earlier cycle", {}, {"allocate": said(cycle=2)}, None),
    ("that is no sentence", {}, {"allocate": SimpleNamespace(said=7, cycle=3)}, None),
    ("no member waits", {"pending": {}}, {"allocate": said()}, None),
    ("one waits for release", {"waiting": 1}, {"allocate": said()}, None),
    ("one is placed", {"allocated": 1}, {"allocate": said()}, None),
]


@pytest.mark.parametrize(("how", "said", "text"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS])
def test_what_was_said_of_a_job_counts_in_its_cycle_as_long_as_its_members_wait(how, said, text):
    counts = [0] * len(Status)
    counts[Status.ALLOCATED] = how.get("allocated", 0)
    job = SimpleNamespace(
        key="j",
        pending=how.get("pending", {"p": None}),
        tally=SimpleNamespace(waiting=how.get("waiting", 0), counts=counts),
    )
    session = SimpleNamespace(
        number=3,
        findings=SimpleNamespace(phase=lambda _: how.get("phase", "Inqueue")),
        record=SimpleNamespace(verdict=lambda key, source: said.get(source) if key == "j" else None),
    )
    found = standings.verdict(session, job)
    assert (None if found is None else found.text) == text
