from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import msgspec
import pytest
from kube_fakes import FakeApi, conflict, pod, until

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.writes import world
from testbed import waiting


def bind(name="p", node="n1", uid="", **fields):
    return effects.Bind(namespace="a", name=name, uid=uid, node=node, **fields)


def note(name="p", message="hello", reason="Scheduled"):
    return effects.Note(
        kind=kinds.POD, namespace="a", name=name, uid=f"uid-{name}", type="Normal", reason=reason, message=message
    )


def group_patch(name="g", running=0):
    return effects.Patch(kind=kinds.POD_GROUP, namespace="a", name=name, uid="", body={"status": {"running": running}})


class Stage:
    """A world that runs, and what it answered."""

    def __init__(self, api=None, **options):
        self.api = api or FakeApi()
        self.outcomes = []
        self.world = world.KubeWorld(self.api, **options)

    @contextlib.asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.world.run(self.outcomes.append))
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def answers(self, count):
        await until(lambda: len(self.outcomes) >= count)
        return self.outcomes

    def codes(self):
        return [outcome.failure and outcome.failure.code for outcome in self.outcomes]


def play(scene, api=None, **options):
    """Run a scene on a stage."""

    async def performance():
        stage = Stage(api, **options)
        async with stage.running():
            await scene(stage)
        return stage

    return asyncio.run(performance())


def with_pods(*names, **options):
    api = FakeApi(**options)
    for name in names:
        api.add(kinds.POD, pod(name))
    return api


def test_a_bind_is_carried_out_and_answered():
    async def scene(stage):
        stage.world.send(bind())
        (outcome,) = await stage.answers(1)
        assert outcome.failure is None
        assert stage.api.find(kinds.POD, "a", "p")["spec"]["nodeName"] == "n1"

    play(scene, with_pods("p"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (conflict("pod p is already assigned"), "conflict"),
        (errors.ApiError(404, "NotFound", "x"), "notfound"),
        (errors.ApiError(422, "Invalid", "x"), "refused"),
        (errors.ApiError(503, "", "x"), "unavailable"),
        (errors.UnreachableError("x"), "unavailable"),
        (errors.UnknownOutcomeError("x"), "unknown"),
        (RuntimeError("a defect"), "unknown"),
    ],
)
def test_every_way_to_fail_has_its_code_and_the_world_goes_on(error, code):
    async def scene(stage):
        stage.api.fail["bind"] = [error]
        stage.world.send(bind())
        await stage.answers(1)
        stage.world.send(bind())
        await stage.answers(2)
        assert stage.codes() == [code, None]

    play(scene, with_pods("p"))


def test_effects_handed_over_before_the_start_are_performed():
    async def scene():
        stage = Stage(with_pods("p"))
        stage.world.send(bind())
        async with stage.running():
            await stage.answers(1)

    asyncio.run(scene())


def test_effects_from_another_thread_all_arrive():
    async def scene(stage):
        def decide():
            for n in range(2000):
                stage.world.send(bind(f"p{n}"))
                if n % 100 == 0:
                    time.sleep(0.001)

        thread = threading.Thread(target=decide)
        thread.start()
        await stage.answers(2000)
        thread.join()
        assert {o.effect.name for o in stage.outcomes} == {f"p{n}" for n in range(2000)}
        assert stage.codes() == [None] * 2000

    play(scene, with_pods(*(f"p{n}" for n in range(2000))))


def test_no_more_run_at_once_than_there_are_workers():
    async def scene(stage):
        for n in range(50):
            stage.world.send(bind(f"p{n}"))
        await stage.answers(50)
        assert stage.api.most_at_once == 5

    play(scene, with_pods(*(f"p{n}" for n in range(50))), workers=5)


def test_effects_on_one_object_keep_their_order_while_others_pass():
    async def scene(stage):
        stage.api.add(kinds.POD_GROUP, {"metadata": {"name": "g", "namespace": "a"}})
        stage.api.hold["patch"] = asyncio.Event()
        names = ("running", "failed", "succeeded", "phase", "reclaimed")
        for name in names:  # none of them says what another does
            stage.world.send(msgspec.structs.replace(group_patch(), body={"status": {name: 1}}))
        stage.world.send(bind())
        (first,) = await stage.answers(1)
        assert isinstance(first.effect, effects.Bind)
        stage.api.hold["patch"].set()
        await stage.answers(6)
        assert tuple(next(iter(o.effect.body["status"])) for o in stage.outcomes[1:]) == names
        assert stage.api.find(kinds.POD_GROUP, "a", "g")["status"] == dict.fromkeys(names, 1)

    play(scene, with_pods("p"))


