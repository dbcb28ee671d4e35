"""Files that are made from code, the command that prints them, and the image."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from charting import read_all
from click.testing import CliRunner

import pumice
from pumice.admission import rules
from pumice.api import documents, quantity
from pumice.cli import install
from pumice.cli.program import program
from pumice.kube import admission_permissions, controller_permissions, permissions, web_permissions
from pumice.manifests import component, installation, objects, release, resources, text, workload
from pumice.server import dump

ROOT = Path(__file__).parents[2]
CRDS = 10


def printed(*options):
    result = CliRunner().invoke(program, ["install", "--print", *options])
    assert result.exit_code == 0, result.output
    return read_all(result.output)


def refused(*options):
    result = CliRunner().invoke(program, ["install", *options])
    assert result.exit_code == 2, result.output
    return result.output


def named(manifests, kind, part="scheduler"):
    found = [each for each in manifests if each["kind"] == kind]
    return [each for each in found if each["metadata"].get("labels", {"app": part})["app"].endswith(part)]


# ---- files


def test_files_say_what_the_code_says():
    script = ROOT / "deploy" / "generate.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_chart_has_the_version_of_the_package():
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (pumice.__version__, pumice.__version__)


def test_the_image_is_what_the_deployment_expects():
    page = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {workload.USER}:{workload.USER}" in page
    assert 'ENTRYPOINT ["pumice", "scheduler"]' in page
    assert re.search(r"EXPOSE (.*)", page)[1].split() == [str(release.METRICS_PORT), str(release.HEALTH_PORT)]
    copied = {word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", page, re.MULTILINE) for word in line.split()}
    let_in = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    assert copied == let_in
    assert all((ROOT / name).exists() for name in copied)


def test_dumps_never_fill_the_temporary_folder_so_far_that_the_pod_is_evicted():
    volumes = workload.scheduler(component.scheduler(release.Release()))["spec"]["template"]["spec"]["volumes"]
    (folder,) = [volume["emptyDir"] for volume in volumes if "emptyDir" in volume]
    assert quantity.whole(folder["sizeLimit"]) >= 2 * dump.MOST_BYTES


def test_a_text_stays_a_text_for_kubectl():
    """YAML has several opinions on which words are no texts."""
    words = [
        "n",
        "y",
        "on",
        "no",
        "1e3",
        "0x1f",
        "017",
        "1_000",
        "null",
        "~",
        "",
        "12:30:45",
        "true",
        "1.5",
        "plain",
        "a: b",
    ]
    assert yaml.safe_load(text.dump(words)) == words
    assert documents.load_all(text.dump(words), "words")[0].data == words


# ---- permissions


@pytest.mark.parametrize(
    "permission",
    permissions.PERMISSIONS + controller_permissions.PERMISSIONS,
    ids=lambda each: f"{'-'.join(each.verbs)}-{each.resource}",
)
def test_every_permission_names_code_that_exists(permission):
    module, _, attribute = permission.code.partition(":")
    value = import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)


def test_no_rule_grants_more_than_the_table():
    for table in (permissions.PERMISSIONS, controller_permissions.PERMISSIONS):
        granted = granted_by(permissions.cluster_rules(table))
        assert granted == {use for each in table if each.place == "cluster" for use in each.uses}


def granted_by(rules):
    granted = set()
    for rule in rules:
        assert set(rule) == {"apiGroups", "resources", "verbs"}
        granted |= {(verb, rule["apiGroups"][0], resource) for verb in rule["verbs"] for resource in rule["resources"]}
    return granted


def test_lease_and_configuration_are_granted_by_name():
    for rule in (*permissions.lease_rules("mine"), *permissions.configuration_rules("mine")):
        assert rule["verbs"] == ["create"] or rule["resourceNames"] == ["mine"]


# ---- pumice install


def test_printing_comes_with_everything():
    manifests = printed()
    assert len(named(manifests, "CustomResourceDefinition")) == CRDS
    assert manifests[CRDS:] == installation.manifests(release.Release())


def test_a_namespace_is_printed_only_when_asked_for():
    assert not named(printed(), "Namespace")
    assert not named(printed("--roles-only"), "Namespace")
    created = printed("--create-namespace", "--without-crds")
    assert created[0] == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pumice-system"}}
    assert created[1:] == installation.manifests(release.Release())


def test_crds_can_be_printed_alone_and_left_out():
    assert {each["kind"] for each in printed("--crds-only")} == {"CustomResourceDefinition"}
    assert not named(printed("--without-crds"), "CustomResourceDefinition")
    assert {each["kind"] for each in printed("--roles-only")} == install.ACCESS
    groups = [each["spec"]["group"] for each in printed("--crds-only", "--kube-batch-crds")[CRDS:]]
    assert sorted(set(groups)) == ["scheduling.incubator.k8s.io", "scheduling.sigs.dev"]


def test_volcanos_names_take_the_place_of_its_scheduler():
    manifests = printed("--without-crds", "--without-config", "--name=volcano", "--replace-volcano")
    (deployment,), (controllers,) = named(manifests, "Deployment"), named(manifests, "Deployment", "controller")
    assert deployment["metadata"]["name"] == "volcano-scheduler"
    assert controllers["metadata"]["name"] == "volcano-controllers"
    assert controllers["spec"]["selector"] == {"matchLabels": {"app": "volcano-controller"}}
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "volcano-scheduler"
    assert named(manifests, "ClusterRoleBinding")[0]["metadata"]["name"] == "volcano-scheduler-role"
    assert deployment["metadata"]["namespace"] == "volcano-system"
    assert deployment["spec"]["selector"] == {"matchLabels": {"app": "volcano-scheduler"}}
    assert "--leader-elect-resource-name=volcano" in container["args"]
    assert not named(manifests, "ConfigMap")
    (volume,) = [each for each in deployment["spec"]["template"]["spec"]["volumes"] if "configMap" in each]
    assert volume["configMap"] == {"name": "volcano-scheduler-configmap"}


def test_two_installations_share_no_name_no_lease_and_no_selector():
    first, second = (
        printed("--without-crds", f"--name={name}", f"--scheduler-name={name}", "--namespace=shared")
        for name in ("one", "two")
    )
    identities = [{(each["kind"], each["metadata"]["name"]) for each in each_of} for each_of in (first, second)]
    assert not identities[0] & identities[1]
    for manifests, name in ((first, "one"), (second, "two")):
        (deployment,), (service,) = (named(manifests, kind) for kind in ("Deployment", "Service"))
        (role,) = (each for each in named(manifests, "Role") if each["metadata"]["namespace"] == "shared")
        selector = {"app": f"{name}-scheduler"}
        assert deployment["spec"]["selector"] == {"matchLabels": selector}
        assert service["spec"]["selector"] == selector
        assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
        assert role["rules"][0]["resourceNames"] == [name]
        args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert {f"--leader-elect-resource-name={name}", f"--scheduler-name={name}"} <= set(args)


def test_the_configmap_of_cards_may_be_read_under_its_usual_name_and_nothing_beside_it():
    manifests = printed("--without-crds", "--part=scheduler")
    roles = [each for each in manifests if each["metadata"].get("namespace") == "kube-system"]
    role, binding = roles
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    assert role["rules"] == [{**rule, "resourceNames": ["volcano-vgpu-device-config"]}]
    assert (binding["roleRef"]["name"], binding["subjects"][0]["kind"]) == (role["metadata"]["name"], "ServiceAccount")


@pytest.mark.parametrize(
    ("options", "lease"),
    [([], "pumice"), (["--replace-volcano"], "volcano"), (["--replace-volcano", "--lease=mine"], "mine")],
)
def test_volcanos_lease_is_taken_by_choice_only(options, lease):
    found = [
        each["spec"]["template"]["spec"]["containers"][0]["args"]
        for part in ("scheduler", "controller")
        for each in named(printed(*options), "Deployment", part)
    ]
    leases = [
        arg.partition("=")[2] for args in found for arg in args if arg.startswith("--leader-elect-resource-name=")
    ]
    assert leases == [lease, "vc-controller-manager" if options else "pumice-controllers"]


def test_single_puts_controllers_in_the_schedulers_process_with_one_account_that_may_do_both():
    manifests = printed("--without-crds", "--single")
    (deployment,), (role, *for_people) = named(manifests, "Deployment"), named(manifests, "ClusterRole")
    assert [each["metadata"]["name"] for each in for_people] == [
        "pumice-vcjob-editor-role",
        "pumice-vcjob-viewer-role",
        "pumice-vcjob-explainer-role",
    ]
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--controllers=*", "--controllers-lease-name=pumice-controllers"} <= set(args)
    wanted = (*permissions.PERMISSIONS, *controller_permissions.PERMISSIONS)
    assert granted_by(role["rules"]) == {use for each in wanted if each.place == "cluster" for use in each.uses}
    names = [rule["resourceNames"] for rule in named(manifests, "Role")[0]["rules"] if "resourceNames" in rule]
    assert names == [["pumice"], ["pumice-controllers"]]


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        ((), ["pumice-vcjob-editor-role", "pumice-vcjob-viewer-role", "pumice-vcjob-explainer-role"]),
        (
            ("--replace-volcano", "--name", "volcano"),
            ["vcjob-editor-role", "vcjob-viewer-role", "vcjob-explainer-role"],
        ),
        (("--name", "team-a", "--scheduler-name", "team-a"), []),
        (("--without-controllers",), []),
    ],
)
def test_people_get_the_roles_that_volcano_has_for_them_under_its_names_in_its_place(options, roles):
    found = [each["metadata"]["name"] for each in printed("--without-crds", *options) if each["kind"] == "ClusterRole"]
    assert [name for name in found if "vcjob" in name] == roles
    bound = [each["roleRef"]["name"] for each in printed(*options) if each["kind"] == "ClusterRoleBinding"]
    assert not set(roles).intersection(bound)


def test_the_scheduler_alone_is_installed_where_controllers_are_kept():
    manifests = printed("--without-crds", "--without-controllers")
    assert manifests == installation.manifests(release.Release(controllers="none"))
    assert not [each for each in manifests if "controller" in each["metadata"]["name"]]
    assert printed("--without-crds", "--part=scheduler") == objects.scheduler(release.Release(controllers="none"))
    assert "contradict" in refused("--print", "--single", "--without-controllers")


def test_the_page_is_printed_when_asked_for_with_what_it_needs_and_no_more():
    assert not [each for each in printed() if each["metadata"]["name"].endswith("-web")]
    given = (
        "--web-host=a.example.com",
        "--web-host=b.example.com",
        "--web-tls-secret=page-tls",
        "--web-client-ca=people",
    )
    page = release.Page(hosts=("a.example.com", "b.example.com"), tls_secret="page-tls", client_ca="people")  # noqa: S106  a name
    assert printed("--without-crds", "--web", *given) == installation.manifests(release.Release(page=page))
    whole = printed("--without-crds", "--web", "--part=scheduler")
    added = [each for each in whole if each not in printed("--without-crds", "--part=scheduler")]
    assert [each["kind"] for each in added] == ["Deployment", "Service", "ClusterRole", "ClusterRoleBinding"]
    assert granted_by(added[2]["rules"]) == {use for each in web_permissions.PERMISSIONS for use in each.uses}
    roles = [identity(each) for each in printed("--roles-only", "--web") if each["metadata"]["name"].endswith("-web")]
    assert roles == [("ClusterRole", "pumice-scheduler-web"), ("ClusterRoleBinding", "pumice-scheduler-web")]


def test_a_configuration_is_checked_before_it_is_printed(tmp_path):
    good, bad = tmp_path / "good.conf", tmp_path / "bad.conf"
    good.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n', encoding="utf-8")
    bad.write_text('actions: "alocate"\n', encoding="utf-8")
    (config_map,) = named(printed("--config", str(good)), "ConfigMap")
    assert config_map["data"] == {"volcano-scheduler.conf": good.read_text(encoding="utf-8")}
    assert "is not valid, 1 problem; see pumice config check" in refused("--print", "--config", str(bad))
    assert "cannot be read" in refused("--print", "--config", str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "nothing is installed by this command itself"),
        (["--print", "--crds-only", "--without-crds"], "--without-crds and --roles-only contradict"),
        (["--print", "--name", "Pumice"], "'Pumice' is no name"),
        (["--print", "--namespace", "a" * 64], "at most 63"),
        (["--print", "--replicas", "-1"], "--replicas"),
        (["--print", "--name", "volcano"], "take its place with --replace-volcano, or choose another name"),
        (["--print", "--name", "team-a"], "add --scheduler-name, such as --scheduler-name team-a"),
        (["--print", "--web-host", "x.example.com"], "--web-host: the page is not served; add --web"),
        (["--print", "--web-tls-secret", "x"], "--web-tls-secret: the page is not served; add --web"),
        (["--print", "--web-client-ca", "x"], "--web-client-ca: the page is not served; add --web"),
        (["--print", "--web", "--part", "controllers"], "the scheduler serves the page; add --part scheduler"),
    ],
)
def test_what_makes_no_sense_is_refused(options, told):
    assert told in " ".join(refused(*options).split())


# ---- pumice uninstall


def uninstalled(*options):
    result = CliRunner().invoke(program, ["uninstall", "--print", *options])
    assert result.exit_code == 0, result.output
    return [(each["kind"], each["metadata"]["name"]) for each in read_all(result.stdout)], result.stderr


def identity(manifest):
    return manifest["kind"], manifest["metadata"]["name"]


def test_uninstalling_names_exactly_what_was_installed_last_first_and_says_what_it_leaves():
    removed, left = uninstalled()
    # No webhook may stay, whichever were asked for; nor the page, if it was.
    every = release.Release(admission_paths=tuple(rules.BY_PATH), page=release.Page())
    assert removed == [identity(each) for each in reversed(installation.manifests(every))]
    for told in ("Namespace pumice-system", "--namespace-too", "custom resource definitions", "--crds", "Lease"):
        assert told in left


def test_namespace_and_definitions_go_only_when_asked_for_and_the_namespace_last():
    removed, left = uninstalled("--crds", "--kube-batch-crds", "--namespace-too")
    definitions = [name for kind, name in removed if kind == "CustomResourceDefinition"]
    assert definitions == [each.name for each in (*resources.CURRENT, *resources.KUBE_BATCH)]
    assert removed[-1] == ("Namespace", "pumice-system")
    assert left == "left: pods: those that run go on running, those that wait, wait\n"


def test_what_was_volcanos_before_is_left_to_volcano():
    removed, left = uninstalled("--name=volcano", "--replace-volcano", "--part=scheduler", "--part=controllers")
    roles = ["Role", "RoleBinding"]
    page = [(kind, "volcano-scheduler-web") for kind in ("ClusterRoleBinding", "ClusterRole", "Service")]
    assert [each for each in removed if each[1].endswith("-web")] == page  # Volcano has none
    others = [kind for kind, name in removed if (kind, name) not in page]
    assert sorted(others) == sorted([*2 * ["FlowSchema", "FlowSchema", *roles], *roles])
    for kind in ("Deployment volcano-scheduler", "ClusterRole volcano-scheduler", "Namespace volcano-system"):
        assert f"left: {kind}" in left


def test_webhooks_go_before_whoever_answers_them_also_in_place_of_volcanos():
    for options in ([], ["--name=volcano", "--replace-volcano"]):
        removed, left = uninstalled(*options)
        webhooks = [kind.endswith("WebhookConfiguration") for kind, _ in removed]
        assert webhooks == sorted(webhooks, reverse=True)
        assert sum(webhooks) == len(rules.RULES)
        assert "-admission-secret, the certificate of the webhooks" in left


def test_the_parts_can_be_printed_apart():
    everything, scheduler, controllers, admission = (
        printed("--without-crds", *(f"--part={part}" for part in parts))
        for parts in ([], ["scheduler"], ["controllers"], ["admission"])
    )
    assert scheduler + controllers + admission == everything
    assert not [each for each in scheduler if "admission" in each["metadata"]["name"]]


@pytest.mark.parametrize(("options", "told"), [(["--enabled-admissions=/x"], "'/x' is not served"), (["--failure-policy=Open"], "--failure-policy")])  # fmt: skip
def test_webhooks_that_make_no_sense_are_refused(options, told):
    assert told in refused("--print", *options)


def test_webhooks_never_judge_the_systems_namespace_and_their_own():
    webhooks = [each["webhooks"][0] for each in printed("--namespace=mine") if "webhooks" in each]
    assert len(webhooks) == len(rules.INSTALLED_PATHS)
    for each in webhooks:
        (expression,) = each["namespaceSelector"]["matchExpressions"]
        assert (expression["operator"], expression["values"]) == ("NotIn", ["mine", "kube-system"])
        assert (each["failurePolicy"], each["timeoutSeconds"], each["sideEffects"]) == ("Fail", 10, "NoneOnDryRun")


def test_every_permission_of_the_webhooks_names_code_that_exists():
    for each in (*admission_permissions.PERMISSIONS, admission_permissions.NAMESPACES):
        module, _, attribute = each.code.partition(":")
        value = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)


def test_a_configuration_that_was_not_installed_is_not_deleted():
    removed, left = uninstalled("--without-config")
    assert "ConfigMap" not in dict(removed)
    assert "left: ConfigMap pumice-scheduler-configmap" in left


def test_nothing_is_deleted_by_the_command_itself():
    result = CliRunner().invoke(program, ["uninstall"])
    assert result.exit_code == 2
    assert "nothing is deleted by this command itself" in result.output


def test_help_needs_no_schemas():
    assert "--without-crds" in CliRunner().invoke(install.command, ["--help"]).output
