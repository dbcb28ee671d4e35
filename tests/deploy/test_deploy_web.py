"""The page in the chart: nothing of it unless it is asked for, then a Service, flags that the scheduler understands, and the few rights it needs."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from types import SimpleNamespace

import aiohttp
import pytest
import yaml
from audited import AuditedServer, Use, granted
from charting import CHART, ROOT
from test_deploy_chart import arguments, one, read_flags

from pumice.kube import permissions, web_permissions
from pumice.manifests import text, user_roles
from pumice.web.access import Access
from pumice.web.reviews import Person
from server.server_process import Process, wait_for
from testbed import waiting

ON = {"custom": {"scheduler_web_enable": True}}
GIVEN = {
    "custom": {
        "scheduler_web_enable": True,
        "scheduler_web_hosts": ["pumice.example.com"],
        "scheduler_web_tls_secret": "page-tls",
        "scheduler_web_client_ca": "people",
        "leader_elect_enable": False,
    }
}


def of_page(manifests):
    return [each for each in manifests if each["metadata"]["name"].endswith("-web")]


def test_nothing_of_the_page_is_there_unless_it_is_asked_for(helm):
    manifests = helm.template()
    assert of_page(manifests) == []
    assert read_flags(arguments(manifests)).web_address == ""
    granted = json.dumps([each for each in manifests if each["kind"] == "ClusterRole"])
    assert "tokenreviews" not in granted
    assert "subjectaccessreviews" not in granted


def test_page_comes_with_a_service_and_the_rights_to_review_alone(helm):
    manifests = helm.template(values=ON)
    found = {each["kind"]: each for each in of_page(manifests)}
    assert sorted(found) == ["ClusterRole", "ClusterRoleBinding", "Service"]
    service, role, binding = found["Service"], found["ClusterRole"], found["ClusterRoleBinding"]
    assert role["rules"] == permissions.cluster_rules(web_permissions.PERMISSIONS)
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "pumice-scheduler", "namespace": "pumice-system"}]
    (port,) = service["spec"]["ports"]
    container = one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert port["targetPort"] in [each["containerPort"] for each in container["ports"]]
    assert service["spec"]["sessionAffinity"] == "ClientIP"
    read = read_flags(arguments(manifests))
    assert read.web_address == "[fd00::7]:8443"
    assert read.web_hosts == ("pumice-scheduler-web.pumice-system", "pumice-scheduler-web.pumice-system.svc")
    assert not read.unheard
    assert not [each for each in manifests if each["kind"] == "Secret"]


def test_certificate_authority_and_names_reach_the_flags_from_where_they_are_mounted(helm):
    manifests = helm.template(values=GIVEN)
    read = read_flags(arguments(manifests))
    assert read.web_hosts[-1] == "pumice.example.com"
    assert read.lease_namespace == "pumice-system"  # whose ConfigMaps tell who may see the policy
    pod = one(manifests, "Deployment")["spec"]["template"]["spec"]
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert read.web_cert_file == f"{mounts['web']}/tls.crt"
    assert read.web_private_key_file == f"{mounts['web']}/tls.key"
    assert read.web_client_ca == f"{mounts['web-clients']}/ca.crt"
    assert volumes["web"]["secret"]["secretName"] == "page-tls"
    assert volumes["web-clients"]["configMap"]["name"] == "people"


@pytest.mark.parametrize("name", ["scheduler_web_hosts", "scheduler_web_tls_secret", "scheduler_web_client_ca"])
def test_what_belongs_to_a_page_that_is_not_served_is_refused(helm, name):
    given = {"custom": {name: GIVEN["custom"][name]}}
    assert f"custom.{name}: the page is not served; set custom.scheduler_web_enable" in helm.refusal(values=given)


def test_page_of_a_release_is_gone_with_it(helm, api_server):
    kubeconfig = api_server.kubeconfig
    said = helm.install(kubeconfig, values={"custom": {**ON["custom"], "admission_enable": False}})
    try:
        assert "port-forward service/pumice-scheduler-web 8443:443" in said
        assert "pumice-scheduler-web" in api_server.kubectl("get", "services", "-n", "pumice-system")
    finally:
        gone = helm.run("uninstall", "pumice", "--namespace=pumice-system", kubeconfig=kubeconfig)
    assert gone.returncode == 0, gone.stderr
    for kind in ("services", "secrets", "clusterroles", "clusterrolebindings"):
        assert "-web" not in api_server.kubectl("get", kind, "-A")


class Asked(list):
    """Reviews that allow everything, and what they were asked."""

    async def may(self, _person, question):
        self.append(question)
        return True


def test_role_of_who_has_jobs_explained_shows_the_whole_page():
    asked = Asked()
    access = Access(asked, lambda _kind: (), ("pumice-system", "pumice-scheduler-configmap"))
    access.sight(Person("somebody"))
    assert asyncio.run(access.turn())
    rules = user_roles.rules()["vcjob-explainer-role"]
    for question in asked:
        verb = "get" if question.name else "list"
        assert any(
            question.group in rule["apiGroups"]
            and question.resource in rule["resources"]
            and verb in rule["verbs"]
            and question.name in rule.get("resourceNames", [question.name])
            for rule in rules
        ), question


def test_ingress_of_the_documentation_leads_to_the_service(helm):
    page = (CHART.parents[1] / "docs" / "web.md").read_text(encoding="utf-8")
    (ingress,) = [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    (rule,) = ingress["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    manifests = helm.template(values={"custom": {**ON["custom"], "scheduler_web_hosts": [rule["host"]]}})
    (service,) = [each for each in of_page(manifests) if each["kind"] == "Service"]
    assert service["metadata"] | {"labels": {}} == {"name": backend["name"], "namespace": ingress["metadata"]["namespace"], "labels": {}}  # fmt: skip
    assert [each["name"] for each in service["spec"]["ports"]] == [backend["port"]["name"]]
    assert rule["host"] in read_flags(arguments(manifests)).web_hosts


def test_rights_of_the_chart_are_what_the_page_needs_and_all_of_it(helm, tmp_path):
    audited = AuditedServer(tmp_path)
    with audited.server as api:
        audited.install(ROOT / "deploy" / "crds")
        roles = [each for each in of_page(helm.template(values=ON)) if each["kind"] != "Service"]
        api.kubectl("apply", "-f", "-", input=text.stream(roles))
        api.kubectl("create", "serviceaccount", "ann", "-n", "pumice-system")
        token = api.kubectl("create", "token", "ann", "-n", "pumice-system").strip()
        flags = ("--leader-elect=false", "--web-address=127.0.0.1:0")
        with Process(SimpleNamespace(kubeconfig=audited.kubeconfig), *flags) as scheduler:
            scheduler.deciding()
            wait_for(lambda: "what=page" in scheduler.log, scheduler)
            (where,) = re.findall(r"what=page address=(\S+)", scheduler.log)
            user = asyncio.run(signed_in(f"https://{where}", token))
            # A list that is streamed is a watch; servers that offer none are listed.
            wanted = granted(web_permissions.PERMISSIONS) - {Use("list", "", "events")}
            waiting.until(lambda: wanted <= audited.used(), lambda: wanted - audited.used())
    assert user == "system:serviceaccount:pumice-system:ann"
    assert audited.forbidden() == []


async def signed_in(where, token):
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
        session.post(f"{where}/api/session", json={"token": token}) as response,
    ):
        return (await response.json())["user"]
