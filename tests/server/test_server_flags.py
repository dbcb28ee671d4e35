"""The command line: Volcano's flags, written as Go programs take them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from pumice.cache.options import Options
from pumice.cli import go_flags, scheduler
from pumice.server.flags import addresses, flags, settings

DEFAULTS = {
    "scheduler-name": ("volcano",),
    "default-queue": "default",
    "priority-class": True,
    "kube-api-qps": 2000.0,
    "kube-api-burst": 2000,
    "minimum-feasible-nodes": 100,
    "minimum-percentage-nodes-to-find": 5,
    "percentage-nodes-to-find": 0,
    "csi-storage": True,
    "node-worker-threads": 20,
    "gate-removal-worker-num": 5,
    "resource-sync-timeout": 60_000_000,
    "disable-default-scheduler-config": False,
    "cache-dumper": True,
    "enable-metrics": False,
    "enable-healthz": False,
    "leader-elect": True,
    "leader-elect-lease-duration": 15_000_000,
    "leader-elect-renew-deadline": 10_000_000,
    "leader-elect-retry-period": 2_000_000,
    "leader-elect-resource-name": "volcano",
    "leader-elect-resource-namespace": "volcano-system",
    "leader-elect-resource-lock": "leases",
    "listen-address": "127.0.0.1:8080",
    "healthz-address": "127.0.0.1:11251",
    "scheduler-sharding-mode": "none",
    "scheduler-sharding-name": "volcano",
}


def parse(*words):
    """Give what a command line comes to."""
    found = {}

    def callback(**_):
        found.update(go_flags.given(click.get_current_context(), flags.FLAGS))

    command = go_flags.GoCommand("x", flags.FLAGS, callback=callback)
    result = CliRunner().invoke(command, list(words))
    return found if result.exit_code == 0 else result.output


def test_cycles_have_no_period_unless_one_is_given():
    assert settings.read({}).schedule_period is None
    assert settings.read({"schedule-period": 1_000_000}).schedule_period == 1_000_000


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items())
def test_defaults_are_those_of_the_peer(name, default):
    assert flags.BY_NAME[name].default == default


def test_every_setting_has_its_flag_and_every_flag_that_counts_is_a_setting():
    fields = {field for field in settings.Settings.__struct_fields__ if field not in ("shaping", "unheard")}
    counted = {flag.field for flag in flags.FLAGS if not flag.ignored and not flag.shapes and flag.name != "version"}
    assert fields == counted
    # Gates turn watches off, which is the process's business, and shape what is decided; the patience with reasons follows from the pace of cycles,
    # numbers are renewed, and reasons read, on every cluster that is not imagined, and no scheduler is to do without shortcuts.
    imagined = {"renews_numbers", "latest_reasons", "queue_statuses", "pod_reasons", "plain"}
    others = {"feature_gates", "reason_patience"} | imagined
    assert {flag.field for flag in flags.FLAGS if flag.shapes} | others == set(Options.__struct_fields__)


def test_defaults_of_flags_that_shape_decisions_are_those_of_the_options():
    assert Options.from_flags(settings.read({}).shaping) == Options()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {}),
        (["--leader-elect=false"], {"leader-elect": False}),
        (["--leader-elect"], {"leader-elect": True}),
        (["--leader-elect", "false"], {"leader-elect": True}),  # Go: a switch never takes the next word
        (["--enable-metrics=T", "--enable-healthz=0"], {"enable-metrics": True, "enable-healthz": False}),
        (["--schedule-period=500ms"], {"schedule-period": 500_000}),
        (["--schedule-period", "1m30s"], {"schedule-period": 90_000_000}),
        (["--scheduler-name=a", "--scheduler-name=b,c"], {"scheduler-name": ("a", "b", "c")}),
        (["--node-selector", "zone:a, zone:b"], {"node-selector": ("zone:a", "zone:b")}),
        (["-v", "3"], {"v": 3}),
        (["-v=3"], {"v": 3}),
        (["-v3"], {"v": 3}),
        (["--v=3"], {"v": 3}),
        (["--v", "3"], {"v": 3}),
        (["--logtostderr", "--skip_headers=true"], {"logtostderr": True, "skip-headers": True}),
        (["--kube_api_qps=1.5"], {"kube-api-qps": 1.5}),
        (["2>&1"], {}),
        (["--v=2", "2>&1"], {"v": 2}),
        (["--v=2", "--", "--nonsense"], {"v": 2}),
    ],
)
def test_flags_are_read_as_go_writes_them(words, found):
    assert parse(*words) == found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--leader-elekt"], "--leader-elect"),
        (["--leader-elect=maybe"], "'maybe' is neither true nor false"),
        (["--schedule-period=1"], "such as 30s, 5m"),
        (["--v=high"], "for -v: 'high' is no whole number"),
        (["--kube-api-qps=x"], "'x' is no number"),
    ],
)
def test_wrong_flags_are_fatal_and_say_what_was_meant(words, told):
    assert told in parse(*words)


def test_version_is_printed_without_starting_anything():
    result = CliRunner().invoke(scheduler.command, ["--version", "2>&1"])
    assert result.exit_code == 0
    assert result.output.startswith("pumice ")


def test_help_lists_every_flag_in_its_section():
    text = CliRunner().invoke(scheduler.command, ["--help"]).output
    for flag in flags.FLAGS:
        assert ("--" if len(flag.name) > 1 else "-") + flag.name in text
    assert "Accepted without effect" in text


# ---- values that belong together


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"scheduler-sharding-mode": "hard"}, "'hard' is not provided yet"),
        ({"leader-elect-resource-lock": "configmaps"}, "only leases"),
        ({"logging-format": "xml"}, "neither text nor json"),
        ({"schedule-period": -1}, "cannot be negative"),
        ({"kube-api-burst": 0}, "must be above 0"),
        ({"kube-api-qps": float("nan")}, "must be above 0"),
        ({"listen-address": "8080"}, "--listen-address: '8080' has no port"),
        ({"healthz-address": ":http"}, "--healthz-address: ':http': 'http' is no port"),
        ({"tls-cert-file": "x"}, "belong together"),
        ({"web-address": "8443"}, "--web-address: '8443' has no port"),
        ({"web-address": ":8443", "web-cert-file": "x"}, "--web-cert-file and --web-private-key-file belong together"),
        ({"web-client-ca": "x"}, "--web-client-ca: nothing is served without --web-address"),
        ({"web-hosts": ("x",)}, "--web-hosts: nothing is served without --web-address"),
        ({"leader-elect-renew-deadline": 15_000_000}, "(15s) must be above --leader-elect-renew-deadline (15s)"),
        ({"leader-elect-retry-period": 10_000_000}, "--leader-elect-renew-deadline (10s) must be above"),
        ({"disable-default-scheduler-config": True}, "name a configuration with --scheduler-conf"),
        ({"feature-gates": ("PriorityClass",)}, "is not of the form Name=true"),
    ],
)
def test_values_that_make_no_sense_are_refused_with_their_flag(given, told):
    with pytest.raises(settings.SettingsError) as caught:
        settings.read(given)
    assert told in str(caught.value)


def test_wrong_values_end_the_command_with_status_2():
    result = CliRunner().invoke(scheduler.command, ["--scheduler-sharding-mode=soft"])
    assert result.exit_code == 2
    assert "--node-selector" in result.output


def test_a_feature_gate_turns_priority_classes_off():
    read = settings.read({"feature-gates": ("PriorityClass=false", "SomethingOfKubernetes=true")})
    assert read.shaping["priority-class"] is False


def test_flags_without_effect_are_named():
    assert settings.read({"node-worker-threads": 3, "v": 1}).unheard == ("node-worker-threads",)


def test_the_older_name_of_the_lease_namespace_counts():
    assert settings.read({}).lease_namespace == "volcano-system"
    assert settings.read({"lock-object-namespace": "old"}).lease_namespace == "old"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:80", ("localhost", 80)),
    ],
)
def test_addresses(text, found):
    assert addresses.parse(text) == found
    assert str(addresses.parse(text)) == text


@pytest.mark.parametrize("text", ["", "8080", "::1:80", ":", ":70000", ":-1", ":٣"])
def test_bad_addresses(text):
    with pytest.raises(ValueError, match=r"port|brackets"):
        addresses.parse(text)
