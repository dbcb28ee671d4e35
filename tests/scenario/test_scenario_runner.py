"""Playing steps in order, on a stage that only remembers."""

from __future__ import annotations

import pytest
from scenario_clusters import by_name, make_view, pod

from pumice.framework.configuration import ConfigurationError, Problem
from pumice.scenario import format as scenario_format
from pumice.scenario import runner
from pumice.scenario.stage import StepError
from pumice.scenario.view import Counts

EXPECT_NOTHING = "- expect: {}"


class FakeStage:
    """Binds one more pod of a/g-0 … in each cycle, and remembers what it is asked to do."""

    def __init__(self, size=3):
        self.done = []
        self.size = size
        self.cycles = 0

    def apply(self, objects):
        self.done.append(("apply", [one["metadata"]["name"] for one in objects]))

    def patch(self, objects):
        self.done.append(("patch", [one["metadata"]["name"] for one in objects]))

    def delete(self, references, grace):
        if "pod/a/none" in references:
            raise StepError("delete: pod/a/none does not exist")
        self.done.append(("delete", references, grace))

    def fail(self, step):
        self.done.append(("fail", step.verb, step.object.pattern, step.times, step.error))

    def advance(self, duration):
        self.done.append(("advance", duration))

    def cycle(self, period):
        self.cycles += 1
        self.done.append(("cycle", period))

    def configure(self, text):
        if text == "broken":
            raise ZeroDivisionError("1/0")
        if text == "bad":
            raise ConfigurationError((Problem(1, "actions", "no such action"), Problem(2, "tiers", "missing")))
        self.done.append(("configure", text))

    def counts(self):
        return Counts(binds=min(self.cycles, self.size), status_writes=self.cycles)

    def view(self, counts):
        pods = [pod(f"a/g-{index}", "n1" if index < self.cycles else "") for index in range(self.size)]
        return make_view(pods=by_name(*pods), counts=counts)

    def trace(self):
        return [f"cycle {self.cycles}: bound one"]


def play(*lines, top="", stage=None):
    """Play steps; give the result and the stage they were played on."""
    text = "\n".join(["scenario: one", top, "steps:", *lines])
    parsed = scenario_format.parse(text, "file.yaml")
    assert parsed.problems == ()
    stage = stage or FakeStage()
    return runner.run(parsed.scenarios[0], lambda scenario: stage), stage


def test_steps_are_taken_in_order():
    node = "{apiVersion: v1, kind: Node, metadata: {name: 'n-{i}'}}"
    result, stage = play(
        "- cycles: 2",
        "- advance: 3s",
        f"- apply: [{{repeat: 2, object: {node}}}]",
        "- patch: [{kind: Node, metadata: {name: n-0}}]",
        "- delete: [node/n-0, pod/a/b]",
        "- {delete: [pod/a/b], grace: 1s}",
        "- fail: {verb: bind, object: pod/a/*, times: 2, error: refused}",
        "- config: good",
        EXPECT_NOTHING,
        top="period: 2s",
    )
    assert result.status == "passed"
    assert stage.done == [
        ("cycle", 2_000_000),
        ("cycle", 2_000_000),
        ("advance", 3_000_000),
        ("apply", ["n-0", "n-1"]),
        ("patch", ["n-0"]),
        ("delete", ["node/n-0", "pod/a/b"], None),
        ("delete", ["pod/a/b"], 1_000_000),
        ("fail", "bind", "pod/a/*", 2, "refused"),
        ("configure", "good"),
    ]


def test_result_counts_cycles_and_writes():
    result, _ = play("- cycles: 5", EXPECT_NOTHING)
    assert (result.cycles, result.binds, result.evictions, result.failures) == (5, 3, 0, [])


