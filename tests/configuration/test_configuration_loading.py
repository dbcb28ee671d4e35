"""Good files of every format, and what becomes of them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from configuration_catalog import CATALOG, FIRST_VERSION, SHIPPED

from pumice.framework import configuration
from pumice.framework.configuration import SWITCHES, Configuration

TIERED = 'actions: "enqueue, allocate, backfill"\ntiers:\n'


def load(text: str, known=CATALOG) -> Configuration:
    return configuration.load(text, known)


def names(found: Configuration) -> list[list[str]]:
    return [[plugin.name for plugin in tier] for tier in found.tiers]


def test_there_are_twenty_five_switches_and_two_are_off_by_default():
    assert len(SWITCHES) == 25
    assert [name for name, value in SWITCHES.items() if not value] == ["enableHierarchy", "enabledClusterOrder"]
    assert sum(name.startswith("enabled") for name in SWITCHES) == 9


def test_the_shipped_volcano_configuration_is_read_without_a_warning():
    found = load(SHIPPED)
    assert found.action_names == ("enqueue", "allocate", "backfill")
    assert names(found) == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]
    assert (found.rules, found.compatibility, found.warnings, found.metrics) == ("current", "", (), {})
    assert found.plugin("gang").line == 5
    assert found.plugin("overcommit").arguments == {"overcommit-factor": Fraction(6, 5)}


def test_case_10_one_switch_off_leaves_all_others_at_their_default():
    gang = load(TIERED + "- plugins:\n  - name: gang\n    enablePreemptable: false\n").plugin("gang")
    assert gang.switches == {**SWITCHES, "enablePreemptable": False}
    assert not gang.switches["enableHierarchy"]


def test_case_9_hierarchical_drf_conflicts_with_proportion_only_in_one_tier():
    drf = "- plugins:\n  - {name: drf, enableHierarchy: true}\n"
    proportion = "- plugins:\n  - name: proportion\n"
    accepted = load(TIERED + drf + proportion)
    text = 'plugin "drf" with enableHierarchy (line 4) and plugin "proportion" (line 6) both share out the cluster'
    assert [text in str(warning) for warning in accepted.warnings].count(True) == 1
    with pytest.raises(configuration.ConfigurationError, match=r"\(line 4\).*\(line 5\) are in one tier"):
        load(TIERED + drf + "  - name: proportion\n")
    load(TIERED + "- plugins:\n  - name: drf\n  - name: proportion\n")


def test_the_built_in_default_drops_what_the_second_tier_lacks():
    found = configuration.default(FIRST_VERSION)
    assert names(found) == [["priority", "gang", "conformance"], ["predicates", "nodeorder"]]
    assert found.action_names == ("enqueue", "allocate", "backfill")
    assert found.warnings == ()
    full = configuration.default(CATALOG)
    assert names(full)[1] == ["overcommit", "drf", "predicates", "proportion", "nodeorder"]


ARGUMENTS = [
    ("binpack", "binpack.weight: -3", {"binpack.weight": -3}, ""),
    ("binpack", "binpack.cpu: -1", {"binpack.cpu": 1}, "found the integer -1, but the minimum is 0; 1 is used instead"),
    (
        "binpack",
        "binpack.resources: nvidia.com/gpu, example.com/foo",
        {"binpack.resources": ("nvidia.com/gpu", "example.com/foo")},
        "",
    ),
    ("binpack", "binpack.resources.nvidia.com/gpu: 7", {"binpack.resources.nvidia.com/gpu": 7}, ""),
    ("binpack", "binpack.resources.x: -7", {"binpack.resources.x": 1}, "the minimum is 0; 1 is used instead"),
    ("overcommit", "overcommit-factor: 1.3", {"overcommit-factor": Fraction(13, 10)}, ""),
    ("overcommit", "overcommit-factor: 12e-1", {"overcommit-factor": Fraction(6, 5)}, ""),
    ("overcommit", "overcommit-factor: 2", {"overcommit-factor": Fraction(2)}, ""),
    (
        "overcommit",
        "overcommit-factor: 0.5",
        {"overcommit-factor": Fraction(6, 5)},
        "the minimum is 1; 1.2 is used instead",
    ),
    ("usage", "ratio: 1.5", {"ratio": Fraction(7, 10)}, "the maximum is 1; 0.7 is used instead"),
    ("usage", "ratio: 1", {"ratio": Fraction(1)}, ""),
    (
        "usage",
        "estimator: {a: 0.1, b: [2, 0.30]}",
        {"estimator": {"a": Fraction(1, 10), "b": [2, Fraction(3, 10)]}},
        "",
    ),
    ("predicates", "predicate.CacheEnable: true", {"predicate.CacheEnable": True}, ""),
    ("predicates", 'predicate.CacheEnable: "true"', {"predicate.CacheEnable": True}, ""),
    ("predicates", "predicate.NodeAffinityEnable: 'F'", {"predicate.NodeAffinityEnable": False}, ""),
    ("predicates", "predicate.NodeAffinityEnable: off", {"predicate.NodeAffinityEnable": False}, ""),
    ("extender", "extender.httpTimeout: 500ms", {"extender.httpTimeout": 500_000}, ""),
    ("extender", "extender.httpTimeout: soon", {"extender.httpTimeout": 1_000_000}, "1s is used instead"),
    ("extender", "extender.managedResources: [a, b]", {"extender.managedResources": ["a", "b"]}, ""),
    ("extender", "extender.urlPrefix: http://x", {"extender.urlPrefix": "http://x"}, ""),
    ("sla", "sla-waiting-time: 0s", {"sla-waiting-time": None}, "nothing is used instead"),
    ("numaaware", "weight: 3", {"weight": 3}, ""),
]


@pytest.mark.parametrize(("plugin", "line", "values", "warning"), ARGUMENTS, ids=[case[1] for case in ARGUMENTS])
def test_arguments_have_their_declared_type_and_range(plugin, line, values, warning):
    rest = "  - name: gang\n" + ("" if plugin == "predicates" else "  - name: predicates\n")
    found = load(
        f"{TIERED}- plugins:\n  - name: {plugin}\n    arguments:\n      {line}\n{rest}metrics: {{type: prometheus}}\n"
    )
    setting = found.tiers[0][0]
    assert setting.name == plugin.replace("numaaware", "numa-aware")
    declared = {
        argument.name: argument.default
        for argument in CATALOG.plugins[setting.name].arguments
        if "*" not in argument.name
    }
    assert setting.arguments == {**declared, **values}
    assert [problem.line for problem in found.warnings] == ([6] if warning else [])
    assert all(warning in problem.message for problem in found.warnings)


def test_arguments_of_actions_come_from_the_first_entry():
    text = SHIPPED + (
        "configurations:\n"
        "- name: allocate\n  arguments: {predicateErrorCacheEnable: false}\n"
        "- name: allocate\n  arguments: {predicateErrorCacheEnable: true}\n"
        "- name: preempt\n  arguments: {minCandidateNodesPercentage: 5}\n"
        "- name: backfill\n  arguments:\n"
    )
    found = load(text)
    assert [action.arguments for action in found.actions] == [
        {"evictionAware": True},
        {"predicateErrorCacheEnable": False},
        {"predicateErrorCacheEnable": True},
    ]
    assert [str(warning) for warning in found.warnings] == [
        'line 19: configurations[1].name: action "allocate" is configured already on line 17, which wins',
        'line 21: configurations[2].name: action "preempt" is not among the actions, so its arguments have no effect',
    ]


def test_metrics_are_strings_by_known_keys():
    found = load(
        SHIPPED
        + 'metrics:\n  type: prometheus\n  address: http://p:9090\n  interval: 30s\n  tls.insecureSkipVerify: "false"\n'
    )
    assert found.metrics["interval"] == "30s"
    assert found.warnings == ()
    warned = load(SHIPPED + "metrics: {type: prometheus_adapt}\n").warnings
    assert 'is read as "prometheus_adaptor"' in warned[0].message


def test_a_plugin_may_stand_in_two_tiers():
    assert names(load(TIERED + "- plugins: [{name: gang}, {name: predicates}]\n- plugins: [{name: gang}]\n")) == [
        ["gang", "predicates"],
        ["gang"],
    ]


def test_sections_left_empty_are_absent():
    found = load(
        'actions: "allocate"\ntiers:\n- plugins:\n- plugins:\n  - name: gang\n    arguments:\nconfigurations:\nmetrics:\n'
    )
    assert names(found) == [[], ["gang"]]


FLAT = """\
actions: "reclaim, allocate, backfill, preempt"
plugins: "gang, priority, drf, predicates, proportion"
plugin.gang.jobready: "true"
plugin.gang.joborder: "true"
plugin.gang.preemptable: true
plugin.priority.joborder: "true"
plugin.priority.taskorder: "false"
plugin.drf.preemptable: "true"
"""


def test_the_flat_map_of_kube_batch_is_one_tier_under_its_rules():
    found = load(FLAT)
    assert names(found) == [["gang", "priority", "drf", "predicates", "proportion"]]
    assert found.action_names == ("reclaim", "allocate", "backfill", "preempt")
    assert (found.rules, found.compatibility) == ("kube-batch", "")
    four = ("enableJobReady", "enableJobOrder", "enablePreemptable", "enableTaskOrder")
    on = {plugin.name: [name for name in four if plugin.switches[name]] for plugin in found.plugins}
    assert on == {
        "gang": ["enableJobReady", "enableJobOrder", "enablePreemptable"],
        "priority": ["enableJobOrder"],
        "drf": ["enablePreemptable"],
        "predicates": [],
        "proportion": [],
    }
    for plugin in found.plugins:
        assert {name: value for name, value in plugin.switches.items() if name not in four} == {
            name: value for name, value in SWITCHES.items() if name not in four
        }


@pytest.mark.parametrize("name", ["drf", "deviceshare"])  # whether it is provided here or not
def test_a_flat_map_without_actions_runs_allocate_and_preempt(name):
    found = load(f'plugins: "gang, predicates"\nplugin.gang.jobready: "true"\nplugin.{name}.joborder: "true"\n')
    assert found.action_names == ("allocate", "preempt")
    told = f'line 3: plugin.{name}.joborder: plugin "{name}" is not among the plugins, so its switch has no effect'
    assert told in map(str, found.warnings)


def test_a_flat_map_that_leaves_jobready_off_is_warned_of():
    assert any("JobReady off" in warning.message for warning in load('plugins: "gang, predicates"\n').warnings)


def test_disable_switches_mean_kube_batch_rules():
    text = 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n    disablePreemptable: true\n    disableJobOrder: "false"\n  - name: predicates\n'
    found = load(text)
    assert found.rules == "kube-batch"
    assert found.plugin("gang").switches == {**SWITCHES, "enablePreemptable": False}
    assert found.warnings == ()


STRINGS = """\
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: {switch}
- plugins:
  - name: predicates
    arguments: {{predicate.CacheEnable: "true"}}
  - name: nodeorder
    arguments: {{leastrequested.weight: "2", mostrequested.weight: 1}}
  - name: overcommit
    arguments: {{overcommit-factor: "1.2"}}
"""


def test_quoted_values_are_read_only_under_kube_batch_rules():
    found = load("compatibility: kube-batch\n" + STRINGS.format(switch='"false"'))
    assert (found.rules, found.compatibility) == ("kube-batch", "kube-batch")
    assert found.plugin("nodeorder").arguments["leastrequested.weight"] == 2
    assert found.plugin("overcommit").arguments["overcommit-factor"] == Fraction(6, 5)
    assert not found.plugin("gang").switches["enablePreemptable"]
    with pytest.raises(configuration.ConfigurationError) as caught:
        load(STRINGS.format(switch='"false"'))
    assert [problem.line for problem in caught.value.problems] == [6, 11, 13]
    assert "compatibility: kube-batch" in caught.value.problems[1].message


@pytest.mark.parametrize("value", ["volcano", "kube-batch"])
def test_compatibility_is_kept(value):
    found = load(f"compatibility: {value}\n{SHIPPED}")
    assert found.compatibility == value
    assert found.rules == ("kube-batch" if value == "kube-batch" else "current")


def test_the_actions_of_a_tiered_file_do_not_select_the_rules():
    assert load(SHIPPED.replace("enqueue, allocate, backfill", "allocate, backfill")).rules == "current"
