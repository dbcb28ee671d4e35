"""The admission webhooks on a real API server and on that of `pumice up`: they refuse, complete, renew and step aside, and a cluster without them is as it was before."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json

import pytest
import yaml
from admission_rig import RELEASE, AdmissionServer, RunningAdmission, SchedulerBefore, UpAdmission, granted, wait_until
from charting import ROOT
from click.testing import CliRunner

from admission import admission_objects as objects
from pumice.admission import rules
from pumice.admission.surroundings import KnownObjects
from pumice.cli.program import program
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.watches import informers
from pumice.manifests import admission
from pumice.server.admission import certificates, following, injecting, settings
from pumice.server.logs import logs
from testbed.server import KubectlError

pytestmark = pytest.mark.kube


@pytest.fixture(scope="module", params=[AdmissionServer, UpAdmission], ids=["kube", "up"])
def rig(request, tmp_path_factory):
    rig = request.param(tmp_path_factory.mktemp("admission"))
    with rig.server:
        rig.install(ROOT / "deploy" / "crds")
        yield rig


@pytest.fixture(scope="module")
def webhooks(rig):
    """Webhooks that come after a scheduler, which cannot create its queues before."""
    with SchedulerBefore(rig) as scheduler:
        scheduler.until(lambda: "queues cannot be created yet" in scheduler.log)
        with RunningAdmission(rig) as running:
            scheduler.until(lambda: {"root", "default"} <= queues(rig) and accepts(rig, objects.job()))
            scheduler.end()
            yield running


def accepts(rig, manifest) -> bool:
    try:
        rig.server.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(manifest))
    except KubectlError:
        return False
    return True


def refusal(rig, *arguments, manifest=None) -> str:
    with pytest.raises(KubectlError) as caught:
        rig.server.kubectl(*arguments, input=json.dumps(manifest) if manifest else None)
    return str(caught.value)


def named(manifest, name, namespace=None):
    changed = objects.edited(manifest, ("metadata", "name"), name)
    return objects.edited(changed, ("metadata", "namespace"), namespace) if namespace else changed


def queues(rig) -> set[str]:
    return {each["metadata"]["name"] for each in rig.get("queues")["items"]}


def test_a_scheduler_that_came_first_has_its_queues_once_the_webhooks_answer(rig, webhooks):
    assert {"root", "default"} <= queues(rig)


BROKEN = [
    objects.job(minAvailable=9, plugins={"x": []}),
    objects.queue("broken", guarantee={"resource": {"cpu": 2}}),
    objects.pod_group(queue="nope"),
    objects.hyper_node({"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}),
    objects.cron_job(schedule="x"),
]


@pytest.mark.parametrize("manifest", BROKEN, ids=lambda each: each["kind"])
def test_what_breaks_a_rule_is_refused_with_its_fields(rig, webhooks, manifest):
    told = refusal(rig, "create", "-f", "-", manifest=manifest)

    for field, message in objects.refusals(manifest):
        assert f"{field}: {message}" in told


ODD = [
    (objects.job(policies=[{"action": "TerminateJob", "events": ["PodEvicted", "PodFailed", "PodEvicted"]}]), "spec.policies[0].events[2]: is PodEvicted"),
    (objects.job(plugins={"tensorflow": [], "svc": ["--enable-networking"]}), "spec.plugins.svc: --enable-networking is no flag of it"),
    (objects.edited(objects.job_flow(a=[], b=["a"]), ("spec", "flows", 2), {"name": "a"}), 'spec.flows[2].name: is "a"'),
    (objects.edited(objects.cron_job(), ("spec", "jobTemplate", "spec", "minAvailable"), 9), "spec.jobTemplate.spec.minAvailable: is 9"),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "told"), ODD, ids=[told.partition(":")[0] for _, told in ODD])
def test_what_volcano_admits_is_admitted_with_a_warning(rig, webhooks, manifest, told):
    assert accepts(rig, manifest)
    shown = refusal(rig, "create", "--dry-run=server", "--warnings-as-errors", "-f", "-", manifest=manifest)
    assert f"Warning: {told}" in shown


def test_what_is_left_out_is_filled_in_and_only_numbers_may_change(rig, webhooks):
    namespace = rig.server.new_namespace()
    given = named(objects.job(minAvailable=0, queue=""), "filled", namespace)
    rig.server.kubectl("create", "-f", "-", input=json.dumps(given))

    spec = rig.get("vcjob", "filled", "-n", namespace)["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["minAvailable"], spec["maxRetry"]) == (
        "default",
        "volcano",
        2,
        3,
    )
    patch = '{"spec": {"queue": "other"}}'
    told = refusal(rig, "patch", "vcjob", "filled", "-n", namespace, "--type=merge", "-p", patch)
    assert "spec.queue: may not change" in told
    rig.server.kubectl(
        "patch", "vcjob", "filled", "-n", namespace, "--type=merge", "-p", '{"spec": {"minAvailable": 1}}'
    )


def test_queues_follow_the_tree_that_is_there(rig, webhooks):
    rig.apply(objects.queue("above"))
    webhooks.until(lambda: accepts(rig, objects.queue("below", parent="above")))
    rig.apply(objects.queue("below", parent="above"))

    webhooks.until(lambda: not accepts(rig, objects.job(queue="above")))
    assert "delete these first" in refusal(rig, "delete", "queue", "above")
    assert "it may not be deleted" in refusal(rig, "delete", "queue", "default")
    rig.server.kubectl("delete", "queue", "below")


def test_a_group_goes_to_the_queue_of_its_namespace(rig, webhooks):
    namespace = rig.server.new_namespace()
    rig.apply(objects.queue("q1"))
    rig.server.kubectl("annotate", "namespace", namespace, "scheduling.volcano.sh/queue-name=q1")
    group = named(objects.pod_group(), "sent", namespace)

    def stored() -> str:
        made = rig.server.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(group))
        return json.loads(made)["spec"]["queue"]

    webhooks.until(lambda: stored() == "q1")


def test_nobody_is_asked_about_the_systems_namespace_and_its_own(rig, webhooks):
    for namespace in ("kube-system", RELEASE.namespace):
        assert accepts(rig, named(objects.job(minAvailable=9), "unjudged", namespace))


def test_a_configuration_that_is_written_over_gets_its_certificate_again(rig, webhooks):
    name = "pumice-admission-service-jobs-validate"
    rig.server.kubectl("replace", "-f", "-", input=json.dumps(configuration_of("/jobs/validate")))

    def believed() -> bool:
        return "caBundle" in rig.get("validatingwebhookconfiguration", name)["webhooks"][0]["clientConfig"]

    webhooks.until(believed)
    webhooks.until(lambda: accepts(rig, objects.job()))


def configuration_of(path):
    found = [each for each in admission.objects(RELEASE) if each["metadata"]["name"].endswith(path.replace("/", "-"))]
    return found[0]


def test_readiness_tells_what_was_looked_at(rig, webhooks):
    status, text = webhooks.ready()

    assert status == 200
    assert "[+]lists ok\n[+]certificate ok\n[+]end ok" in text
    assert "[!]" not in text


def test_installing_again_keeps_the_certificate_that_was_injected(rig, webhooks):
    options = ["--part=admission", "--without-crds", "--name=again", "--scheduler-name=again", "--namespace=default"]
    printed = CliRunner().invoke(program, ["install", "--print", "--failure-policy=Ignore", *options]).stdout
    name, ours = "again-admission-service-jobs-mutate", "pumice-admission-service-jobs-mutate"
    injected = rig.get("mutatingwebhookconfiguration", ours)["webhooks"][0]["clientConfig"]["caBundle"]
    rig.server.kubectl("apply", "--server-side", "-f", "-", input=printed)
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": injected}]
    rig.server.kubectl("patch", "mutatingwebhookconfiguration", name, "--type=json", "-p", json.dumps(patch))
    rig.server.kubectl("apply", "--server-side", "-f", "-", input=printed)

    found = rig.get("mutatingwebhookconfiguration", name)["webhooks"][0]
    assert (found["clientConfig"]["caBundle"], found["failurePolicy"]) == (injected, "Ignore")
    removed = CliRunner().invoke(
        program, ["uninstall", "--print", "--part=admission", "--name=again", "--namespace=default"]
    )
    rig.server.kubectl("delete", "--ignore-not-found", "-f", "-", input=removed.stdout)


def test_replicas_share_a_certificate_and_one_that_comes_later_is_believed_at_once(rig, webhooks):
    with RunningAdmission(rig) as second:
        webhooks.until(lambda: accepts(rig, objects.job()))
        assert "there is no certificate yet" not in second.log
        assert second.end() == 0
    # The address in the configurations is that of the last to come, for want of a Service.
    rig.server.kubectl("replace", "-f", "-", input=json.dumps(configuration_of("/jobs/validate")))
    for each in admission.objects(RELEASE):
        if each["kind"].endswith("WebhookConfiguration"):
            rig.server.kubectl("replace", "-f", "-", input=json.dumps(each))
    webhooks.until(lambda: accepts(rig, objects.job()))


def test_volcanos_own_webhooks_are_left_to_judge_while_they_are_there(rig, webhooks):
    theirs = {**configuration_of("/jobs/validate")}
    theirs["metadata"] = {"name": "volcano-admission-service-jobs-validate"}
    theirs["webhooks"] = [{**theirs["webhooks"][0], "failurePolicy": "Ignore"}]
    rig.apply(theirs)

    webhooks.until(lambda: accepts(rig, objects.job(plugins={"only-theirs": []})))
    rig.server.kubectl("delete", "validatingwebhookconfiguration", "volcano-admission-service-jobs-validate")
    webhooks.until(lambda: not accepts(rig, objects.job(plugins={"only-theirs": []})))


def test_volcanos_configurations_can_be_written_over_in_place(rig, webhooks):
    """As an upgrade does: Volcano's name and certificate are there, and afterwards there is still one webhook, ours."""
    printed = CliRunner().invoke(
        program,
        ["install", "--print", "--part=admission", "--without-crds", "--failure-policy=Ignore", "--name=volcano", "--replace-volcano", "--namespace=default"],
    ).stdout  # fmt: skip
    ours = next(
        each for each in yaml.safe_load_all(printed) if each["metadata"]["name"].endswith("hypernodes-validate")
    )
    injected = rig.get("mutatingwebhookconfiguration", "pumice-admission-service-jobs-mutate")["webhooks"][0]
    theirs = objects.edited(ours, ("webhooks", 0, "clientConfig", "caBundle"), injected["clientConfig"]["caBundle"])
    theirs = objects.edited(theirs, ("webhooks", 0, "timeoutSeconds"), 3)
    rig.server.kubectl("create", "--field-manager=helm", "-f", "-", input=json.dumps(theirs))

    rig.apply(ours)

    name = ours["metadata"]["name"]
    (webhook,) = rig.get("validatingwebhookconfiguration", name)["webhooks"]
    assert name == "volcano-admission-service-hypernodes-validate"
    assert (webhook["timeoutSeconds"], webhook["clientConfig"]["caBundle"]) == (
        10,
        injected["clientConfig"]["caBundle"],
    )
    rig.server.kubectl("delete", "validatingwebhookconfiguration", name)


