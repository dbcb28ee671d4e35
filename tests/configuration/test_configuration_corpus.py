"""Files that Volcano's documentation, charts and tests show are accepted, and what of them has no effect is said."""

from pathlib import Path

import pytest
import yaml

from pumice.framework import configuration, registry
from pumice.framework.configuration import catalog, documented

CORPUS = yaml.safe_load((Path(__file__).parent / "corpus" / "volcano.yaml").read_text(encoding="utf-8"))
# Said of most examples that show one plugin only.
USUAL = ("is in no tier", "will do nothing", "is not listed: nobody is evicted")


def load(text):
    return configuration.load(text, registry.catalog())


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case["from"])
def test_a_file_from_the_documentation_is_accepted_and_says_what_has_no_effect(case):
    said = [str(warning) for warning in load(case["file"]).warnings]
    said = [line for line in said if not any(usual in line for usual in USUAL)]
    expected = case.get("warns", ())
    assert [part for part in expected if not any(part in line for line in said)] == []
    assert [line for line in said if not any(part in line for part in expected)] == []


def test_every_plugin_and_action_that_the_peers_know_is_provided():
    known = registry.catalog()
    assert [name for name in catalog.PEER_PLUGINS if known.plugin_refusal(name)] == []
    assert [name for name in catalog.PEER_ACTIONS if known.action_refusal(name)] == []


def test_every_plugin_and_action_is_in_some_file():
    files = " ".join(case["file"] for case in CORPUS)
    assert [name for name in (*catalog.PEER_PLUGINS, *catalog.PEER_ACTIONS) if name not in files] == []


def test_the_list_holds_only_what_is_not_read_here():
    known = registry.catalog()
    assert not {*documented.PLUGINS} & {*known.plugins}
    assert not {*documented.ACTIONS, *documented.CONFIGURATIONS} & {*known.actions}
    for owner, listed in documented.ARGUMENTS.items():
        kind, name = owner.rsplit(" of ", 1)[-1].split()
        described = (known.plugins if kind == "plugin" else known.actions)[name.strip('"')]
        assert not {argument.name for argument in described.arguments} & {*listed}, owner


NEAR = {
    "another action": 'actions: "enqueue, elects"\ntiers: []',
    "a plugin that Volcano only develops": 'actions: "allocate"\ntiers: [{plugins: [{name: fairshare}]}]',
    "another such plugin": 'actions: "allocate"\ntiers: [{plugins: [{name: group-topology-affinity}]}]',
    "another plugin": 'actions: "allocate"\ntiers: [{plugins: [{name: reservations}]}]',
    "a listed argument of another plugin": 'actions: "allocate"\ntiers: [{plugins: [{name: gang, arguments: {predicate.GPUSharingEnable: true}}]}]',
    "another argument": 'actions: "allocate"\ntiers: [{plugins: [{name: predicates, arguments: {predicate.GPUSharing: true}}]}]',
    "another configuration": 'actions: "allocate"\ntiers: []\nconfigurations: [{name: init-param}]',
    "another key in a map of metrics": 'actions: "allocate"\ntiers: []\nmetrics: {tls: {insecureskipverify: "true"}}',
    "another strategy": 'actions: "shuffle"\ntiers: [{plugins: [{name: rescheduling, arguments: {strategies: [{name: offline}]}}]}]',
}


@pytest.mark.parametrize("case", NEAR)
def test_what_is_not_listed_is_refused_as_ever(case):
    with pytest.raises(configuration.ConfigurationError):
        load(NEAR[case])


def test_a_source_of_metrics_in_maps_is_the_same_as_in_keys_with_dots():
    start = 'actions: "allocate"\ntiers: []\nmetrics: {type: elasticsearch, address: "http://e", '
    nested = load(start + 'tls: {insecureSkipVerify: "true"}, elasticsearch: {index: i, username: u}}')
    flat = load(start + 'tls.insecureSkipVerify: "true", elasticsearch.index: i, elasticsearch.username: u}')
    assert nested.metrics == flat.metrics
    assert load('actions: "allocate"\ntiers: []\nmetrics: {type: prometheus_adapt}').metrics == {
        "type": "prometheus_adaptor"
    }


def test_the_strategy_that_is_read_counts_wherever_it_stands():
    text = 'actions: "shuffle"\ntiers: [{plugins: [{name: rescheduling, arguments: {strategies: [{name: offlineOnly}, {name: lowNodeUtilization, params: {thresholds: {cpu: 7}}}]}}]}]'
    (setting,) = load(text).tiers[0]
    plugin = registry.installed().plugins["rescheduling"](setting.settings, setting.switches)
    assert plugin.limits.low == (7, 100)
