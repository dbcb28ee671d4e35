"""Which text of a ConfigMap is the configuration, for every choice of a few keys."""

from __future__ import annotations

import itertools

import pytest
import yaml

from pumice.framework.configuration import config_maps

USUAL = ("volcano-scheduler.conf", "kube-batch-conf.yaml", "scheduler.conf")  # the first that is there counts
KEYS = (*USUAL, "plugins", "actions", "other")
DATA = [dict.fromkeys(keys, "a: 1\n# it's: b\n") for count in range(4) for keys in itertools.combinations(KEYS, count)]


def chosen(data):
    """A flat map is the configuration as a whole, else a usual key is, else the only one."""
    if "plugins" in data:
        return ""
    usual = [key for key in USUAL if key in data]
    return usual[0] if usual else next(iter(data)) if len(data) == 1 else None


@pytest.mark.parametrize("data", DATA, ids=[",".join(data) for data in DATA])
def test_the_configuration_is_the_usual_key_else_the_only_one_else_the_whole(data):
    key = config_maps.choose(data)
    assert key == chosen(data)
    assert config_maps.is_usual(data) == ("plugins" in data or any(each in data for each in USUAL))
    assert {each: config_maps.choose(data, each) for each in KEYS} == {
        each: each if each in data else None for each in KEYS
    }
    if key is not None:
        text = config_maps.text(data, key)
        assert text == data[key] if key else list(yaml.safe_load(text).items()) == list(data.items())
    assert config_maps.listed(data) == (f"the keys {', '.join(sorted(data))}" if data else "no data")
