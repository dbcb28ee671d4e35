"""Arguments that are maps: what may stand in them is declared, and refused or replaced like any other argument."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pumice.framework import configuration
from pumice.framework.configuration import ActionDescription, Argument, Catalog, PluginDescription

LIMITS = Argument(
    "limits",
    "map",
    fields=(
        Argument("enable", "bool", default=False),
        Argument("mode", "string", default="soft", choices=("soft", "hard")),
        Argument("rates", "map", fields=(Argument("*.cpu", "float", default=1), Argument("*.memory", "float"))),
    ),
)


def too_soft(given):
    if given["limits"]["enable"] and not given["limits"]["rates"]:
        yield ("limits", "enable"), "limits are on, but there are no rates"


NESTED = Catalog(
    {"gang": PluginDescription("gang", (LIMITS,), frozenset(), too_soft)}, {"allocate": ActionDescription("allocate")}
)


def nested(text):
    return configuration.load(f'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n{text}', NESTED)


def test_a_map_with_declared_fields_has_all_of_them():
    off = {"enable": False, "mode": "soft", "rates": {}}
    assert nested("").plugin("gang").arguments == {"limits": off}
    assert nested("    arguments: {limits: {}}\n").plugin("gang").arguments == {"limits": off}
    loaded = nested("    arguments: {limits: {enable: true, rates: {a.b/c.cpu: 2.5, a.memory: 4}}}\n")
    rates = {"a.b/c.cpu": Fraction(5, 2), "a.memory": Fraction(4)}
    assert loaded.plugin("gang").arguments == {"limits": {**off, "enable": True, "rates": rates}}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{limits: 3}", "line 5: tiers[0].plugins[0].arguments.limits: expected a map, found the integer 3"),
        (
            "{limits: {enabled: true}}",
            'arguments.limits.enabled: "limits" of plugin "gang" has no argument "enabled"; did you mean',
        ),
        ("{limits: {enable: 3}}", "arguments.limits.enable: expected true or false, found the integer 3"),
        ("{limits: {rates: {cpu: 3}}}", 'arguments.limits.rates.cpu: "rates" of "limits" of plugin "gang" has no'),
        ("{limits: {rates: {.cpu: 3}}}", 'has no argument ".cpu"'),
        ("{limits: {rates: {a.cpu: x}}}", 'arguments.limits.rates.a.cpu: expected a number, found the string "x"'),
        ("{limits: {enable: true}}", "arguments.limits.enable: limits are on, but there are no rates"),
    ],
)
def test_a_mistake_inside_a_map_is_refused_by_its_path(written, problem):
    with pytest.raises(configuration.ConfigurationError) as caught:
        nested(f"    arguments: {written}\n")
    assert len(caught.value.problems) == 1
    assert problem in str(caught.value.problems[0])


def test_a_value_that_is_no_choice_is_replaced_with_a_warning():
    loaded = nested("    arguments: {limits: {mode: firm}}\n")
    assert loaded.plugin("gang").arguments["limits"]["mode"] == "soft"
    told = 'found the string "firm", but known are soft, hard; soft is used instead'
    assert told in [warning.message for warning in loaded.warnings]