def test_failed_expectation_reports_every_mismatch_and_ends_the_scenario():
    result, stage = play(
        "- cycles: 1", "- expect: {pods: {a/g-*: {bound: true}}, counts: {binds: 3}}", "- cycles: 1", EXPECT_NOTHING
    )
    assert result.status == "failed"
    assert result.failures == [
        "file.yaml:5: pods a/g-1: expected bound: true, found bound: false (not bound, phase Pending)",
        "file.yaml:5: pods a/g-2: expected bound: true, found bound: false (not bound, phase Pending)",
        "file.yaml:5: counts binds: expected 3, found 1 since the last counts",
    ]
    assert result.trace == ("cycle 1: bound one",)
    assert stage.cycles == 1


def test_until_runs_as_many_cycles_as_it_needs():
    result, stage = play("- {until: {pods: {a/g-1: {bound: true}}}, within: 9}")
    assert (result.status, stage.cycles) == ("passed", 2)


def test_until_may_hold_with_its_last_cycle():
    result, stage = play("- {until: {pods: {a/g-1: {bound: true}}}, within: 2}")
    assert (result.status, stage.cycles) == ("passed", 2)


def test_until_that_holds_already_needs_no_cycle():
    result, stage = play("- {until: {pods: {a/g-1: {bound: false}}}, within: 0}")
    assert (result.status, stage.cycles) == ("passed", 0)


def test_until_fails_after_its_number_of_cycles():
    result, stage = play("- {until: {pods: {a/g-2: {bound: true}}}, within: 2}")
    assert (result.status, stage.cycles) == ("failed", 2)
    assert result.failures[-1] == "file.yaml:4: until did not hold within 2 cycles"


@pytest.mark.parametrize("inner", ["counts: {binds: 2}", "not: {counts: {binds: 0}}"])
def test_counts_begin_again_after_an_expect_that_counts(inner):
    result, _ = play("- cycles: 2", f"- expect: {{{inner}}}", "- cycles: 1", "- expect: {counts: {binds: 1}}")
    assert result.failures == []


def test_counts_go_on_over_until_and_over_an_expect_without_counts():
    result, _ = play(
        "- {until: {counts: {binds: 2}}, within: 5}",
        "- expect: {pods: {a/g-0: {bound: true}}}",
        "- cycles: 1",
        "- expect: {counts: {binds: 3, statusWrites: '>= 3'}}",
    )
    assert result.failures == []


def test_refused_configuration_fails_unless_that_is_demanded():
    assert play("- {config: bad, rejected: true}", EXPECT_NOTHING)[0].status == "passed"
    assert play("- config: bad", EXPECT_NOTHING)[0].failures == [
        "file.yaml:4: the configuration is refused: line 1: actions: no such action",
        "file.yaml:4: the configuration is refused: line 2: tiers: missing",
    ]


def test_accepted_configuration_fails_where_its_refusal_is_demanded():
    (told,) = play("- {config: good, rejected: true}", EXPECT_NOTHING)[0].failures
    assert "the configuration is accepted" in told


def test_step_the_cluster_refuses_fails_the_scenario():
    assert play("- delete: [pod/a/none]", EXPECT_NOTHING)[0].failures == [
        "file.yaml:4: delete: pod/a/none does not exist"
    ]


def test_scheduler_that_breaks_fails_its_scenario_with_the_place():
    (told,) = play("- config: broken", EXPECT_NOTHING)[0].failures
    assert told.startswith("file.yaml:4: the scheduler broke: ZeroDivisionError: 1/0 (in ")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            ConfigurationError((Problem(3, "tiers", "missing"),)),
            "file.yaml:2: the configuration is refused: line 3: tiers: missing",
        ),
        (StepError("apply: no such kind"), "file.yaml:1: apply: no such kind"),
        (KeyError("x"), "file.yaml:1: the scheduler broke: KeyError: 'x' (in "),
    ],
)
def test_what_goes_wrong_before_the_first_step_fails_the_scenario(error, told):
    def build(scenario):
        raise error

    parsed = scenario_format.parse(f"scenario: one\nconfig: x\nsteps:\n{EXPECT_NOTHING}", "file.yaml")
    result = runner.run(parsed.scenarios[0], build)
    assert (result.status, result.cycles) == ("failed", 0)
    assert result.failures[0].startswith(told)
