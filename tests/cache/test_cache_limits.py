"""Edges of what the cache takes in and writes: flags as they are written, the largest amounts, a nomination that changes, a status that waits, what is taken back."""

from __future__ import annotations

import msgspec
import pytest

from builders import Desk, group, node, pod
from pumice.api import core, kinds, names
from pumice.cache import effects, objects, preparation_writes, write_paces
from pumice.cache.options import Options
from pumice.model import preparations, resources


def test_a_flag_that_takes_several_values_may_have_one_and_others_stay_as_they_are():
    made = Options.from_flags({"scheduler-name": "one", "default-queue": "shared", "feature-gates": "A=true"})
    assert (made.scheduler_name, made.default_queue, made.feature_gates) == (("one",), "shared", ("A=true",))
    assert Options.from_flags({"feature-gates": ["A=False", "B=TRUE"]}).feature_gates == ("A=False", "B=TRUE")


@pytest.mark.parametrize(("label", "selected"), [("a:b", True), ("a", False), ("b", False)])
def test_the_value_of_a_selected_label_may_hold_a_colon(label, selected):
    assert Options(node_selector=("pool:a:b",)).selects({"pool": label}) is selected


@pytest.mark.parametrize("several", [[], [""], ["one", ""]])
def test_a_scheduler_has_a_name(several):
    with pytest.raises(ValueError, match="flag scheduler-name: at least one name is needed, and none may be empty"):
        Options.from_flags({"scheduler-name": several})


@pytest.mark.parametrize("entry", ["A=maybe", "A", "=true", "A="])
def test_a_feature_gate_is_on_or_off(entry):
    with pytest.raises(ValueError, match=r"flag feature-gates: .* is not of the form Name=true or Name=false"):
        Options.from_flags({"feature-gates": [entry]})


@pytest.mark.parametrize("entry", ["pool", ":batch", "", ":"])
def test_a_node_selector_names_a_label_and_its_value(entry):
    with pytest.raises(ValueError, match=r"flag node-selector: .* is not of the form label:value"):
        Options.from_flags({"node-selector": ["pool:batch", entry]})
    assert Options.from_flags({"node-selector": ["pool:", "pool:a:b"]}).node_selector == ("pool:", "pool:a:b")


@pytest.mark.parametrize(
    "flag",
    ["minimum-feasible-nodes", "minimum-percentage-nodes-to-find", "percentage-nodes-to-find", "reason-patience"],
)
def test_no_number_among_the_flags_is_negative(flag):
    assert Options.from_flags({flag: 0}) is not None
    with pytest.raises(ValueError, match=f"flag {flag}: -1 is negative"):
        Options.from_flags({flag: -1})


@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, True), (2, False)])
def test_what_a_node_oversubscribes_may_reach_the_largest_amount_and_not_pass_it(more, fits):
    manifest = node("n", cpu=f"{resources.LIMIT - 1}m")
    manifest["metadata"]["annotations"] = {names.OVERSUBSCRIPTION_CPU: str(more)}
    made = msgspec.convert(manifest, core.Node)
    if fits:
        assert objects.offer(made)[0]["cpu"] == resources.LIMIT - 1 + more
        return
    with pytest.raises(resources.BadValueError, match="brings cpu beyond the largest amount"):
        objects.offer(made)


@pytest.mark.parametrize(("digits", "fits"), [(16, True), (17, False)])
def test_what_a_node_oversubscribes_is_written_in_sixteen_digits_at_the_most(digits, fits):
    manifest = node("n", cpu="0", annotations={names.OVERSUBSCRIPTION_CPU: "7".rjust(digits, "0")})
    made = msgspec.convert(manifest, core.Node)
    if fits:
        assert objects.offer(made)[0]["cpu"] == 7
        return
    with pytest.raises(resources.BadValueError, match="is not a whole number"):
        objects.offer(made)


@pytest.mark.parametrize(("cpu", "memory", "own"), [("3", "5", (3000, 5)), (None, "5", (0, 5)), ("3", None, (3000, 0))])
def test_what_a_node_offers_of_its_own_is_told_apart_from_what_it_oversubscribes(cpu, memory, own):
    manifest = node("n", cpu=cpu, memory=memory)
    manifest["metadata"]["annotations"] = {names.OVERSUBSCRIPTION_CPU: "7", names.OVERSUBSCRIPTION_MEMORY: "9"}
    amounts, native = objects.offer(msgspec.convert(manifest, core.Node))
    assert native == own
    assert (amounts["cpu"], amounts["memory"]) == (own[0] + 7, own[1] + 9)


def test_a_nomination_that_somebody_else_changes_is_taken_in():
    made = Desk().feed(node("n1"), node("n2"), group("g", 2), pod("p", "g", cpu="1")).apply()
    for nominated in ("n1", "n2", ""):
        changed = pod("p", "g", cpu="1")
        changed["status"] = {**changed.get("status", {}), "nominatedNodeName": nominated}
        made.modify(changed).apply()
        (task,) = made.cluster.jobs["a/g"].tasks.values()
        assert task.nominated == nominated


def test_a_status_waits_for_its_limit_from_when_it_was_first_owed_and_somebody_is_woken_then():
    paces = write_paces.WritePaces(1_000_000)
    assert paces.puts_off("a/g", 10, 100)
    assert paces.next_wake() == 110
    assert paces.puts_off("a/g", 10, 109)
    assert paces.next_wake() == 110
    assert paces.is_owed("a/g")
    assert not paces.puts_off("a/g", 10, 110)
    assert not paces.is_owed("a/g")
    assert paces.next_wake() is None
    assert not paces.puts_off("a/h", 0, 100)


def test_of_an_object_that_is_gone_nothing_is_late():
    paces = write_paces.WritePaces(1_000_000)
    assert not paces.has_stood("Pod p", 100)
    assert paces.next_wake() == 1_000_100
    paces.forget("Pod p")
    assert paces.next_wake() is None
    assert not paces.puts_anything_off
    assert not paces.has_stood("Pod p", 900_000)  # another one of that name begins anew
    assert paces.next_wake() == 1_900_000


def test_taking_a_claim_back_ends_its_reservation_and_nobody_elses():
    grant = preparations.ClaimGrant(namespace="a", claim="c", uid="c1", pod="p", pod_uid="p1")
    metadata = {"name": "c", "uid": "c1", "resourceVersion": "7"}

    def next_write(*consumers):
        claim = {"metadata": metadata, "status": {"allocation": {}, "reservedFor": [{"uid": uid} for uid in consumers]}}
        return preparation_writes.back(grant, claim)

    write = next_write("other", "p1")
    assert write.body["status"] == {"reservedFor": [{"$patch": "delete", "uid": "p1"}]}
    assert (write.subresource, write.strategic) == ("status", True)
    assert next_write("other") is None
    assert preparation_writes.back(grant, None) is None


@pytest.mark.parametrize(
    ("kind", "verb"),
    [(kinds.QUEUE, "queue"), (kinds.INCUBATOR_QUEUE, "queue"), (kinds.POD, "patch"), (kinds.POD_GROUP, "patch")],
)
def test_writes_of_queues_are_counted_apart_from_others(kind, verb):
    assert effects.verb(effects.Patch(kind=kind, namespace="", name="x", uid="", body={})) == verb
    assert effects.verb(effects.Read(kind=kind, namespace="", name="x")) == "read"
