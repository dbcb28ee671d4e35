"""Expectations about pods, each one where it holds and where it does not."""

from __future__ import annotations

import pytest
from scenario_clusters import by_name, pod

BLOCKED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}

HOLDS = [
    "{a/g-0: {bound: true}}",
    "{a/g-2: {bound: false}}",
    "{a/g-*: {exists: true}}",
    "{a/g-0: {}}",
    "{a/x-*: {exists: false}}",
    "{a/g-0: {node: n1}}",
    "{a/g-0: {node: [n2, n1]}}",
    "{a/g-0: {node: n*}}",
    "{a/g-2: {node: ''}}",
    "{a/g-0: {phase: Running}}",
    "{a/g-2: {nominated: n2}}",
    "{a/g-0: {nominated: ''}}",
    "{a/g-*: {bound: true, some: 2}}",
    "{a/g-*: {bound: true, atLeast: 1}}",
    "{a/g-*: {bound: true, atMost: 2}}",
    "{a/g-*: {bound: true, atLeast: 1, atMost: 3}}",
    "{a/g-*: {some: 3}}",
    "{a/g-*: {evicted: false}}",
    "{'*/g-0': {bound: true}}",
    "{'a/g-[01]': {bound: true}}",
]
FAILS = [
    ("{a/g-0: {bound: false}}", "expected bound: false, found bound: true (bound to n1, phase Running)"),
    ("{a/g-*: {bound: true}}", "pods a/g-2: expected bound: true, found bound: false (not bound, phase Pending)"),
    ("{a/x: {exists: true}}", "found no such pod"),
    ("{a/x: {bound: false}}", "pods a/x: expected bound: false, found no such pod"),
    ("{a/x-*: {bound: true, atMost: 0}}", "found no such pod"),
    ("{a/x-*: {exists: false, bound: false}}", "found no such pod"),
    ("{a/g-0: {exists: false}}", "pods a/g-0: expected exists: false"),
    ("{a/g-0: {node: n2}}", "expected node: n2, found node: n1"),
    ("{a/g-0: {node: [n2, n3]}}", "expected node: n2 or n3, found node: n1"),
    ("{a/g-0: {node: m*}}", "expected node: m*, found node: n1"),
    ("{a/g-2: {node: n*}}", "found node: none"),
    ("{a/g-0: {phase: Pending}}", "expected phase: Pending, found phase: Running"),
    ("{a/g-2: {nominated: n1}}", "expected nominated: n1, found nominated: n2"),
    ("{a/g-*: {bound: true, some: 1}}", "expected exactly 1 with bound: true, found 2 of 3 matches: a/g-0, a/g-1"),
    ("{a/g-*: {bound: true, atLeast: 3}}", "at least 3"),
    ("{a/g-*: {bound: true, atMost: 1}}", "at most 1"),
    ("{a/g-0: {evicted: true}}", "expected evicted: true, found evicted: false"),
    ("{a/g-0: {condition: {Ready: {status: 'True'}}}}", "found no condition Ready"),
]


@pytest.mark.parametrize("rule", HOLDS)
def test_pod_rule_holds(rule, cluster, mismatches):
    assert mismatches(f"{{pods: {rule}}}", pods=cluster) == []


@pytest.mark.parametrize(("rule", "told"), FAILS)
def test_pod_rule_that_fails_says_what_was_expected_and_found(rule, told, cluster, mismatches):
    found = mismatches(f"{{pods: {rule}}}", pods=cluster)
    assert len(found) == 1
    assert told in found[0]


def test_every_mismatch_of_every_match_is_given(cluster, mismatches):
    assert (
        len(mismatches("{pods: {a/g-*: {bound: false, phase: Failed}, b/*: {bound: true}}}", pods=cluster)) == 2 + 3 + 1
    )


CONDITIONS = [
    ("{PodScheduled: {status: 'False'}}", True),
    ("{PodScheduled: {status: False}}", True),
    ("{PodScheduled: {reason: Unschedulable}}", True),
    ("{PodScheduled: {'message~': 'nodes? fit'}}", True),
    ("{PodScheduled: {}}", True),
    ("{PodScheduled: {status: 'True'}}", False),
    ("{PodScheduled: {reason: Other}}", False),
    ("{PodScheduled: {'message~': '^nodes'}}", False),
    ("{Ready: {}}", False),
    ("{PodScheduled: {status: 'False', reason: Other}}", False),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_condition_compares_what_is_named_and_searches_the_message(condition, holds, mismatches):
    waiting = by_name(pod("a/p", conditions=[{"type": "Other", "status": "True"}, BLOCKED]))
    assert (mismatches(f"{{pods: {{a/p: {{condition: {condition}}}}}}}", pods=waiting) == []) is holds


VICTIMS = [
    ("{a/v-*: {evicted: true}}", True),
    ("{a/v-0: {evicted: true, exists: false}}", True),
    ("{a/v-1: {evicted: true, exists: true}}", True),
    ("{a/v-*: {evicted: true, node: n1, some: 2}}", True),
    ("{a/v-0: {exists: false}}", True),
    ("{a/v-*: {evicted: true, exists: false, some: 1}}", True),
    ("{a/v-0: {evicted: false}}", False),
    ("{a/v-0: {exists: true}}", False),
    ("{a/v-0: {bound: true}}", False),
    ("{a/v-*: {evicted: true, atMost: 1}}", False),
]


@pytest.mark.parametrize(("rule", "holds"), VICTIMS)
def test_pods_that_are_gone_are_matched_only_where_eviction_is_asked_for(rule, holds, mismatches):
    gone, leaving = pod("a/v-0", "n1", "Running"), pod("a/v-1", "n1", "Running")
    found = mismatches(f"{{pods: {rule}}}", pods=by_name(leaving), evicted=by_name(gone, leaving))
    assert (found == []) is holds


def test_pod_created_again_under_a_victims_name_was_evicted_in_this_scenario(mismatches):
    again, gone = pod("a/v", "n2", "Running"), pod("a/v", "n1", "Running")
    assert mismatches("{pods: {a/v: {evicted: true, node: n2}}}", pods=by_name(again), evicted=by_name(gone)) == []


WRONG = [
    ("{pods: {a/g: {bond: true}}}", "unknown key 'bond' in a pod expectation; did you mean 'bound'?"),
    ("{pods: {a/g: {bound: maybe}}}", "expected true or false"),
    ("{pods: {g-0: {bound: true}}}", "write it as namespace/name, for example default/g-0"),
    ("{pods: {'*': {bound: true}}}", "write it as namespace/name"),
    ("{pods: {a/g: {some: -1}}}", "whole number of 0 or more"),
    ("{pods: {a/g: {some: two}}}", "expected a whole number"),
    ("{pods: {a/g: {phase: n}}}", "put quotes around it"),
    ("{pods: {a/g: {node: [n]}}}", "put quotes around it"),
    ("{pods: {a/g: {condition: {Ready: {message: x}}}}}", "did you mean 'message~'?"),
    ("{pods: {a/g: {condition: {Ready: {'message~': '('}}}}}", "not a regular expression"),
    ("{pods: [a/g]}", "expected a map of namespace/name"),
    ("{pods: {a/g: true}}", "a pod expectation (a map), found the boolean true"),
    ("{pod: {a/g: {bound: true}}}", "unknown key 'pod' in an expectation; did you mean 'pods'?"),
    ("{not: {pods: {a/g: {bond: true}}}}", "did you mean 'bound'?"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_wrong_expectation_is_refused_when_it_is_read(text, told, refusals):
    found = refusals(text)
    assert len(found) == 1
    assert told in found[0]
