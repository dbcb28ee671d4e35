"""Flags of `pumice admission`, the file of resource groups, and the webhook configurations that are looked after."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import io
import json

import pytest
from click.testing import CliRunner

from pumice.admission import rules
from pumice.api import decoding
from pumice.cli import go_flags
from pumice.cli.admission import command
from pumice.cli.program import program
from pumice.kube import errors
from pumice.manifests import admission, release
from pumice.server.admission import certificates, flags, following, injecting, settings
from pumice.server.flags.settings import SettingsError
from pumice.server.logs.logs import Log


def read(*arguments):
    with command.make_context("admission", list(arguments)) as context:
        return settings.read(go_flags.given(context, flags.FLAGS))


def test_defaults_are_volcanos_apart_from_the_address():
    found = read()

    assert found.enabled_admission == rules.DEFAULT_PATHS
    assert (found.port, found.listen_address, found.graceful_shutdown_time) == (8443, "127.0.0.1", 30_000_000)
    assert (found.kube_api_qps, found.kube_api_burst, found.max_queue_depth) == (50.0, 100, 5)
    assert (found.enable_root_queue_protection, found.enable_queue_allocated_pods_check) == (True, False)
    assert found.secret == "volcano-admission-secret"  # noqa: S105  a name
    assert found.left_alone == {"kube-system", "volcano-system"}
    assert found.host_names[0] == "volcano-admission-service.volcano-system.svc"
    assert found.configuration(rules.BY_PATH["/jobs/mutate"]) == "volcano-admission-service-jobs-mutate"


def test_the_arguments_of_volcanos_own_deployment_are_understood():
    found = read(
        "--enabled-admission=/jobs/mutate,/jobs/validate",
        "--tls-cert-file=/admission.local.config/certificates/tls.crt",
        "--tls-private-key-file=/admission.local.config/certificates/tls.key",
        "--ca-cert-file=/admission.local.config/certificates/ca.crt",
        "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
        "--webhook-namespace=volcano-system",
        "--webhook-service-name=volcano-admission-service",
        "--enable-healthz=true",
        "--logtostderr",
        "--port=8443",
        "-v=4",
        "2>&1",
    )

    assert found.unheard == ("logtostderr",)
    assert (found.v, found.enable_healthz) == (4, True)


def test_what_the_rules_follow_comes_from_the_flags():
    given = read("--scheduler-name=a,b", "--max-queue-depth=3", "--strict", "--enable-root-queue-protection=false", "--enable-queue-allocated-pods-check", "--feature-gates=SchedulingGatesQueueAdmission=true,Other=false")  # fmt: skip
    found = given.rules_settings(("env",))

    assert (found.scheduler_names, found.most_depth, found.job_plugins) == (("a", "b"), 3, ("env",))
    assert found.strict
    assert not read().rules_settings(("env",)).strict
    assert (found.root_protected, found.allocated_pods_checked, found.gates_pods) == (False, True, True)


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("--enabled-admission=/job/mutate", "'/job/mutate' is not served; did you mean /jobs/mutate?"),
        ("--max-queue-depth=0", "at least 1"),
        ("--port=70000", "not within 0 to 65535"),
        ("--listen-address=127.0.0.1:8443", "the port is given with --port"),
        ("--healthz-address=x", "has no port"),
        ("--tls-cert-file=x", "belong together"),
        ("--webhook-url=http://x", "must begin with https://"),
        ("--feature-gates=x", "not of the form"),
        ("--logging-format=xml", "neither text nor json"),
        ("--kube-api-qps=0", "must be above 0"),
        ("--graceful-shutdown-time=-1s", "cannot be negative"),
    ],
)
def test_a_flag_that_makes_no_sense_is_refused_by_name(argument, told):
    with pytest.raises(SettingsError) as caught:
        read(argument)

    assert told in str(caught.value)
    assert (
        str(caught.value).startswith(argument.split("=", maxsplit=1)[0])
        or "belong together" in told
        or "qps" in argument
    )


def test_the_address_of_a_pod_may_be_an_ipv6_one():
    assert str(read("--listen-address=[fd00::7]").address) == "[fd00::7]:8443"
    assert read("--webhook-url=https://10.0.0.7:8443").host_names[-1] == "10.0.0.7"


def test_the_arguments_of_our_own_deployment_are_understood():
    given = [each.replace("$(POD_IP)", "fd00::7") for each in admission.arguments(release.Release())]

    found = read(*given)

    assert not found.unheard
    assert found.enabled_admission == rules.INSTALLED_PATHS
    assert found.secret == release.Release().admission_secret
    names = {admission.configuration_name(release.Release(), rule) for rule in rules.RULES}
    assert {found.configuration(rule) for rule in rules.RULES} == names


def test_help_names_every_path_and_needs_no_server():
    told = CliRunner().invoke(program, ["admission", "--help"]).output

    for path in rules.BY_PATH:
        assert path in told.replace("\n", "").replace(" ", "")


# ---- the file of resource groups


def test_a_change_of_the_file_is_followed_and_a_faulty_one_changes_nothing(tmp_path):
    path = tmp_path / "groups.yaml"
    path.write_text("resourceGroups:\n- resourceGroup: a\n")
    used, stream = [], io.StringIO()
    found = following.PodRules(str(path), used.append, Log(2, stream=stream))
    found.start()
    for text in ("resourceGroups:\n- resourceGroup: b\n", "resourceGroups: 3\n", "resourceGroups: 3\n", ""):
        path.write_text(text)
        asyncio.run(found.look())
    path.unlink()
    asyncio.run(found.look())

    assert [[each.group for each in rules_] for rules_ in used] == [["a"], ["b"], []]
    assert stream.getvalue().count("resource groups refused; the last good ones stay in force") == 2
    assert "cannot be read" in found.problem


# ---- webhook configurations


class Api:
    """Takes patches of webhook configurations, and refuses as often as told."""

    def __init__(self, refusing=0):
        self.patches = []
        self._refusing = refusing

    async def request(self, method, path, *, body, content_type):
        if self._refusing:
            self._refusing -= 1
            raise errors.ApiError(500, "InternalError", "try again")
        assert content_type == "application/json-patch+json"
        self.patches.append((path.rpartition("/")[2], body))
        return json.dumps({"webhooks": [{"name": "n", "clientConfig": body[-1]["value"]}]}).encode()


def injector(api, *arguments):
    return injecting.Injector(api, read(*arguments), rules.RULES, Log(stream=io.StringIO()))


def seen(found, name, client, event="MODIFIED"):
    manifest = {"metadata": {"name": name}, "webhooks": [{"name": "n", "clientConfig": client}]}
    kind = injecting.VALIDATING
    raw = json.dumps(manifest).encode()
    found.feed(kind, event, decoding.decode_json(kind, raw), raw)


NAME = "volcano-admission-service-jobs-validate"
SERVICE = {"service": {"name": "s", "namespace": "n", "path": "/jobs/validate"}}
BUNDLE = certificates.make(["x"], dt.datetime(2030, 1, 1, tzinfo=dt.UTC))
TRUSTED = base64.b64encode(BUNDLE.authorities).decode()


def test_a_configuration_gets_the_authorities_and_keeps_the_rest():
    api = Api()
    found = injector(api)
    seen(found, NAME, SERVICE)
    seen(found, "somebody-elses", SERVICE)
    assert not found.settled
    found.trust(BUNDLE)

    assert asyncio.run(found.mend())
    assert api.patches == [
        (
            NAME,
            [
                {"op": "test", "path": "/webhooks/0/name", "value": "n"},
                {"op": "replace", "path": "/webhooks/0/clientConfig", "value": {**SERVICE, "caBundle": TRUSTED}},
            ],
        )
    ]
    assert found.settled
    asyncio.run(found.mend())
    assert len(api.patches) == 1


def test_a_replica_that_is_behind_takes_no_authority_away():
    """Else the two would write over each other, and the newer certificate would be unknown in between. The first authority has ended since."""
    now = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    first = certificates.make(["x"], now)
    old = certificates.make(["x"], now + dt.timedelta(days=300), first.authorities)
    new = certificates.make(["x"], now + dt.timedelta(days=600), old.authorities)
    behind, ahead = Api(), Api()
    for api, bundle, present in ((behind, old, new), (ahead, new, old)):
        found = injector(api)
        found.trust(bundle)
        seen(found, NAME, {**SERVICE, "caBundle": base64.b64encode(present.authorities).decode()})
        assert asyncio.run(found.mend())
        assert found.settled

    assert behind.patches == []
    assert ahead.patches[0][1][1]["value"]["caBundle"] == base64.b64encode(new.authorities).decode()


def test_a_process_with_an_address_of_its_own_is_asked_there():
    api = Api()
    found = injector(api, "--webhook-url=https://10.0.0.7:8443/")
    found.trust(BUNDLE)
    seen(found, NAME, SERVICE)
    asyncio.run(found.mend())

    assert api.patches[0][1][1]["value"] == {"url": "https://10.0.0.7:8443/jobs/validate", "caBundle": TRUSTED}


def test_a_write_that_fails_is_tried_again():
    api = Api(refusing=1)
    found = injector(api)
    found.trust(BUNDLE)
    seen(found, NAME, SERVICE)

    assert not asyncio.run(found.mend())
    assert asyncio.run(found.mend())
    assert found.settled


def test_configurations_that_are_not_there_are_named():
    found = injector(Api())
    assert NAME in found.missing
    seen(found, NAME, SERVICE)
    assert NAME not in found.missing
    seen(found, NAME, SERVICE, "DELETED")
    assert NAME in found.missing


def test_paths_are_left_to_volcanos_webhooks_unless_these_are_ours():
    ours, theirs = injector(Api()), injector(Api(), "--webhook-service-name=pumice-admission-service")
    for each in (ours, theirs):
        seen(each, NAME, SERVICE)

    assert (ours.aside, theirs.aside) == ([], ["/jobs/validate"])
    seen(theirs, NAME, SERVICE, "DELETED")
    assert theirs.aside == []
