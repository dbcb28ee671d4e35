"""A moment that is past is shown, explained and rehearsed as it was then: what was read then, and the policy in force then, are the ground of every answer."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest
import web_worlds as worlds
from web_people import People, inside

from drawing import FUZZ, drawn
from pumice.api import decoding
from pumice.framework import registry
from pumice.recording import lines
from pumice.web import board as boards
from pumice.web import past, questions, recordings, sources, studying
from pumice.web.cluster import Cluster
from recording import recording_rig as rig
from tests.lives import scripts

SECOND = 1_000_000
EVERY = 1 if FUZZ else 3  # of the steps of a recording is one that is looked at
GANG = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
SHARED = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: proportion}]\n'


def decoded(data):
    return msgspec.json.decode(data)


def changes(found):
    """Give objects as the studying process is told of them."""
    return [(kind.api_version, kind.name, "ADDED", msgspec.json.encode(each)) for kind, each in found]


def answer(told, about, question, moment, then=None):
    study = studying.Study()
    study.take(questions.Feed(told))
    study.take(about)
    found = studying.answered(study, questions.Ask(question, moment, 60.0, then=then))
    return decoded(found.body) if found.body else found.problem


class Living:
    """A cluster with a clock, to which things happen second by second."""

    def __init__(self, **bounds):
        self.now = worlds.NOW
        self.cluster = Cluster("x", lambda: self.now, past.Bounds(**bounds))
        self.told({"scheduler": {"decided": 0}})

    def told(self, facts):
        self.cluster.told(facts)

    def then(self, event_type, *manifests):
        self.now += SECOND
        worlds.feed(self.cluster, event_type, *manifests)
        self.cluster.turn()


# -- explanations ------------------------------------------------------------------------------------------------------


def lived(seed):
    """Let things happen to a small cluster; gives it, and everything that was there after each second."""
    rng = random.Random(seed)  # noqa: S311  the same in every run
    living = Living()
    there, moments = {}, []

    def take(event_type, manifest):
        key = (manifest["kind"], manifest["metadata"]["name"])
        if event_type == "DELETED":
            there.pop(key, None)
        else:
            there[key] = manifest
        worlds.feed(living.cluster, event_type, manifest)

    for manifest in (worlds.queue("root"), worlds.queue("default"), worlds.node("n-0"), worlds.group("g-0", minimum=2)):
        take("ADDED", manifest)
    for _ in range(12):
        living.now += SECOND
        for _ in range(rng.randrange(3)):
            made = rng.choice(
                (
                    worlds.node(rng.choice(("n-0", "n-1")), rng.choice(("2", "4", "8"))),
                    worlds.group("g-0", minimum=rng.choice((1, 2, 3))),
                    worlds.pod(f"g-0-{rng.randrange(3)}", "g-0", cpu=rng.choice(("1", "3", "5"))),
                    worlds.pod("other", "", rng.choice(("n-0", "n-1")), cpu=rng.choice(("1", "2"))),
                )
            )
            take("DELETED" if rng.random() < 0.25 and made["kind"] != "PodGroup" else "ADDED", made)
        if rng.random() < 0.3:
            living.cluster.explain_with(questions.About(source="x", text=rng.choice((GANG, SHARED))))
        living.cluster.turn()
        moments.append((living.now, dict(there), living.cluster.about))
    return living.cluster, moments


@pytest.mark.parametrize("seed", range(drawn(4, 2)))
def test_explanation_of_a_moment_is_the_one_that_would_have_been_given_then(seed):
    cluster, moments = lived(seed)
    question = questions.Explain("job", "a/g-0")
    told = set()
    for moment, there, about in moments:
        fresh = [(worlds.KINDS[each["kind"]], each) for each in there.values()]
        decodings = [(kind, decoding.decode_json(kind, msgspec.json.encode(each))) for kind, each in fresh]
        expected = answer(changes(decodings), about, question, moment)
        later = moment + SECOND - 1
        for when, then in ((moment, expected), (later, answer(changes(decodings), about, question, later))):
            found = answer(list(cluster.objects.whole()), cluster.about, question, when, cluster.then(when))
            assert found["lines"] == then["lines"]
        told.add(expected["lines"][0])
    assert len(told) > 2


@pytest.mark.long
def test_recording_is_explained_step_by_step_with_what_was_known_at_each(tmp_path):
    rig.live(scripts.draw(5, cycles=drawn(10, 3)), tmp_path)
    paths = rig.files(tmp_path)
    cluster = recordings.read(paths, registry.installed(), sources.Policy())
    there, seen = {}, 0
    for number, (step, _) in enumerate(rig.Replay(paths, rig.KNOWN).steps()):
        for kind, event_type, found in (lines.event(each) for look in step.events for each in look):
            key = (kind.name, found.metadata.namespace, found.metadata.name)
            there.pop(key, None)
            if event_type != "DELETED" and not isinstance(found, decoding.Malformed):
                there[key] = (kind, found)
        for name in decoded(cluster.board.at(step.now).data())["rows"]["jobs"] if number % EVERY == 0 else ():
            question = questions.Explain("job", name, search=False)
            then = cluster.then(step.now)
            found = answer(list(cluster.objects.whole()), cluster.about, question, step.now, then)
            assert found == answer(changes(there.values()), then.about, question, step.now), (step.now, name)
            seen += 1
    assert seen > 10


def test_what_if_shares_and_policy_are_of_the_moment():
    living = Living()
    worlds.feed(living.cluster, "ADDED", worlds.queue("root"), worlds.queue("default"), worlds.node("n-0", "4"))
    living.cluster.explain_with(questions.About(source="x", text=GANG, since=1))
    living.then("ADDED", worlds.group("g"), worlds.pod("g-0", "g", cpu="6"))
    before = living.now
    living.now += 1
    living.cluster.explain_with(questions.About(source="x", text=SHARED, since=2))
    living.then("MODIFIED", worlds.node("n-0", "8"))
    living.then("DELETED", worlds.pod("g-0", "g", cpu="6"))
    living.then("ADDED", worlds.group("g", minimum=3))

    async def run():
        try:
            ask = living.cluster.ask
            smaller = questions.WhatIf(manifests=msgspec.json.encode(worlds.node("n-0", "6")).decode())
            asked = (questions.Policy(), questions.Shares(), smaller)
            return [[decoded((await ask(each, moment=moment)).body) for each in asked] for moment in (before, None)]
        finally:
            await living.cluster.close()

    then, now = asyncio.run(run())
    assert (then[0]["since"], now[0]["since"]) == (1, 2)
    assert "proportion" not in str(then[0]["tiers"])
    assert then[1]["queues"]["default"]["plugin"] != now[1]["queues"]["default"]["plugin"] == "proportion"
    assert "1 job differs" in then[2]["lines"][-1]  # it would have fitted then
    assert "1 job differs" not in now[2]["lines"][-1]


def test_moment_whose_objects_are_not_remembered_any_more_says_from_when_on_they_are():
    living = Living(objects=4000)
    for number in range(20):
        living.then("MODIFIED", worlds.node("n-0", str(number + 1)))
    objects = living.cluster.objects
    assert worlds.NOW < objects.first < living.now
    told = asyncio.run(living.cluster.ask(questions.Shares(), moment=objects.first - 1))
    assert told.problem.startswith("what a scheduler read is remembered from 2026-01-01T00:00:")
    assert decoded(living.cluster.board.at(worlds.NOW + SECOND).data())["rows"]["nodes"]  # rows are, for longer


# -- everything beside rows --------------------------------------------------------------------------------------------


def test_sums_facts_and_evictions_are_those_of_the_moment_and_what_is_worked_out_is_left_out():
    living = Living()
    living.then("ADDED", worlds.node("n-0", "8"), worlds.pod("p-0"))
    living.told({"queues": {"default": 1}, "hyperNodes": {}, "sharesProblem": ""})
    living.then("ADDED", worlds.node("n-1", "4"), worlds.pod("p-1"), worlds.pod("p-2"))
    living.told({"scheduler": {"decided": 7}, "notes": ["late"]})
    gone = worlds.eviction("p-0", "Pod is evicted, because of preempt")
    gone["lastTimestamp"] = "2026-01-01T00:00:03Z"
    living.then("ADDED", gone)
    living.then("DELETED", worlds.pod("p-1"), worlds.node("n-0", "8"))
    expected = {1: (1, 8000, 0, 0), 2: (3, 12000, 0, 0), 3: (3, 12000, 7, 1), 4: (2, 4000, 7, 1)}
    for second, (pods, cpu, decided, evictions) in expected.items():
        found = decoded(living.cluster.board.at(worlds.NOW + second * SECOND).data())
        assert (found["time"], found["pods"], found["total"]["cpu"]) == (worlds.NOW + second * SECOND, pods, cpu)
        assert found["facts"]["scheduler"]["decided"] == decided
        assert len(found["evictions"]) == evictions
        assert not boards.WORKED_OUT & set(found["facts"])
        assert found["facts"]["source"] == "x"
    assert decoded(living.cluster.board.whole().data())["facts"]["queues"] == {"default": 1}


def test_moments_beyond_what_is_known_are_the_nearest_that_is():
    living = Living()
    living.then("ADDED", worlds.node("n-0"))
    living.then("ADDED", worlds.node("n-1"))
    board = living.cluster.board
    assert decoded(board.at(0).data())["time"] == board.first == worlds.NOW + SECOND
    assert decoded(board.at(2**55).data())["time"] == living.now


def test_use_is_that_of_the_hour_before_the_moment_however_long_ago_it_is():
    living = Living(memory=2**62, samples=10_000)
    for _ in range(3 * 3600 // 60):
        living.now += 59 * SECOND
        living.then("MODIFIED", worlds.node("n-0", str(1 + living.now // SECOND % 7)))
    board = living.cluster.board
    for hours in (1, 2, 3):
        moment = worlds.NOW + hours * 3600 * SECOND
        times = [each[0] for each in decoded(board.at(moment).data())["pulse"]]
        assert len(times) == 60
        assert moment - 3600 * SECOND < times[0] < times[-1] <= moment


def test_life_of_a_job_that_is_gone_is_told_at_moments_when_it_was_there():
    living = Living()
    living.then("ADDED", worlds.group("g", phase="Pending"))
    living.then("MODIFIED", worlds.group("g", phase="Inqueue"))
    living.then("MODIFIED", worlds.group("g", phase="Running"))
    living.then("DELETED", worlds.group("g"))
    living.then("ADDED", worlds.group("g", phase="Pending"))
    living.then("MODIFIED", worlds.group("g", phase="Completed"))
    board = living.cluster.board
    first = [(worlds.NOW + 2 * SECOND, "Inqueue"), (worlds.NOW + 3 * SECOND, "Running")]
    second = [(worlds.NOW + 6 * SECOND, "Completed")]
    told = [board.moments("a/g", worlds.NOW + number * SECOND) for number in range(1, 7)]
    assert told == [[], first[:1], first, [], [], second]
    assert board.moments("a/g") == second


# -- as it is served ---------------------------------------------------------------------------------------------------


def test_pages_ask_about_a_moment_and_see_no_more_of_it_than_they_may():
    async def run():
        cluster = worlds.small()
        cluster.now = lambda: worlds.NOW + 10 * SECOND
        worlds.feed(cluster, "DELETED", worlds.pod("runs-0", "runs", "n-0", cpu="6"))
        worlds.feed(cluster, "ADDED", worlds.group("secret", namespace="b"), worlds.pod("secret-0", "secret", "n-0", namespace="b"))  # fmt: skip
        worlds.feed(cluster, "MODIFIED", worlds.node("n-1", "32"))
        cluster.turn()
        people = People({"ada": {"podgroups@a", "pods@a", "nodes"}, "eve": {"podgroups@a", "pods@a"}})
        async with inside(cluster, people) as found:
            pages = {name: await found.open() for name in ("ada", "eve")}
            for name, page in pages.items():
                await page.sign_in(name)
            ada, eve = pages.values()
            at = f"at={worlds.NOW}"
            return {
                "then": await ada.get(f"/api/explain?what=job&name=a/waits&{at}"),
                "now": await ada.get("/api/explain?what=job&name=a/waits"),
                "node": await ada.get(f"/api/node?name=n-0&{at}"),
                "shares": await ada.get(f"/api/shares?{at}"),
                "eve": await eve.get(f"/api/shares?{at}"),
                "scene": await eve.get(f"/api/scene?{at}"),
                "elsewhere": await ada.get(f"/api/explain?what=job&name=b/secret&{at}"),
                "policy": await ada.get(f"/api/policy?{at}"),
                "unsaid": await ada.get("/api/shares"),
                "bad": await ada.get("/api/explain?what=job&name=a/waits&at=soon"),
            }

    told = asyncio.run(run())
    assert told["then"][1]["answer"]["cause"].startswith("no node has 9 cpu at all")
    assert told["now"][1]["answer"]["cause"] != told["then"][1]["answer"]["cause"]
    assert [pod["name"] for pod in told["node"][1]["pods"]] == ["runs-0"]
    assert told["shares"][1] == {"hyperNodes": {}}  # queues are not for her
    assert told["eve"][1] == {}
    assert told["scene"][1]["pods"] == 3
    assert told["scene"][1]["total"] == {}
    assert [told[name][0] for name in ("elsewhere", "policy", "unsaid", "bad")] == [404, 403, 400, 400]