def test_of_statuses_that_wait_only_the_last_is_sent_and_all_are_answered():
    async def scene(stage):
        stage.api.add(kinds.POD_GROUP, {"metadata": {"name": "g", "namespace": "a"}})
        stage.api.hold["patch"] = asyncio.Event()
        for running in range(5):
            stage.world.send(group_patch(running=running))
            await asyncio.sleep(0)
        stage.api.hold["patch"].set()
        await stage.answers(5)
        assert {o.effect.body["status"]["running"] for o in stage.outcomes} == set(range(5))
        assert all(o.failure is None for o in stage.outcomes)
        assert stage.api.verbs().count("patch") <= 2
        assert stage.api.find(kinds.POD_GROUP, "a", "g")["status"]["running"] == 4

    play(scene, with_pods("p"))


def reason(message, name="p"):
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return effects.Patch(
        kind=kinds.POD,
        namespace="a",
        name=name,
        uid=f"uid-{name}",
        body={"status": {"conditions": [condition]}},
        subresource="status",
        strategic=True,
    )


@pytest.mark.parametrize("refused", [False, True])
def test_a_reason_that_a_bind_makes_needless_is_written_if_the_bind_is_refused(refused):
    async def scene(stage):
        if refused:
            stage.api.fail["bind"] = [errors.ApiError(422, "Invalid", "not this one")]
        for n in range(3):
            stage.world.send(reason(f"reason {n}"))
        stage.world.send(bind(uid="uid-p"))
        await stage.answers(4)
        assert len(stage.outcomes) == 4
        written = [call for call in stage.api.calls if call[0] == "patch"]
        found = stage.api.find(kinds.POD, "a", "p")
        if refused:
            assert [c["message"] for c in found["status"]["conditions"]] == ["reason 2"]
        else:
            assert written == []
            assert found["spec"]["nodeName"] == "n1"

    play(scene, with_pods("p"))


def test_a_reason_that_waited_for_a_refused_bind_does_not_take_the_place_of_a_newer_one():
    async def scene(stage):
        stage.api.fail["bind"] = [errors.ApiError(422, "Invalid", "not this one")]
        stage.api.hold["bind"] = asyncio.Event()
        stage.world.send(reason("old"))
        stage.world.send(bind(uid="uid-p"))
        await until(lambda: stage.api.verbs() == ["bind"])
        stage.world.send(reason("new"))
        await asyncio.sleep(0.01)
        stage.api.hold["bind"].set()
        await stage.answers(3)
        found = stage.api.find(kinds.POD, "a", "p")
        assert [c["message"] for c in found["status"]["conditions"]] == ["new"]
        answered = {
            o.effect.body["status"]["conditions"][0]["message"]: o.failure
            for o in stage.outcomes
            if isinstance(o.effect, effects.Patch)
        }
        assert answered["new"] is None
        assert answered["old"].code == "unavailable"

    play(scene, with_pods("p"))


def test_a_read_does_not_overtake_the_bind_it_asks_after():
    async def scene(stage):
        stage.api.hold["bind"] = asyncio.Event()
        stage.world.send(bind())
        stage.world.send(effects.Read(kind=kinds.POD, namespace="a", name="p"))
        await until(lambda: stage.api.verbs() == ["bind"])
        await asyncio.sleep(0.01)
        stage.api.hold["bind"].set()
        await stage.answers(2)
        assert stage.outcomes[1].object["spec"]["nodeName"] == "n1"

    play(scene, with_pods("p"))


def test_patches_of_statuses_get_their_share_beside_binds():
    async def scene(stage):
        for n in range(40):
            stage.world.send(bind(f"p{n}"))
        stage.world.send(group_patch())
        await stage.answers(41)
        place = next(i for i, o in enumerate(stage.outcomes) if isinstance(o.effect, effects.Patch))
        assert place < 15

    api = with_pods(*(f"p{n}" for n in range(40)))
    api.add(kinds.POD_GROUP, {"metadata": {"name": "g", "namespace": "a"}})
    play(scene, api, workers=2)


def test_without_the_lease_nothing_is_written_and_reads_go_on():
    async def scene(stage):
        stage.api.leading = False
        stage.world.send(bind())
        stage.world.send(effects.Evict(namespace="a", name="q", uid="", reason="x"))
        stage.world.send(effects.Read(kind=kinds.POD, namespace="a", name="r"))
        stage.world.send(note())
        await stage.answers(3)
        await until(lambda: stage.world.counts.events_dropped == 1)
        assert sorted(map(str, stage.codes())) == ["None", "unavailable", "unavailable"]
        assert "lease" in next(o for o in stage.outcomes if o.failure).failure.message
        assert stage.api.verbs() == ["get"]

    play(scene, with_pods("p", "q", "r"))


def test_the_fence_is_asked_again_between_the_two_writes_of_an_eviction():
    async def scene(stage):
        stage.api.hold["patch"] = asyncio.Event()
        stage.world.send(effects.Evict(namespace="a", name="p", uid="", reason="x"))
        await until(lambda: stage.api.verbs() == ["patch"])
        stage.api.leading = False
        stage.api.hold["patch"].set()
        await stage.answers(1)
        assert stage.codes() == ["unavailable"]
        assert stage.api.verbs() == ["patch"]

    play(scene, with_pods("p"))


