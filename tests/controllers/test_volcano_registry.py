"""The controllers by the names that operators know."""

from pumice.api import kinds
from pumice.controllers.queueing.engine import Engine
from pumice.controllers.volcano import registry

VOLCANOS = {
    "job-controller",
    "queue-controller",
    "pg-controller",
    "gc-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "cronjob-controller",
    "hyperNode-controller",
    "sharding-controller",
    "colocation-config-controller",
}


def test_every_name_is_one_that_operators_know_and_none_is_both_there_and_refused():
    assert set(registry.REGISTERED) | set(registry.REFUSED) <= VOLCANOS
    assert not set(registry.REGISTERED) & set(registry.REFUSED)
    assert {"sharding-controller", "colocation-config-controller"} == set(registry.REFUSED)
    assert all("is not supported" in why or "are not supported" in why for why in registry.REFUSED.values())


def test_names_choose_controllers_in_the_order_of_the_register():
    chosen = registry.controllers(["hyperNode-controller", "queue-controller"])
    assert [each.kind for each in chosen] == [kinds.QUEUE, kinds.HYPER_NODE, kinds.CONFIG_MAP]
    watched = Engine(registry.controllers()).watched
    assert {kinds.QUEUE, kinds.CRON_JOB, kinds.JOB_FLOW, kinds.JOB_TEMPLATE, kinds.COMMAND, kinds.JOB} <= set(watched)


def test_a_limit_of_refusals_is_given_to_those_that_have_one():
    def limits(**more):
        return [each.most_refusals for each in registry.controllers(**more) if hasattr(each, "most_refusals")]

    assert (limits(), limits(most_refusals=3), limits(most_refusals=0)) == ([15], [3], [0])
