"""How queues stand, held against counting the pods of drawn worlds one by one."""

from __future__ import annotations

import random

import pytest
from explaining_worlds import EVERYTHING, GPU, asked

from builders import GANG, Desk, group, node, pod, queue
from pumice.framework.explaining import queues
from pumice.model import resources

CAPACITY = EVERYTHING.replace("{name: proportion}", "{name: capacity, enableHierarchy: true}")
PARENTS = {"team": "root", "left": "team", "right": "team", "apart": "root"}
LEAVES = ("left", "right", "apart")
OFFERED = {"cpu": 100, "memory": 200, GPU: 40}


class Jobs:
    """Some jobs, each with pods that run and pods that fit nowhere: by name its queue, and by kind what each of its pods asks for."""

    def __init__(self, seed):
        draw = random.Random(seed)  # noqa: S311  a world, not a secret
        self.of = {f"j{i}": draw.choice(LEAVES) for i in range(draw.randint(3, 12))}
        self.pods = {
            name: {
                "running": [
                    {"cpu": draw.randint(0, 3), "memory": draw.choice((0, 4)), GPU: draw.choice((0, 0, 1))}
                    for _ in range(draw.randint(0, 3))
                ],
                "waiting": [{"cpu": 101, "memory": draw.choice((0, 1)), GPU: 0} for _ in range(draw.randint(0, 2))],
            }
            for name in self.of
        }

    def manifests(self):
        made = [queue(name, parent=parent, capability={"cpu": "50"}) for name, parent in PARENTS.items()]
        made.append(node("n", cpu="100", memory="200Gi", **{"nvidia.com__gpu": "40"}))
        for name, where in self.of.items():
            made.append(group(name, 1, queue=where))
            for kind, pods in self.pods[name].items():
                for i, wants in enumerate(pods):
                    amounts = {resource: text for resource, text in written(wants).items() if text != "0"}
                    place = {"node": "n"} if kind == "running" else {}
                    made.append(pod(f"{name}-{kind}-{i}", name, requests=amounts, **place))
        return made

    def sums(self, kind, names):
        return {
            resource: sum(wants[resource] for name in names for wants in self.pods[name][kind]) for resource in OFFERED
        }

    def below(self, where):
        return [name for name, leaf in self.of.items() if where in ("root", leaf, PARENTS[leaf])]


def written(amounts):
    """Write amounts as manifests and answers do; memory is counted in Gi."""
    return {name: f"{units}Gi" if name == "memory" and units else str(units) for name, units in amounts.items()}


def without_nothing(amounts):
    return {name: text for name, text in written(amounts).items() if text != "0"}


def part(jobs, name):
    held = jobs.sums("running", [name])
    return max(held[resource] / offered for resource, offered in OFFERED.items())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("config", [GANG, CAPACITY], ids=["nobody shares", "capacity"])
def test_what_queues_and_their_jobs_hold_and_ask_for_is_counted(config, seed):
    jobs = Jobs(seed)
    made = Desk(config).feed(*jobs.manifests())
    answers = asked(made, *(("queue", name) for name in ("root", "team", *LEAVES)))
    for told in answers:
        below = sorted(jobs.below(told.queue), key=lambda name: (-part(jobs, name), f"a/{name}"))
        assert [each.job for each in told.jobs] == [f"a/{name}" for name in below]
        for name, each in zip(below, told.jobs, strict=True):
            assert (each.running, each.waiting) == tuple(len(jobs.pods[name][kind]) for kind in ("running", "waiting"))
            assert each.held == without_nothing(jobs.sums("running", [name]))
            assert each.asked == without_nothing(jobs.sums("waiting", [name]))
        assert told.children == tuple(sorted(name for name, above in PARENTS.items() if above == told.queue))
    for told in answers[2:]:
        held, wanted = (jobs.sums(kind, jobs.below(told.queue)) for kind in ("running", "waiting"))
        found = {each.resource: (each.held, each.asked) for each in told.dimensions}
        counted = {name: (written(held)[name], written(wanted)[name]) for name in OFFERED if held[name] or wanted[name]}
        assert {name: amounts for name, amounts in found.items() if amounts != ("0", "0")} == counted
        ceilings = {each.resource: each.ceiling for each in told.dimensions}
        assert ceilings.get("cpu", "") == ("50" if config is CAPACITY else "")
        assert all(bool(each.due) == (config is CAPACITY) for each in told.dimensions)


