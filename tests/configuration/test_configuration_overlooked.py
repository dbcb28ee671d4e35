"""`compatibility: volcano` warns of arguments that Volcano ignores; everything else stays refused."""

from __future__ import annotations

import pytest
from configuration_catalog import CATALOG

from pumice.framework import configuration

HEAD = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
IGNORED = "is ignored, as Volcano does"


def binpack(arguments):
    return f"{HEAD}- plugins: [{{name: binpack, arguments: {{{arguments}}}}}]\n"


OVERLOOKED = {
    "unknown argument of a plugin": (
        binpack("binpack.wieght: 3"),
        f'plugin "binpack" has no argument "binpack.wieght"; did you mean "binpack.weight"? It {IGNORED}',
    ),
    "argument of the wrong type": (
        binpack('binpack.weight: "3"'),
        f'expected an integer, found the string "3"; write it without quotes (quoted numbers are read only under `compatibility: kube-batch`); it {IGNORED}',
    ),
    "unknown argument of an action": (
        f"{HEAD}configurations: [{{name: allocate, arguments: {{zzz: 1}}}}]\n",
        'action "allocate" has no argument "zzz"; known are ',
    ),
}


@pytest.mark.parametrize(("text", "told"), OVERLOOKED.values(), ids=OVERLOOKED.keys())
def test_argument_that_volcano_ignores_is_a_warning_and_has_its_default(text, told):
    with pytest.raises(configuration.ConfigurationError):
        configuration.load(text, CATALOG)
    loaded = configuration.load(text + "compatibility: volcano\n", CATALOG)
    (warning,) = loaded.warnings
    assert (warning.line, IGNORED in warning.message) == (4, True)
    assert warning.message.startswith(told)
    plain = configuration.load(binpack("") + "compatibility: volcano\n", CATALOG)
    if setting := loaded.plugin("binpack"):
        assert setting.arguments == plain.plugin("binpack").arguments


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD.replace("gang", "gnag"), 'unknown plugin "gnag"'),
        (HEAD.replace("enqueue", "enqeue"), 'unknown action "enqeue"'),
        (HEAD + "tier: []\n", 'unknown key "tier"'),
        (HEAD.replace("{name: gang}", "{name: gang, enableJobOrder: 3}"), "expected true or false"),
        (HEAD.replace("{name: gang}", "{name: gang, arguments: 3}"), "expected a map"),
        (
            HEAD.replace("{name: gang}", "{name: extender, arguments: {extender.managedResources: 3}}"),
            "expected a list, found the integer 3",
        ),
    ],
)
def test_everything_but_arguments_is_refused_all_the_same(text, told):
    with pytest.raises(configuration.ConfigurationError, match=told):
        configuration.load(text + "compatibility: volcano\n", CATALOG)
