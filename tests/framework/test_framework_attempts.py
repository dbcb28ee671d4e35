"""What is tried for a job and breaks down: what was done and said of it is taken back, it is noted, and nobody else is stopped."""

from __future__ import annotations

import pytest

from builders import GANG, Desk, group, node, pod
from pumice.framework.attempts import Attempt
from pumice.framework.plugin import Plugin
from pumice.framework.reasons import FitSummary, of_queue


def trying():
    """A session with a job to be tried."""
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    session = desk.session()
    return session, desk.cluster.jobs["a/g"], desk


def fail(session, job, desk, *, settled):
    session.findings.warn(job, "said in vain")
    statement = session.statement()
    statement.allocate([desk.task("p")], [desk.node("n1")])
    if settled:
        statement.commit()
        session.attempting.settle()
    raise ValueError("it breaks down")


@pytest.mark.parametrize("settled", [False, True])
def test_what_was_done_and_said_is_taken_back_unless_it_was_committed(settled):
    session, job, desk = trying()
    with Attempt(session, job):
        fail(session, job, desk, settled=settled)
    assert bool(session.findings.warnings) is settled
    assert desk.task("p").status.name == ("BINDING" if settled else "PENDING")
    assert session.breakdowns.has(job)
    assert session.attempting is None


def test_one_inside_another_passes_the_breakdown_on_to_it_and_notes_nothing_itself():
    session, job, desk = trying()
    told = []
    with Attempt(session, job):
        session.findings.warn(job, "said before")
        try:
            with Attempt(session, job, passing=True):
                fail(session, job, desk, settled=False)
        except ValueError:
            told = [text for _, text in session.findings.warnings]
            assert not session.breakdowns.has(job)
    assert told == ["said before"]
    assert not session.breakdowns.has(job)


@pytest.mark.parametrize(
    ("found", "is_shortage"),
    [
        (FitSummary(3, (("Insufficient cpu", 2), ("Insufficient memory", 1))), True),
        (FitSummary(3, (("Insufficient cpu", 2), ("node(s) had taints", 1))), False),
        (FitSummary(0, (), "no nodes"), False),
        (of_queue("q", "it is full"), False),
    ],
)
def test_a_shortage_is_when_every_node_that_was_asked_has_too_little(found, is_shortage):
    assert found.is_shortage is is_shortage


class Choosy(Plugin):
    """Breaks down about whoever is called bad."""

    name = "choosy"

    def open(self, session):
        session.job_ready.add(self.ready)

    def ready(self, job):
        if job.name == "bad":
            raise ValueError("it breaks down")
        return True


@pytest.mark.parametrize("tried", ["bad", "g"])
def test_a_breakdown_gives_up_the_job_that_is_tried_only_if_it_is_about_it(tried):
    desk = Desk(GANG.replace("{name: gang}", "{name: gang}, {name: choosy}"), Choosy)
    desk.feed(node("n1"), *(each for name in ("bad", "g") for each in (group(name), pod(f"{name}-0", name, node="n1"))))
    session = desk.session()
    job, bad = desk.cluster.jobs[f"a/{tried}"], desk.cluster.jobs["a/bad"]
    answers = []
    with Attempt(session, job):
        answers.append(session.job_ready(bad))
    assert answers == ([] if tried == "bad" else [False])
