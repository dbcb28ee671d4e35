"""What an observer of a world is told: of every effect that it was sent, performed and answered, in this order and once each."""

from __future__ import annotations

from contract_objects import claim, pod, pod_group, uid, volume

from pumice.api import kinds
from pumice.cache import effects
from pumice.model.volumes import VolumeDecision


def bind(harness, name="p", **fields):
    return effects.Bind(namespace=harness.namespace, name=name, uid=uid(harness, kinds.POD, name), node="n1", **fields)


def test_every_effect_is_told_of_when_it_is_sent_performed_and_answered(harness):
    where = {"namespace": harness.namespace, "uid": ""}
    harness.apply(pod(harness, "p"), pod(harness, "q"), pod_group(harness))
    wanted = [
        bind(harness),
        effects.Evict(name="q", reason="preempt", **where),
        effects.Patch(kind=kinds.POD_GROUP, name="g", body={"status": {"running": 1}}, **where),
        effects.Read(kind=kinds.POD, name="p", namespace=harness.namespace),
    ]
    harness.perform(*wanted)
    assert [harness.seen.of(effect) for effect in wanted] == [["sent", "request done", "answered well"]] * len(wanted)


def test_an_event_is_told_of_when_it_is_sent_and_has_no_answer(harness):
    harness.apply(pod(harness))
    about = {"namespace": harness.namespace, "name": "p", "uid": uid(harness, kinds.POD, "p")}
    note = effects.Note(kind=kinds.POD, type="Normal", reason="Scheduled", message="hello", **about)
    harness.perform(note)
    assert harness.seen.of(note) == ["sent"]


def test_a_failure_is_told_of_with_its_code(harness):
    missing = effects.Evict(namespace=harness.namespace, name="missing", uid="u", reason="preempt")
    harness.perform(missing)
    assert harness.seen.of(missing) == ["sent", "request failed", "answered notfound"]


def test_a_lost_reply_is_a_request_that_failed_and_an_answer_that_nobody_knows(harness):
    harness.apply(pod(harness))
    harness.lose_reply("bind", "p")
    effect = bind(harness)
    harness.perform(effect)
    assert harness.seen.of(effect) == ["sent", "request failed", "answered unknown"]


def test_volumes_are_work_of_their_own_and_the_last_one_if_they_fail(harness):
    name = f"v-{harness.namespace}"
    harness.apply(claim(harness), volume(name), pod(harness))
    known = uid(harness, kinds.PERSISTENT_VOLUME_CLAIM, "c")
    decision = VolumeDecision(namespace=harness.namespace, claim="c", uid=known, volume=name)
    replaced = VolumeDecision(namespace=harness.namespace, claim="c", uid="another", volume=name)
    failing = bind(harness, volumes=(replaced,), volume_patience=10_000_000)
    harness.perform(failing)
    assert harness.seen.of(failing) == ["sent", "volumes failed", "answered conflict"]
    fine = bind(harness, volumes=(decision,), volume_patience=10_000_000)
    harness.perform(fine, control_volumes=[("c", name)])
    assert harness.seen.of(fine) == ["sent", "volumes done", "request done", "answered well"]