def test_a_bind_that_waits_for_volumes_holds_nobody_up():
    class Waiting:
        def __init__(self):
            self.bound = asyncio.Event()
            self.rolled_back = []

        async def prepare(self, effect):
            await self.bound.wait()
            return []

        async def roll_back(self, begun):
            self.rolled_back.append(begun)

    async def scene(stage):
        from pumice.model.volumes import VolumeDecision

        claim = VolumeDecision(namespace="a", claim="c", uid="u")
        for n in range(20):
            stage.world.send(bind(f"v{n}", volumes=(claim,)))
        stage.world.send(bind("p"))
        (first,) = await stage.answers(1)
        assert first.effect.name == "p"
        assert stage.world.counts.in_flight == 20
        waiting.bound.set()
        await stage.answers(21)
        assert stage.codes() == [None] * 21

    async def whole():
        nonlocal waiting
        waiting = Waiting()
        stage = Stage(with_pods("p", *(f"v{n}" for n in range(20))), volume_binder=waiting, workers=2)
        async with stage.running():
            await scene(stage)

    waiting = None
    asyncio.run(whole())


def test_drain_lets_the_flying_land_and_refuses_the_rest():
    async def scene(stage):
        stage.api.hold["bind"] = asyncio.Event()
        for n in range(5):
            stage.world.send(bind(f"p{n}"))
        stage.world.send(note())
        await until(lambda: stage.api.verbs().count("bind") == 2)
        draining = asyncio.create_task(stage.world.drain(5.0))
        await stage.answers(3)
        stage.api.hold["bind"].set()
        await draining
        stage.world.send(bind("late"))
        await stage.answers(6)
        assert sorted(map(str, stage.codes())) == ["None"] * 2 + ["unavailable"] * 4
        assert stage.world.counts.events_dropped == 1

    play(scene, with_pods(*(f"p{n}" for n in range(5))), workers=2)


def test_drain_gives_up_what_does_not_land_in_time():
    async def scene(stage):
        stage.api.hold["bind"] = asyncio.Event()
        stage.world.send(bind())
        await until(lambda: stage.api.verbs() == ["bind"])
        await stage.world.drain(0.01)
        assert stage.codes() == ["unknown"]

    play(scene, with_pods("p"))


def test_run_ends_after_drain():
    async def scene():
        stage = Stage()
        running = asyncio.create_task(stage.world.run(stage.outcomes.append))
        await asyncio.sleep(0.01)
        await stage.world.drain(waiting.PATIENCE)
        await asyncio.wait_for(running, waiting.PATIENCE)

    asyncio.run(scene())


def test_an_observer_hears_what_was_performed_and_that_it_took_time():
    class Seen(effects.EffectObserver):
        def __init__(self):
            self.told = []

        def performed(self, effect, work, seconds, *, failed):
            assert seconds > 0
            self.told.append((effect.name, work, failed))

    async def scene(stage):
        stage.world.send(bind("p"))
        stage.world.send(bind("missing"))
        await stage.answers(2)
        assert stage.world.counts.in_flight == 0

    seen = Seen()
    play(scene, with_pods("p"), observer=seen)
    assert sorted(seen.told) == [("missing", "request", True), ("p", "request", False)]


def test_an_effect_that_is_given_up_was_performed_in_vain_and_one_that_is_refused_was_not_performed():
    class Seen(effects.EffectObserver):
        def __init__(self):
            self.told = []

        def performed(self, effect, work, seconds, *, failed):
            self.told.append((effect.name, failed))

        def answered(self, outcome):
            self.told.append((outcome.effect.name, outcome.failure.code))

    async def scene(stage):
        stage.api.hold["bind"] = asyncio.Event()
        stage.world.send(bind("flying"))
        stage.world.send(bind("waiting"))
        await until(lambda: stage.api.verbs() == ["bind"])
        await stage.world.drain(0.01)

    seen = Seen()
    play(scene, with_pods("flying", "waiting"), observer=seen, workers=1)
    assert seen.told == [("waiting", "unavailable"), ("flying", True), ("flying", "unknown")]


def test_our_own_share_of_a_bind_is_small():
    """Processor time, and twenty times what it takes on a machine of today."""

    class Instant:
        async def bind(self, effect):
            return effects.Outcome(effect=effect)

    async def scene(stage):
        wanted = [bind(f"p{n}") for n in range(5000)]
        started = time.thread_time()
        for effect in wanted:
            stage.world.send(effect)
        await until(lambda: len(stage.outcomes) == 5000)
        assert time.thread_time() - started < 1

    play(scene, binder=Instant())
