"""The oracle: follows a life cycle by cycle and says which rules were broken.

It reads what the API server shows, and of the scheduler only which plan it says an eviction belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests import recount
from tests.lives import binds, evictions, liveness, rest
from tests.lives.facts import Facts
from tests.lives.findings import Finding, plans
from tests.lives.player import Player


@dataclass
class View:
    """One cycle as the checks see it."""

    policy: object
    cycle: object
    before: Facts
    after: Facts
    bound: list
    evicted: list  # pods as they were before
    plans: list
    faulted: set  # groups whose writes were made to fail
    shares: bool
    history: object


@dataclass
class History:
    """What the checks remember from cycle to cycle."""

    planned: dict = field(default_factory=dict)  # uid -> plan
    claims: list = field(default_factory=list)
    refused: list = field(default_factory=list)  # plans of whose victims some were not evicted at once
    spent: dict = field(default_factory=dict)  # budget -> (version, uids evicted since)
    pairs: dict = field(default_factory=dict)
    finished: set = field(default_factory=set)  # uids of pods that have ended
    still: int = 0  # cycles since anything changed
    tail: int = 0  # cycles of the end in which nothing changes


class Judge:
    """Watches one life."""

    def __init__(self, script, optional=()):
        self.script = script
        self.checks = (*binds.CHECKS, *evictions.CHECKS, *rest.CHECKS, *liveness.CHECKS, *optional)
        self.findings = []
        self._known = {}
        self._history = History()
        self._faulted = {
            "/".join(step["fail"]["object"].split("/")[1:]).removesuffix("-*")
            for step in script.steps
            if "fail" in step and step["fail"].get("object")
        }

    def watch(self, cycle):
        """Look at a cycle."""
        policy = self.script.policy
        before, after = (Facts(seen, policy, self._known) for seen in (cycle.before, cycle.after))
        bound = [
            pod for key, pod in after.pods.items() if pod.node and key in before.pods and not before.pods[key].node
        ]
        evicted = [before.by_uid[uid] for uid in cycle.evicted if uid in before.by_uid]
        shares = policy.lists("capacity") or policy.lists("proportion")
        made = plans(cycle, before, after)
        view = View(policy, cycle, before, after, bound, evicted, made, self._faulted, shares, self._history)
        for text in cycle.broken:
            self._say("broke_down", cycle, text)
        for line in cycle.trace:
            if "broke down" in line:
                self._say("broke_down", cycle, line)
        for check in self.checks:
            for text in check(view):
                self._say(check.__name__, cycle, text)

    def _say(self, check, cycle, text):
        self.findings.append(Finding(check, cycle.number, text))


def judge(script, optional=()):
    """Play a script and give the life and the findings; at its end the sums of the model are counted again."""
    watching, player = Judge(script, optional), Player(script)
    life = player.play(watching.watch)
    try:
        recount.check(player.stage.model)
    except AssertionError as error:
        watching.findings.append(Finding("recount", len(life.cycles), str(error).splitlines()[0]))
    return life, watching.findings