async def listed(rig):
    """Follow what the process follows, as on a server that does not stream lists."""
    async with Client(connection.load(str(rig.kubeconfig))) as client:
        feed = following.Feed(KnownObjects(), injecting.Injector(client, settings.read({}), (), logs.Log()))
        watches = informers.Informers(client, following.specs(rules.RULES), feed, streaming=False)
        running = asyncio.create_task(watches.run())
        await watches.wait_synced()
        running.cancel()


def test_the_account_may_do_what_it_does_and_no_more(rig, webhooks):
    secret = rig.get("secret", RELEASE.admission_secret, "-n", RELEASE.namespace)
    old = base64.b64decode(secret["data"]["ca.crt"])
    ended = certificates.make(["elsewhere"], dt.datetime.now(dt.UTC), old)
    data = {"tls.crt": base64.b64encode(ended.certificate).decode(), "tls.key": base64.b64encode(ended.key).decode()}
    rig.server.kubectl(
        "patch",
        "secret",
        RELEASE.admission_secret,
        "-n",
        RELEASE.namespace,
        "--type=merge",
        "-p",
        json.dumps({"data": data}),
    )
    # A certificate that is for somebody else is replaced by whoever looks next.
    with RunningAdmission(rig) as second:
        assert "the certificate is replaced: it is not for" in webhooks.log + second.log
        second.until(lambda: accepts(rig, objects.job()))

    asyncio.run(listed(rig))
    assert rig.forbidden() == []
    assert {tuple(each) for each in rig.used()} == granted()


