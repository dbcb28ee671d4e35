"""Flags of `pumice controllers`: which controllers run, what is refused, what has no effect."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pumice.cli.controllers import command
from pumice.server.flags import chosen_controllers, controller_flags, controller_settings, process_settings, settings

NAMES = ("job-controller", "queue-controller", "gc-controller", "pg-controller", "hyperNode-controller")


def chosen(text):
    return chosen_controllers.chosen(text.split(","), NAMES)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("*", NAMES),
        ("*,-sharding-controller", NAMES),
        ("+job-controller", ("job-controller",)),
        ("job-controller,pg-controller", ("job-controller", "pg-controller")),
        ("*,-gc-controller", tuple(name for name in NAMES if name != "gc-controller")),
        ("-gc-controller", ()),
        ("*,-colocation-config-controller,+hyperNode-controller", NAMES),
    ],
)
def test_controllers_are_chosen_as_volcanos_controller_manager_chooses_them(text, runs):
    assert chosen(text) == runs


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-gc-controller,+gc-controller", "'gc-controller' is named twice"),
        ("*,job-controller,+job-controller", "named twice"),
        ("sharding-controller", "node shards are not supported"),
        ("*,+colocation-config-controller", "colocation is not supported"),
        ("*,-hypernode-controller", "there is no 'hypernode-controller'"),
        ("a,b", "there is no 'a'"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused_by_name(text, words):
    with pytest.raises(process_settings.SettingsError, match=words):
        chosen(text)


@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("", "+", "-"))), st.booleans())
def test_a_name_runs_if_it_is_asked_for_or_all_are_and_it_is_not_taken_out(words, everything):
    given_words = [sign + name for name, sign in words.items()] + ["*"] * everything
    runs = chosen_controllers.chosen(given_words, NAMES)
    assert runs == tuple(name for name in NAMES if (words[name] != "-" if name in words else everything))


def test_the_defaults_are_volcanos_but_for_servers_and_requests_per_second():
    defaults = {flag.name: flag.default for flag in controller_flags.FLAGS}
    assert defaults["leader-elect-resource-name"] == "vc-controller-manager"
    assert (defaults["max-requeue-num"], defaults["inherit-owner-annotations"]) == (15, True)
    assert defaults["controllers"] == ("*", "-sharding-controller")
    assert defaults["listen-address"] == "127.0.0.1:8081"
    assert [name for name in defaults if list(defaults).count(name) > 1] == []


def test_flags_of_volcanos_manifest_are_accepted_and_those_without_effect_are_named():
    read = controller_settings.read({"worker-threads-for-gc": 2, "sharding-configmap": "x", "worker-threads": 3})
    assert read.unheard == ("worker-threads-for-gc", "sharding-configmap")
    assert read.work.workers == 3


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"worker-threads": 0}, "--worker-threads"),
        ({"controllers": ("-pg-controller",)}, "none is left to run"),
        ({"kube-api-qps": 0.0}, "--kube-api-qps"),
        ({"leader-elect-lease-duration": 1_000_000}, "--leader-elect-lease-duration"),
        ({"feature-gates": ("A",)}, "--feature-gates"),
    ],
)
def test_values_that_cannot_work_are_refused_with_the_flag_named(flags, words):
    with pytest.raises(process_settings.SettingsError, match=words):
        controller_settings.read(flags)


def test_a_wrong_list_ends_the_command_with_the_reason():
    done = CliRunner().invoke(command, ["--controllers=-pg-controller,+pg-controller"])
    assert done.exit_code == 2
    assert "named twice" in done.output


@pytest.mark.parametrize(
    ("given_value", "companions"), [("", None), ("*", True), ("*,-pg-controller,-sharding-controller", False)]
)
def test_the_scheduler_runs_controllers_beside_itself_only_if_told_to(given_value, companions):
    read = settings.read({"controllers": given_value, "scheduler-name": ("a", "b")})
    work = controller_settings.beside_scheduler(read)
    assert (work and work.companions) == companions
    assert work is None or work.scheduler_names == ("a", "b")
