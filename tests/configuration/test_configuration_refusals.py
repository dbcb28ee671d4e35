"""Files that are refused: each problem names its line, its key and what was probably meant."""

from __future__ import annotations

import pytest
from configuration_catalog import CATALOG, FIRST_VERSION, SHIPPED

from pumice.framework import configuration

HEAD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n'

BAD = {
    "empty text": ("", [(1, "the text is empty")]),
    "only a comment": ("# nothing\n", [(1, "the text is empty")]),
    "YAML error": ("actions: a: b\n", [(1, "mapping values are not allowed")]),
    "duplicate key": (
        f"{SHIPPED}actions: allocate\n",
        [(16, 'key "actions" is written twice; it is already on line 1')],
    ),
    "two documents": (f"{SHIPPED}---\n{SHIPPED}", [(17, "the text holds 2 documents")]),
    "a list": ("- a\n", [(1, "expected a map, found a list of 1")]),
    "a word": ("allocate\n", [(1, 'expected a map, found the string "allocate"')]),
    "unknown top-level key": (
        f"{HEAD}  - name: gang\nconfiguration: []\n",
        [(5, 'unknown key "configuration"; did you mean "configurations"?')],
    ),
    "a key of one letter": (f"{HEAD}  - name: gang\na: 1\n", [(5, 'a: unknown key "a"')]),
    "missing actions": ("tiers: []\n", [(1, "actions: is missing")]),
    "empty actions": ('actions: ""\n', [(1, 'action 1 of 1 in "" has an empty name')]),
    "null actions": ("actions:\n", [(1, "expected one string of action names")]),
    "empty action name": ('actions: "enqueue,, allocate"\n', [(1, "action 2 of 3")]),
    "list of actions": ("actions: [enqueue]\n", [(1, "found a list of 1")]),
    "unknown action": ('actions: "enqueue, alocate"\n', [(1, 'unknown action "alocate"; did you mean "allocate"?')]),
    "action in capitals": ('actions: "Enqueue"\n', [(1, 'unknown action "Enqueue"; did you mean "enqueue"?')]),
    "action not provided": (
        'actions: "shuffle"\n',
        [(1, 'action "shuffle" is known from Volcano but not provided by this version')],
    ),
    "tiers is a map": ("actions: allocate\ntiers: {plugins: []}\n", [(2, "tiers: expected a list, found a map of 1")]),
    "a tier is a list": ("actions: allocate\ntiers:\n- []\n", [(3, "tiers[0]: expected a map, found a list of 0")]),
    "a tier is nothing": ("actions: allocate\ntiers:\n-\n", [(3, "tiers[0]: expected a map, found nothing")]),
    "unknown tier key": (
        "actions: allocate\ntiers:\n- plugin: []\n",
        [(3, 'unknown key "plugin"; did you mean "plugins"?')],
    ),
    "plugins is a map": (
        "actions: allocate\ntiers:\n- plugins: {name: gang}\n",
        [(3, "expected a list, found a map of 1")],
    ),
    "plugin is a word": (f"{HEAD}  - gang\n", [(4, 'tiers[0].plugins[0]: expected a map, found the string "gang"')]),
    "plugin without a name": (
        f"{HEAD}  - enableJobOrder: true\n",
        [(4, "expected the name of a plugin, found nothing")],
    ),
    "plugin is empty": (f"{HEAD}  - {{}}\n", [(4, "tiers[0].plugins[0].name: expected the name of a plugin")]),
    "plugin with an empty name": (f'{HEAD}  - name: ""\n', [(4, 'found the string ""')]),
    "plugin named by a boolean": (f"{HEAD}  - name: on\n", [(4, "found the boolean true")]),
    "unknown plugin": (f"{HEAD}  - name: gagn\n", [(4, 'unknown plugin "gagn"; did you mean "gang"?')]),
    "plugin not provided": (
        f"{HEAD}  - name: gang\n  - name: deviceshare\n",
        [(5, 'plugin "deviceshare" is known from Volcano but not provided by this version')],
    ),
    "duplicate plugin": (
        f"{HEAD}  - name: gang\n  - name: gang\n",
        [(5, 'plugin "gang" is already in this tier on line 4')],
    ),
    "duplicate by alias": (
        f"{HEAD}  - name: numaaware\n  - name: numa-aware\n",
        [(5, 'plugin "numa-aware" is already')],
    ),
    "unknown plugin key": (f"{HEAD}  - name: gang\n    argument: {{}}\n", [(5, 'did you mean "arguments"?')]),
    "irregular switch": (f"{HEAD}  - name: gang\n    enableOverused: true\n", [(5, 'did you mean "enabledOverused"?')]),
    "switch of the wrong type": (
        f"{HEAD}  - name: gang\n    enableJobOrder: 1\n",
        [(5, "tiers[0].plugins[0].enableJobOrder: expected true or false, found the integer 1")],
    ),
    "switch as a string": (f'{HEAD}  - name: gang\n    enableJobOrder: "true"\n', [(5, 'found the string "true"')]),
    "switch left empty": (f"{HEAD}  - name: gang\n    enableJobOrder:\n", [(5, "found nothing")]),
    "mixed switches": (
        f"{HEAD}  - name: gang\n    enableJobOrder: true\n  - name: drf\n    disableJobOrder: true\n",
        [(7, "cannot be mixed with enable… ones, such as enableJobOrder on line 5")],
    ),
    "unknown disable switch": (
        f"{HEAD}  - name: gang\n    disableJobOder: true\n",
        [(5, 'did you mean "disableJobOrder"?')],
    ),
    "arguments is a list": (
        f"{HEAD}  - name: gang\n    arguments: [1]\n",
        [(5, "arguments: expected a map, found a list of 1")],
    ),
    "unknown argument": (
        f"{HEAD}  - name: binpack\n    arguments:\n      binpack.wieght: 1\n",
        [(6, 'plugin "binpack" has no argument "binpack.wieght"; did you mean "binpack.weight"?')],
    ),
    "argument of a plugin without any": (
        f"{HEAD}  - name: gang\n    arguments: {{a: 1}}\n",
        [(5, 'plugin "gang" has no argument "a"')],
    ),
    "pattern with nothing behind it": (
        f"{HEAD}  - name: binpack\n    arguments: {{binpack.resources.: 1}}\n",
        [(5, 'no argument "binpack.resources."')],
    ),
    "case 11: quoted integer": (
        f'{HEAD}  - name: binpack\n    arguments:\n      binpack.weight: "10"\n',
        [(6, 'arguments.binpack.weight: expected an integer, found the string "10"; write it without quotes')],
    ),
    "integer as a float": (
        f"{HEAD}  - name: binpack\n    arguments: {{binpack.weight: 1.0}}\n",
        [(5, "expected an integer, found the number 1.0")],
    ),
    "integer beyond 64 bits": (
        f"{HEAD}  - name: binpack\n    arguments: {{binpack.weight: 9223372036854775808}}\n",
        [(5, "integers end at 9223372036854775807")],
    ),
    "integer as a boolean": (
        f"{HEAD}  - name: binpack\n    arguments: {{binpack.weight: yes}}\n",
        [(5, "found the boolean true")],
    ),
    "pattern of the wrong type": (
        f"{HEAD}  - name: binpack\n    arguments: {{binpack.resources.x: a}}\n",
        [(5, 'found the string "a"')],
    ),
    "names as a list": (
        f"{HEAD}  - name: binpack\n    arguments: {{binpack.resources: [a]}}\n",
        [(5, "names separated by commas, found a list")],
    ),
    "float without an end": (
        f"{HEAD}  - name: overcommit\n    arguments: {{overcommit-factor: .inf}}\n",
        [(5, "it must be finite")],
    ),
    "float as a word": (
        f"{HEAD}  - name: overcommit\n    arguments: {{overcommit-factor: big}}\n",
        [(5, "expected a number")],
    ),
    "boolean as a number": (
        f"{HEAD}  - name: predicates\n    arguments: {{predicate.CacheEnable: 1}}\n",
        [(5, "expected true or false")],
    ),
    "boolean as a word": (
        f"{HEAD}  - name: predicates\n    arguments: {{predicate.CacheEnable: maybe}}\n",
        [(5, 'found the string "maybe"')],
    ),
    "string as a number": (
        f"{HEAD}  - name: extender\n    arguments: {{extender.urlPrefix: 3}}\n",
        [(5, "expected a string, found the integer 3")],
    ),
    "duration as a number": (
        f"{HEAD}  - name: sla\n    arguments: {{sla-waiting-time: 3}}\n",
        [(5, "expected a duration")],
    ),
    "duration as a word": (
        f"{HEAD}  - name: sla\n    arguments: {{sla-waiting-time: soon}}\n",
        [(5, "expected a duration")],
    ),
    "list as a string": (
        f"{HEAD}  - name: extender\n    arguments: {{extender.managedResources: a}}\n",
        [(5, "expected a list")],
    ),
    "map as a list": (
        f"{HEAD}  - name: usage\n    arguments: {{estimator: []}}\n",
        [(5, "expected a map, found a list of 0")],
    ),
    "configurations is a map": (
        f"{HEAD}  - name: gang\nconfigurations: {{}}\n",
        [(5, "configurations: expected a list")],
    ),
    "configuration without a name": (
        f"{HEAD}  - name: gang\nconfigurations:\n- arguments: {{}}\n",
        [(6, "expected the name of an action")],
    ),
    "configuration is a word": (f"{HEAD}  - name: gang\nconfigurations:\n- allocate\n", [(6, "expected a map")]),
    "configuration of an unknown action": (
        f"{HEAD}  - name: gang\nconfigurations:\n- name: alocate\n",
        [(6, 'configurations[0].name: unknown action "alocate"; did you mean "allocate"?')],
    ),
    "unknown configuration key": (
        f"{HEAD}  - name: gang\nconfigurations:\n- name: allocate\n  args: {{}}\n",
        [(7, 'unknown key "args"')],
    ),
    "unknown argument of an action": (
        f"{HEAD}  - name: gang\nconfigurations:\n- name: allocate\n  arguments: {{predicateErrorCache: true}}\n",
        [(7, 'action "allocate" has no argument "predicateErrorCache"; did you mean "predicateErrorCacheEnable"?')],
    ),
    "argument of an action of the wrong type": (
        f"{HEAD}  - name: gang\nconfigurations:\n- name: preempt\n  arguments: {{minCandidateNodesPercentage: ten}}\n",
        [(7, 'expected an integer, found the string "ten"')],
    ),
    "unknown metrics key": (f"{HEAD}  - name: gang\nmetrics: {{adress: x}}\n", [(5, 'did you mean "address"?')]),
    "nested metrics": (
        f"{HEAD}  - name: gang\nmetrics:\n  type: {{}}\n",
        [(6, "metrics.type: expected a string, found a map")],
    ),
    "metrics interval": (f"{HEAD}  - name: gang\nmetrics: {{interval: often}}\n", [(5, "expected a duration")]),
    "metrics is a list": (f"{HEAD}  - name: gang\nmetrics: []\n", [(5, "metrics: expected a map")]),
    "unknown compatibility": ("actions: allocate\ncompatibility: kubebatch\n", [(2, 'did you mean "kube-batch"?')]),
    "compatibility of the wrong type": ("actions: allocate\ncompatibility: 1\n", [(2, "found the integer 1")]),
    "flat map against compatibility": (
        "plugins: gang\ncompatibility: volcano\n",
        [(2, '"volcano" contradicts the flat map')],
    ),
    "disable form against compatibility": (
        f"compatibility: volcano\n{HEAD}  - name: gang\n    disableJobOrder: true\n",
        [(1, '"volcano" contradicts a disable… switch')],
    ),
    "flat map with tiers": ("plugins: gang\ntiers: []\n", [(2, 'unknown key "tiers" in kube-batch\'s flat map')]),
    "flat key without plugins": (
        'plugin.gang.jobready: "true"\nactions: allocate\n',
        [(1, "belongs to kube-batch's flat map")],
    ),
    "flat plugins as a list": ("plugins: [gang]\nactions: allocate\n", [(1, "belongs to kube-batch's flat map")]),
    "flat map with an empty name": ('plugins: ""\n', [(1, 'plugin 1 of 1 in "" has an empty name')]),
    "flat map with an unknown plugin": ('plugins: "gang, dfr"\n', [(1, 'unknown plugin "dfr"; did you mean "drf"?')]),
    "flat map with a plugin twice": ('plugins: "gang, gang"\n', [(1, 'plugin "gang" is listed twice')]),
    "flat map with an unknown switch": (
        "plugins: gang\nplugin.gang.jobreddy: 'true'\n",
        [(2, 'did you mean "jobready"?')],
    ),
    "flat map with an unknown plugin key": (
        "plugins: gang\nplugin.gagn.jobready: 'true'\n",
        [(2, 'unknown plugin "gagn"')],
    ),
    "flat map with a switch of nobody": (
        "plugins: gang\nplugin.jobready: 'true'\n",
        [(2, 'unknown key "plugin.jobready" in kube-batch\'s flat map')],
    ),
    "flat map with a switch of something else": (
        "plugins: gang\naction.gang.jobready: 'true'\n",
        [(2, 'unknown key "action.gang.jobready" in kube-batch\'s flat map')],
    ),
    "flat map with a bad value": ("plugins: gang\nplugin.gang.jobready: maybe\n", [(2, "expected true or false")]),
    "flat map with an unknown action": ('plugins: gang\nactions: "alocate"\n', [(2, 'did you mean "allocate"?')]),
    "several at once": (
        'actions: "alocate"\ntiers:\n- plugins:\n  - name: gagn\n  - name: binpack\n    arguments: {binpack.cpu: x}\nmetric: {}\n',
        [(1, "alocate"), (4, "gagn"), (6, "binpack.cpu"), (7, "metric")],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_naming_line_key_and_cure(name):
    text, expected = BAD[name]
    with pytest.raises(configuration.ConfigurationError) as caught:
        configuration.load(text, CATALOG, "volcano-scheduler.conf")
    problems = caught.value.problems
    assert [problem.line for problem in problems] == [line for line, _ in expected], str(caught.value)
    for problem, (_, fragment) in zip(problems, expected, strict=True):
        assert fragment in str(problem)


def test_the_refusal_reads_as_a_list_under_the_name_of_the_file():
    with pytest.raises(configuration.ConfigurationError) as caught:
        configuration.load('actions: "alocate"\ntiers: 3\n', CATALOG, "scheduler.conf")
    assert str(caught.value).splitlines() == [
        "scheduler.conf is not valid, 2 problems:",
        '  line 1: actions: unknown action "alocate"; did you mean "allocate"?',
        "  line 2: tiers: expected a list, found the integer 3",
    ]


def test_what_this_version_lacks_is_refused_in_just_those_words():
    with pytest.raises(configuration.ConfigurationError) as caught:
        configuration.load(SHIPPED, FIRST_VERSION)
    assert [problem.message for problem in caught.value.problems] == [
        f'plugin "{name}" is known from Volcano but not provided by this version'
        for name in ("overcommit", "drf", "proportion")
    ]


def test_a_file_full_of_mistakes_is_refused_soon():
    text = SHIPPED + "".join(f"key{number}: 1\n" for number in range(5000))
    with pytest.raises(configuration.ConfigurationError) as caught:
        configuration.load(text, CATALOG)
    assert len(caught.value.problems) == 51
    assert str(caught.value).splitlines()[-1] == "  only the first 50 problems are shown"


def test_values_of_metrics_are_not_shown():
    with pytest.raises(configuration.ConfigurationError) as caught:
        configuration.load(SHIPPED + "metrics: {elasticsearch.password: 12345}\n", CATALOG)
    assert "12345" not in str(caught.value)


def test_odd_keys_do_not_break_a_message():
    with pytest.raises(configuration.ConfigurationError) as caught:
        configuration.load(f'"a\\nb": 1\n"": 2\n{"k" * 500}: 3\nactions: allocate\n', CATALOG)
    assert len(str(caught.value).splitlines()) == 4
    assert len(str(caught.value)) < 700


MONSTERS = {
    "1e-999999999": "the minimum is 1; 1.2 is used instead",
    "0." + "1" * 5000: "of 5002 characters; at most 64 are read",
    "1" * 200 + ".5": "of 202 characters; at most 64 are read",
    "1" * 5000 + ".5": "expected a number, found the string",
}


@pytest.mark.parametrize("digits", MONSTERS, ids=lambda digits: digits[:6])
def test_monstrous_decimals_cost_nothing(digits):
    held = configuration.ConfigurationHolder(CATALOG, configuration.load(SHIPPED, CATALOG))
    held.offer(
        f"{HEAD}  - name: gang\n  - name: predicates\n  - name: overcommit\n    arguments: {{overcommit-factor: {digits}}}\n"
    )
    (found,) = held.history[-1].problems or held.history[-1].warnings
    assert MONSTERS[digits] in found.message
    assert len(found.message) < 200