def test_a_cluster_without_webhooks_takes_jobs_again(rig, webhooks):
    """Last in this file: nobody is there to answer any more, so that everything is refused, until the webhooks go."""
    assert webhooks.end() == 0
    told = refusal(rig, "create", "-f", "-", manifest=named(objects.job(), "stuck"))
    assert "failed calling webhook" in told
    for policy in ("Ignore", "Fail"):
        patch = json.dumps([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": policy}])
        for kind, path in (("mutating", "jobs-mutate"), ("validating", "jobs-validate")):
            name = f"pumice-admission-service-{path}"
            rig.server.kubectl("patch", f"{kind}webhookconfiguration", name, "--type=json", "-p", patch)
        if policy == "Ignore":
            wait_until(lambda: accepts(rig, named(objects.job(minAvailable=9), "unjudged")))
    wait_until(lambda: not accepts(rig, named(objects.job(), "stuck")))
    removed = CliRunner().invoke(program, ["uninstall", "--print", "--part=admission"]).stdout
    assert removed.index("WebhookConfiguration") < removed.index("kind: Deployment")
    rig.server.kubectl("delete", "--ignore-not-found", "-f", "-", input=removed)

    wait_until(lambda: accepts(rig, named(objects.job(), "free")))
    assert not rig.get("mutatingwebhookconfigurations,validatingwebhookconfigurations")["items"]
