"""A Job that is refused its group or its pods says so where it is looked for, as long as that is so."""

from __future__ import annotations

import pytest
from test_volcano_job_cuts import CutWorld, job

from pumice.api import kinds
from pumice.controllers.queueing import requests


class RefusingWorld(CutWorld):
    """Refuses to make objects of a kind, and counts the Job's statuses that are written."""

    def __init__(self, kind):
        self.refused, self.tries, self.writes = kind, 0, 0
        super().__init__({})

    def perform(self, request, fault=""):
        if isinstance(request, requests.effects.Create) and request.kind is self.refused:
            self.tries += 1
            return requests.Answer(code="refused", message="exceeded quota: q")
        self.writes += isinstance(request, requests.effects.Patch) and request.kind is kinds.JOB
        return super().perform(request, fault)

    def state(self):
        return {key: text for key, text in self.get(kinds.JOB, "j")["status"]["state"].items() if "Time" not in key}


@pytest.mark.parametrize("kind", [kinds.POD_GROUP, kinds.POD])
def test_what_a_job_is_refused_is_its_reason_until_it_is_made(kind):
    world = RefusingWorld(kind)
    world.create(job())
    with pytest.raises(AssertionError, match="it does not settle"):
        world.settle(rounds=8)
    assert 1 < world.tries < 10
    assert world.state() == {"phase": "Pending", "reason": "FailedCreate", "message": "exceeded quota: q"}
    assert world.writes <= 2  # that it is Pending, and why; a refusal that is the same is no news
    world.refused = None
    world.calm()
    assert world.state() == {"phase": "Running"}
