"""What controllers read in manifests: selectors, shares, environments, and which pods go first, held against the rules of Kubernetes."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from pumice.controllers.cron_jobs import schedules
from pumice.controllers.queueing.requests import Moment
from pumice.controllers.volcano.job_plugins import pods as plugin_pods
from pumice.controllers.workloads import manifests, naming, pods

SECOND = 1_000_000
LABELS = [{}, {"a": "1"}, {"a": "2"}, {"a": "1", "b": ""}]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_a_selector_matches_if_all_that_it_says_holds(labels):
    wanted = [({}, True), ({"a": "1"}, labels.get("a") == "1"), ({"b": ""}, "b" in labels)]
    said = [
        (("In", ["1", "3"]), labels.get("a") in ("1", "3")),
        (("NotIn", ["1", "3"]), labels.get("a") not in ("1", "3")),
        (("Exists", []), "a" in labels),
        (("DoesNotExist", []), "a" not in labels),
        (("Gt", ["0"]), False),
    ]
    expressions = [([], True), *(([_expression(*each)], holds) for each, holds in said)]
    expressions += [
        ([_expression(*one), _expression(*two)], x and y) for (one, x), (two, y) in itertools.product(said, said)
    ]
    for (match, first), (listed, second) in itertools.product(wanted, expressions):
        found = manifests.selects({"matchLabels": match, "matchExpressions": listed}, labels)
        assert found is bool((match or listed) and first and second)


def _expression(operator, values):
    return {"key": "a", "operator": operator, "values": values}


@pytest.mark.parametrize("total", [0, 1, 3, 10, 200])
@pytest.mark.parametrize("percent", [0, 1, 25, 50, 99, 100, 150])
def test_a_share_is_rounded_up_or_down(percent, total):
    exact = percent * total / 100
    assert manifests.scaled(f"{percent}%", total, up=True) == math.ceil(exact)
    assert manifests.scaled(f"{percent}%", total, up=False) == math.floor(exact)
    for count in (percent, str(percent)):
        assert manifests.scaled(count, total, up=True) == percent
    for nonsense in (-percent, "x", "x%", "2x%", "%", "", True, None, "9" * 5000, f"{'9' * 5000}%"):
        assert manifests.scaled(nonsense, total, up=True) == 0


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize(("value", "said"), [("v", {"value": "v"}), ({"from": 1}, {"valueFrom": {"from": 1}})])
def test_a_variable_is_replaced_in_its_place_or_comes_last(place, value, said):
    before = [{"name": name, "value": "old"} for name in ("x", "y", "z")]
    name = ["x", "y", "z", "new"][place]
    container = {"env": list(before)}
    plugin_pods.set_variable(container, name, value)
    assert container["env"] == [*before[:place], {"name": name, **said}, *before[place + 1 :]]


# -- which pods go first -----------------------------------------------------------------------------------------


def worker(*, node=True, phase="Running", ready=True, cost=0, since=5, restarts=0, created=5):
    status = {"phase": phase, "containerStatuses": [{"restartCount": restarts}]}
    status["conditions"] = [
        {"type": "Ready", "status": str(ready), "lastTransitionTime": f"2026-01-01T00:00:0{since}Z"}
    ]
    return {
        "metadata": {
            "name": "p",
            "creationTimestamp": f"2026-01-01T00:00:0{created}Z",
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": str(cost)},
        },
        "spec": {"nodeName": "n"} if node else {},
        "status": status,
    }


# What makes a pod go before another, the weightiest first: of whoever goes first, and of the other.
REASONS = [
    ("node", False, True),
    ("phase", "Pending", "Unknown"),
    ("phase", "Unknown", "Running"),
    ("ready", False, True),
    ("cost", -1, 0),
    ("cost", 1, 2),
    ("beside", 3, 1),
    ("since", 7, 6),
    ("restarts", 2, 1),
    ("created", 9, 8),
]


def rank(reasons):
    fields = dict(reasons)
    return pods.first_to_go(worker(**{k: v for k, v in fields.items() if k != "beside"}), fields.get("beside", 0))


@pytest.mark.parametrize("reason", REASONS, ids=lambda each: f"{each[0]} {each[1]}")
def test_the_weightier_reason_decides_which_pod_goes_first(reason):
    field, goes, stays = reason
    assert rank([(field, goes)]) < rank([(field, stays)])
    for other, first, last in REASONS[REASONS.index(reason) + 1 :]:
        if other != field:
            assert rank([(field, goes), (other, last)]) < rank([(field, stays), (other, first)])


# -- schedules of equal distances --------------------------------------------------------------------------------


@pytest.mark.parametrize("span", [1, 7, 59, 60, 61])
def test_starts_at_equal_distances_are_those_that_counting_gives(span):
    every = schedules.parse(f"@every {span}s", None)
    assert every.is_within_a_minute is (span < 60)
    for anchor, moment in itertools.product((0, 500_000, 3 * SECOND), range(0, 200 * SECOND, 7 * SECOND + 500_000)):
        base = anchor // SECOND * SECOND
        starts = [base + i * span * SECOND for i in range(1, 400)]
        assert every.after(moment, anchor) == next(start for start in starts if start > moment)
        for until in (moment, moment + 30 * SECOND):
            inside = [start for start in starts if moment < start <= until]
            assert every.latest(moment, until, anchor) == (inside[-1] if inside else None)


TRUE = {"type": "T", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "then"}


@pytest.mark.parametrize("other", [[], [{"type": "O", "status": "True"}]])
@pytest.mark.parametrize(
    "old", [None, {}, {"status": "False"}, {"reason": "other"}, {"message": "other"}, {"lastTransitionTime": None}]
)
def test_a_condition_that_says_what_it_said_keeps_its_time_and_one_that_changes_nothing_is_none(old, other):
    known = [] if old is None else [{key: value for key, value in {**TRUE, **old}.items() if value is not None}]
    status = {"phase": "x", "conditions": [*other, *known]}
    found = manifests.with_condition(status, {**TRUE, "lastTransitionTime": "now"})
    if known and old in ({}, {"lastTransitionTime": None}):
        assert found == status
        return
    stays = old is not None and "status" not in old
    expected = {**TRUE, "lastTransitionTime": "then" if stays else "now"}
    assert found == {"phase": "x", "conditions": [*other, expected]}


@pytest.mark.parametrize(
    ("since", "pause", "available"),
    [(5, 0, True), (50, 0, True), (5, 5, True), (6, 5, False), (None, 0, False), (None, 5, False)],
)
def test_a_pod_is_available_once_it_has_been_ready_for_as_long_as_it_has_to(since, pause, available):
    """It is the tenth second; whoever need not wait does not mind a clock that is ahead either."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": f"1970-01-01T00:00:{since:02}Z"} if since else {}
    pod = {"metadata": {}, "status": {"conditions": [ready]}}
    assert pods.is_available(pod, pause, Moment(10 * SECOND)) is available


def fnv_1a(data):
    """As it is written down: http://www.isthe.com/chongo/tech/comp/fnv/."""
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) % 2**32
    return value


@pytest.mark.parametrize("template", [None, {}, {"spec": {"containers": [{"name": "c"}]}}], ids=str)
@pytest.mark.parametrize("collisions", [0, 1, 2])
def test_a_template_is_hashed_in_the_letters_of_kubernetes(template, collisions):
    assert fnv_1a(b"a") == 0xE40C292C
    written = json.dumps([template, collisions] if collisions else template, sort_keys=True).encode()
    digits = "456789bcdf"  # as the hashes of ReplicaSets are spelt
    assert naming.template_hash(template, collisions) == "".join(digits[int(each)] for each in str(fnv_1a(written)))
