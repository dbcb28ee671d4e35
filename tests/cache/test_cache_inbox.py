"""Events that wait: however many came, of each object there is what they come to, and the model is as if each had been taken in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import recount
from builders import Desk, group, kind_of, node, pod
from drawing import drawn
from pumice.api import decoding, kinds
from pumice.cache.inbox import Inbox

NAMES = ("p-0", "p-1", "p-2")


@st.composite
def changes(draw):
    """What a watch of a few objects brings: each name is added, modified and deleted in that order, and again as another object; now and then somebody looks."""
    made, there, count = [], {}, 0
    for _ in range(draw(st.integers(1, 40))):
        name = draw(st.sampled_from((*NAMES, "n", "g", "look")))
        if name == "look":
            made.append(None)
            continue
        count += 1
        before = there.pop(name, None)
        if before is not None and draw(st.booleans()):
            made.append(("DELETED", before))
            continue
        uid = before["metadata"]["uid"] if before else f"{name}-{count}"
        found = draw(objects(name))
        found["metadata"] |= {"uid": uid, "resourceVersion": str(count)}
        there[name] = found
        made.append(("MODIFIED" if before else "ADDED", found))
    return made


def objects(name):
    if name == "n":
        return st.builds(lambda cpu: node("n", cpu=str(cpu)), st.integers(1, 8))
    if name == "g":
        return st.builds(lambda least: group("g", least), st.integers(-1, 3))
    return st.builds(
        lambda where, phase, going: phased(pod(name, "g", node=where, deleting=going), phase),
        st.sampled_from(("", "n")),
        st.sampled_from(("Pending", "Running", "Succeeded")),
        st.booleans(),
    )


def phased(made, phase):
    made["status"]["phase"] = phase
    return made


def model(desk):
    """Give what a desk knows: every object at its version, and every sum."""
    recount.check(desk.cluster)
    tasks = {uid: task.pod.metadata.resource_version for uid, task in desk.cluster.tasks.items()}
    nodes = {each.name: each.object.metadata.uid for each in desk.cluster.nodes.records if each.object is not None}
    groups = {key: job.group and job.group.spec.min_member for key, job in desk.cluster.jobs.items()}
    return tasks, nodes, groups, recount.expected(desk.cluster)


@settings(max_examples=drawn(60))
@given(events=changes())
def test_what_changes_come_to_makes_the_same_model_as_each_of_them(events):
    each, folded = Desk(), Desk()
    for event in (*events, None):
        if event is None:
            assert model(each.apply()) == model(folded.apply())
            continue
        event_type, manifest = event
        kind = kind_of(manifest)
        each.cache.feed(kind, event_type, manifest)
        folded.cache.fold(kind, event_type, decoding.decode(manifest))
        assert folded.cache.waiting <= each.cache.waiting


@given(events=changes())
def test_of_each_object_one_event_waits_at_most(events):
    inbox, waiting, known = Inbox(), {}, set()
    for event in events:
        if event is None:
            assert [(kind, found["metadata"]["uid"]) for kind, _, found in inbox.take()] == list(waiting)
            known = {uid for (_, uid), event_type in waiting.items() if event_type != "DELETED"} | (
                known - {uid for (_, uid), event_type in waiting.items() if event_type == "DELETED"}
            )
            waiting = {}
            continue
        event_type, manifest = event
        kind, uid = kind_of(manifest), manifest["metadata"]["uid"]
        inbox.fold((kind.api_version, uid), (kind, event_type, manifest))
        if event_type == "DELETED" and uid not in known:
            waiting.pop((kind, uid), None)
        else:
            waiting[kind, uid] = event_type
        assert len(inbox) == len(waiting)


def test_who_comes_back_has_changed_and_what_stands_for_itself_is_kept():
    inbox, key = Inbox(), ("v1", "u")
    inbox.fold(key, (kinds.POD, "DELETED", 1))
    inbox.fold(key, (kinds.POD, "ADDED", 2))
    inbox.put((kinds.POD, "MODIFIED", 3))
    inbox.put((kinds.POD, "MODIFIED", 3))
    assert list(inbox.take()) == [(kinds.POD, "MODIFIED", 2), *[(kinds.POD, "MODIFIED", 3)] * 2]
    assert len(inbox) == 0