@pytest.mark.parametrize("config", [GANG, CAPACITY], ids=["nobody shares", "capacity"])
def test_shares_are_what_the_answers_about_queues_say(config):
    names = sorted(("root", "default", *PARENTS))
    for seed in range(4):
        made, told, shares = Desk(config).feed(*Jobs(seed).manifests()), [], []
        made.scheduler.cycle(
            lambda explainer, told=told, shares=shares: (
                shares.extend(explainer.shares()),
                told.extend(explainer.queue(name) for name in names),
            )
        )
        assert [each.queue for each in shares] == names
        assert [(each.queue, each.plugin, each.share) for each in shares] == [
            (each.queue, each.plugin, each.share) for each in told
        ]
        for share, queue_told in zip(shares, told, strict=True):
            for name, each in share.amounts.items():
                (said,) = [dimension for dimension in queue_told.dimensions if dimension.resource == name]
                fields = ("held", "asked", "due", "guarantee", "ceiling")
                amounts = {field: getattr(each, field) for field in fields if getattr(each, field) is not None}
                assert {field: resources.shown(name, units) for field, units in amounts.items()} == {
                    field: getattr(said, field) for field in amounts
                }
                assert all(getattr(said, field) in ("", "0") for field in fields if field not in amounts)
            assert share.amounts.keys() >= {each.resource for each in queue_told.dimensions if each.held != "0"}
            assert "pods" not in share.amounts


@pytest.mark.parametrize("beyond", [-1, 0, 1, 3])
def test_of_many_holders_and_jobs_the_largest_are_told_and_the_others_counted(beyond):
    made = Desk(CAPACITY).feed(node("n", cpu="400"), queue("team", parent="root", capability={"cpu": "300"}))
    made.feed(*(queue(name, parent="team") for name in ("left", "right")))
    count = queues.HOLDERS + beyond
    held = {f"j{i}": 3 if i == 4 else 1 + i % 2 for i in range(count)}
    for i, (name, pods) in enumerate(held.items()):
        made.feed(group(name, 1, queue=("left", "right")[i % 2]))
        made.feed(*(pod(f"{name}-{k}", name, cpu="2", node="n") for k in range(pods)))
    made.feed(group("empty", 1, queue="left"), group("new", 1, queue="left"), pod("new-0", "new", cpu="300"))
    (job,) = asked(made, ("job", "a/new"))
    (dimension,) = [each for each in job.queue_verdict.dimensions if each.queue == "team"]
    largest = sorted(held, key=lambda name: (-held[name], name))[: queues.HOLDERS]
    told = [(each.name, each.amount, each.pods) for each in dimension.holders]
    assert told == [(f"a/{name}", str(2 * held[name]), held[name]) for name in largest]
    assert dimension.other_holders == max(0, beyond)
    assert (dimension.have, dimension.want, dimension.limit) == (str(2 * sum(held.values())), "300", "300")


@pytest.mark.parametrize("beyond", [0, 2])
def test_of_very_many_jobs_the_others_are_counted(beyond):
    made = Desk().feed(queue("q"))
    for i in range(queues.JOBS + beyond):
        made.feed(group(f"g{i:02}", 1, queue="q", created=i), pod(f"g{i:02}-0", f"g{i:02}", cpu="1"))
    (told,) = asked(made, ("queue", "q"))
    first = [f"a/g{i:02}" for i in range(queues.JOBS)]
    assert ([each.job for each in told.jobs], list(told.waiting), told.other_jobs) == (first, first, beyond)
