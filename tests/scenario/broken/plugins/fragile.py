"""Plugins that break down about pods with a certain label, each at one extension point."""

import numpy as np

from pumice.framework.extensions import ABSTAIN
from pumice.framework.plugin import Plugin


def check(task):
    if "fragile" in task.pod.metadata.labels:
        raise LookupError("no rack is known for it")


class FragileScore(Plugin):
    name = "fragile-score"
    points = frozenset({"NodeOrder"})

    def open(self, session):
        session.score.add(self.points_of)

    def points_of(self, subject, nodes):
        check(subject.task)
        return np.zeros(len(nodes))


class FragileVote(Plugin):
    name = "fragile-vote"
    points = frozenset({"JobEnqueueable"})

    def open(self, session):
        session.job_enqueueable.add(self.vote)

    def vote(self, job):
        for task in job.tasks.values():
            check(task)
        return ABSTAIN


class FragileGang(Plugin):
    name = "fragile-gang"
    points = frozenset({"JobReady"})

    def open(self, session):
        session.job_ready.add(self.is_ready)

    def is_ready(self, job):
        if job.tally.ready:  # only when a member has a place already
            for task in job.tasks.values():
                check(task)
        return True


class FragileOrder(Plugin):
    name = "fragile-order"
    points = frozenset({"JobOrder"})

    def open(self, session):
        session.job_order.add(self.rank)

    def rank(self, job):
        for task in job.tasks.values():
            check(task)
        return 0


class FragileStart(Plugin):
    """Cannot be opened while a label is there."""

    name = "fragile-start"
    points = frozenset({"Predicate"})

    def open(self, session):
        for task in session.cluster.tasks.values():
            check(task)
