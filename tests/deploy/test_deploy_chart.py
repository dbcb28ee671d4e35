"""The chart: what helm makes of it, and what it refuses."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from charting import CHART, read_all
from click.testing import CliRunner

from pumice.cli import admission, controllers, go_flags, scheduler
from pumice.cli.program import program
from pumice.controllers.volcano import registry
from pumice.manifests import installation, release, resources
from pumice.server.admission import flags as admission_flags
from pumice.server.admission import settings as admission_settings
from pumice.server.flags import controller_flags, controller_settings, flags, settings

VOLCANO = {
    "basic": {
        "controller_image_name": "volcanosh/vc-controller-manager",
        "admission_port": 8443,
        "image_tag_version": "v1",
    },
    "custom": {
        "admission_enable": True,
        "controller_replicas": 1,
        "controller_kube_api_qps": 50,
        "controller_worker_threads_for_gc": 1,
        "enabled_admissions": "/jobs/mutate",
        "metrics_enable": False,
        "leader_elect_enable": False,
        "scheduler_node_worker_threads": 20,
        "scheduler_schedule_period": "1s",
        "scheduler_kube_api_qps": 2000,
        "scheduler_kube_api_burst": 2000,
        "scheduler_pprof_enable": False,
        "scheduler_sharding_mode": "none",
        "scheduler_log_level": 3,
    },
    "service": {"ipFamilyPolicy": "", "ipFamilies": []},
}


def key(manifest):
    metadata = manifest["metadata"]
    return (manifest["kind"], metadata.get("namespace", ""), metadata["name"])


def one(manifests, kind, part="scheduler"):
    (found,) = [each for each in manifests if each["kind"] == kind and of(each, part)]
    return found


def of(manifest, part):
    return manifest["metadata"].get("labels", {}).get("app", "").endswith(f"-{part}")


def arguments(manifests, part="scheduler"):
    return one(manifests, "Deployment", part)["spec"]["template"]["spec"]["containers"][0]["args"]


def read_flags(args):
    """Return the settings that the scheduler would start with."""
    placed = [argument.replace("$(POD_IP)", "fd00::7") for argument in args]
    with scheduler.command.make_context("scheduler", placed) as context:
        return settings.read(go_flags.given(context, flags.FLAGS))


def test_helm_finds_nothing_wrong(helm):
    done = helm.run("lint", "--strict", str(CHART), "--kube-version=1.36.0")
    assert done.returncode == 0, done.stdout


def test_a_packaged_chart_is_complete(helm, tmp_path):
    done = helm.run("package", str(CHART), f"--destination={tmp_path}")
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob("*.tgz")
    assert helm.template("--include-crds", chart=package) == helm.template("--include-crds")


def test_the_chart_and_pumice_install_agree_object_by_object(helm):
    charted = {key(each): each for each in helm.template("--include-crds")}
    printed = CliRunner().invoke(program, ["install", "--print"])
    own = {key(each): each for each in read_all(printed.output)}
    assert charted.keys() == own.keys()
    for name, manifest in own.items():
        assert charted[name] == manifest, name


def test_every_option_of_pumice_install_has_its_value(helm):
    values = {
        "basic": {"image_registry": "r.example/", "image_tag_version": "7", "image_pull_policy": "Always"},
        "custom": {
            "scheduler_replicas": 3,
            "controller_replicas": 3,
            "scheduler_name": ["volcano", "kube-batch"],
            "leader_elect_resource_name": "other",
            "scheduler_config_override": 'actions: "allocate"\ntiers: []\n',
            "admission_replicas": 2,
            "enabled_admissions": "/jobs/validate,/podgroups/mutate,/pods/mutate",
            "webhooks_failure_policy": "Ignore",
            "scheduler_web_enable": True,
            "scheduler_web_hosts": ["pumice.example.com", "other.example.com"],
            "scheduler_web_tls_secret": "page-tls",
            "scheduler_web_client_ca": "people",
        },
    }
    page = release.Page(
        hosts=("pumice.example.com", "other.example.com"),
        tls_secret="page-tls",  # noqa: S106  a name
        client_ca="people",
    )
    chosen = release.Release(
        image="r.example/pumice:7",
        pull_policy="Always",
        replicas=3,
        scheduler_names=("volcano", "kube-batch"),
        lease="other",
        configuration='actions: "allocate"\ntiers: []\n',
        admission_replicas=2,
        admission_paths=("/jobs/validate", "/podgroups/mutate", "/pods/mutate"),
        failure_policy="Ignore",
        page=page,
    )
    own = {key(each): each for each in installation.manifests(chosen)}
    assert {key(each): each for each in helm.template(values=values)} == own


@pytest.mark.parametrize(
    ("named", "custom"),
    [
        (release.Release(name="team-a", scheduler_names=("team-a",), controllers="none"), {"scheduler_name": "team-a"}),
        (release.Release(replace_volcano=True), {"scheduler_replace_volcano": True}),
        (release.Release(name="volcano", replace_volcano=True), {"scheduler_replace_volcano": True}),
        (release.Release(controllers="single"), {"controller_single": True}),
        (
            release.Release(controllers="single", replace_volcano=True),
            {"controller_single": True, "scheduler_replace_volcano": True},
        ),
        (release.Release(controllers="none"), {"controller_enable": False}),
        (
            release.Release(controllers="single", page=release.Page()),
            {"controller_single": True, "scheduler_web_enable": True},
        ),
        (
            release.Release(name="b", scheduler_names=("b",)),
            {"controller_enable": True, "scheduler_name": "b"},
        ),
    ],
    ids=[
        "a second one",
        "Volcano's lease",
        "in place of Volcano's",
        "single",
        "single for Volcano's",
        "none",
        "with the page",
        "two",
    ],
)
def test_names_lease_and_selectors_follow_the_name_of_the_release(helm, named, custom):
    own = {key(each): each for each in installation.manifests(named)}
    assert {key(each): each for each in helm.template(values={"custom": custom}, release=named.name)} == own


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("team-a", "without a name of its own release team-a would serve the same pods as others do"),
        ("volcano", "take its place with custom.scheduler_replace_volcano"),
    ],
)
def test_a_release_that_would_serve_the_pods_of_another_is_refused(helm, name, told):
    assert told in helm.refusal(release=name)


UNUSUAL = {
    "volcano's own": VOLCANO,
    "everything on": {
        "custom": {
            "scheduler_pdb_enable": True,
            "scheduler_node_selector": ["pool:batch", "pool:gpu"],
            "scheduler_percentage_nodes_to_find": 0,
            "scheduler_plugins_dir": "/plugins",
            "scheduler_feature_gates": "PriorityClass=true,CSIStorage=false",
            "scheduler_extra_args": ["--logging-format=json", "--default-queue=batch"],
            "scheduler_config_source": "configmap",
        }
    },
    "everything off": {
        "custom": {
            "leader_elect_enable": False,
            "scheduler_metrics_enable": False,
            "scheduler_flow_schema_enable": False,
            "scheduler_resources": None,
            "default_sc": None,
            "default_csc": None,
        }
    },
}


@pytest.mark.parametrize("values", UNUSUAL.values(), ids=UNUSUAL)
def test_the_scheduler_understands_its_arguments_and_its_configuration(helm, values):
    manifests = helm.template(values=values)
    read = read_flags(arguments(manifests))
    assert not read.unheard
    ((file, text),) = one(manifests, "ConfigMap")["data"].items()
    checked = CliRunner().invoke(program, ["config", "check", "-"], input=text)
    assert checked.exit_code == 0, checked.output
    kept = f"configmap:pumice-system/pumice-scheduler-configmap/{file}"
    assert read.scheduler_conf in {f"/volcano.scheduler/{file}", kept}


def read_controller_flags(args):
    """Return the settings that the controllers would start with."""
    placed = [argument.replace("$(POD_IP)", "fd00::7") for argument in args]
    with controllers.command.make_context("controllers", placed) as context:
        return controller_settings.read(go_flags.given(context, controller_flags.FLAGS))


@pytest.mark.parametrize("values", UNUSUAL.values(), ids=UNUSUAL)
def test_the_controllers_understand_their_arguments(helm, values):
    read = read_controller_flags(arguments(helm.template(values=values), "controller"))
    assert not read.unheard
    assert (read.healthz_address, read.listen_address) == ("[fd00::7]:11251", "[fd00::7]:8081")


def test_values_reach_the_flags_of_the_controllers(helm):
    custom = {
        "controller_enabled_controllers": "*,-gc-controller",
        "hypernode_controller_mode": "disabled",
        "controller_worker_threads": 7,
        "controller_kube_api_qps": 70,
        "controller_kube_api_burst": 80,
        "controller_log_level": 4,
        "controller_extra_args": ["--max-requeue-num=-1"],
    }
    manifests = helm.template(values={"custom": custom})
    args = arguments(manifests, "controller")
    assert "--controllers=*,-gc-controller,-hyperNode-controller" in args
    if "hyperNode-controller" in registry.REGISTERED:
        read = read_controller_flags(args)
        assert (read.worker_threads, read.kube_api_qps, read.kube_api_burst, read.v) == (7, 70, 80, 4)
        assert (read.max_requeue_num, "gc-controller" in read.work.chosen) == (-1, False)
    single = helm.template(values={"custom": {**custom, "controller_single": True}})
    assert "--controllers=*,-gc-controller,-hyperNode-controller" in arguments(single)


VOLCANOS_ARGUMENTS = [
    "--logtostderr",
    "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
    "--enable-healthz=true",
    "--enable-metrics=true",
    "--leader-elect=false",
    "--kube-api-qps=2000",
    "--kube-api-burst=2000",
    "--schedule-period=1s",
    "--node-worker-threads=20",
    "-v=3",
    "2>&1",
]


def test_what_is_set_when_only_the_image_is_swapped_counts_at_the_end_of_the_arguments():
    page = (CHART.parents[1] / "docs" / "install.md").read_text(encoding="utf-8")
    (patch,) = re.findall(r"-p '(\[.*?\])'", page, re.DOTALL)
    read = read_flags([*VOLCANOS_ARGUMENTS, *(each["value"] for each in json.loads(patch))])
    assert (read.listen_address, read.leader_elect) == (":8080", True)
    assert (read.lease_namespace, read.leader_elect_resource_name) == ("volcano-system", "volcano")
    assert read_flags(VOLCANOS_ARGUMENTS).listen_address == "127.0.0.1:8080"


def test_the_arguments_of_volcanos_own_deployment_are_understood():
    """So that its image is all that has to change."""
    read = read_flags(VOLCANOS_ARGUMENTS)
    assert (read.leader_elect, read.v, read.schedule_period) == (False, 3, 1_000_000)
    assert read.unheard == ("node-worker-threads", "logtostderr")


def test_servers_listen_on_the_address_of_the_pod(helm):
    read = read_flags(arguments(helm.template()))
    assert (read.healthz_address, read.listen_address) == ("[fd00::7]:11251", "[fd00::7]:8080")
    assert read.enable_healthz
    assert read.enable_metrics


def test_values_reach_the_flags(helm):
    values = UNUSUAL["everything on"]["custom"]
    read = read_flags(arguments(helm.template(values={"custom": {**values, "scheduler_schedule_period": "1500ms"}})))
    assert read.shaping["node-selector"] == ("pool:batch", "pool:gpu")
    assert read.shaping["default-queue"] == "batch"
    assert (read.plugins_dir, read.logging_format, read.schedule_period) == ("/plugins", "json", 1_500_000)


def test_labels_and_placement_go_where_volcano_puts_them(helm):
    values = {
        "basic": {"image_pull_secret": "pull"},
        "custom": {
            "common_labels": {"team": "batch"},
            "scheduler_labels": {"of": "deployment"},
            "scheduler_podLabels": {"of": "pod"},
            "default_ns": {"disk": "ssd"},
            "scheduler_ns": {"disk": "nvme"},
            "default_tolerations": [{"key": "critical", "operator": "Exists"}],
            "scheduler_affinity": {"nodeAffinity": {}},
            "scheduler_main_csc": {"runAsUser": 7},
        },
    }
    manifests = helm.template(values=values)
    assert all(each["metadata"]["labels"]["team"] == "batch" for each in manifests)
    deployment = one(manifests, "Deployment")
    assert deployment["metadata"]["labels"]["of"] == "deployment"
    assert deployment["spec"]["selector"] == {"matchLabels": {"app": "pumice-scheduler"}}
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"]["of"] == "pod"
    assert pod["spec"]["nodeSelector"] == {"disk": "nvme"}
    assert pod["spec"]["tolerations"] == [{"key": "critical", "operator": "Exists"}]
    assert pod["spec"]["affinity"] == {"nodeAffinity": {}}
    assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["spec"]["containers"][0]["securityContext"] == {"runAsUser": 7}


def test_without_a_lease_the_old_scheduler_ends_before_the_new_one_starts(helm):
    manifests = helm.template(values={"custom": {"leader_elect_enable": False}})
    assert one(manifests, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert one(manifests, "Deployment", "controller")["spec"]["strategy"] == {"type": "Recreate"}
    roles = [each for each in manifests if each["kind"] == "Role" and not of(each, "admission")]
    assert [each["metadata"]["namespace"] for each in roles] == ["kube-system"]
    assert not [each for each in manifests if each["metadata"]["name"].endswith("-lease")]


def test_without_its_parts_nothing_but_the_custom_resources_is_left(helm):
    off = {"scheduler_enable": False, "admission_enable": False}
    manifests = helm.template("--include-crds", values={"custom": off})
    assert {each["metadata"]["name"] for each in manifests} == {each.name for each in resources.CURRENT}


@pytest.mark.parametrize(
    ("custom", "told"),
    [
        ({"scheduler_replicas": "2"}, "scheduler_replicas"),
        ({"leader_elect_enable": "yes"}, "leader_elect_enable"),
        ({"scheduler_schedule_period": "1 second"}, "scheduler_schedule_period"),
        ({"scheduler_config_source": "url"}, "scheduler_config_source"),
        ({"scheduler_tolerations": {"key": "a"}}, "scheduler_tolerations"),
        ({"scheduler_ns": {"disk": True}}, "scheduler_ns"),
        ({"scheduler_node_selector": ["pool"]}, "scheduler_node_selector"),
        ({"controller_replicas": "2"}, "controller_replicas"),
        ({"controller_replica": 2}, "custom.controller_replica: there is no such value"),
        ({"hypernode_controller_mode": "standalone"}, "only controller-manager and disabled"),
        ({"controller_replicas": 2, "leader_elect_enable": False}, "would count the same things twice"),
        ({"scheduler_replica": 2}, "custom.scheduler_replica: there is no such value"),
        ({"leader_election": True}, "custom.leader_election: there is no such value"),
        ({"scheduler_sharding_mode": "hard"}, "custom.scheduler_node_selector gives each scheduler nodes of its own"),
        ({"scheduler_replicas": 2, "leader_elect_enable": False}, "set custom.leader_elect_enable"),
        ({"enabled_admissions": "/job/mutate"}, 'custom.enabled_admissions: "/job/mutate" is not served'),
        ({"vap_enable": True}, "custom.vap_enable: admission policies are not provided"),
        ({"webhooks_failure_policy": "Open"}, "webhooks_failure_policy"),
        ({"admission_replicas": "2"}, "admission_replicas"),
    ],
)
def test_a_wrong_value_is_refused_by_name(helm, custom, told):
    assert told in helm.refusal(values={"custom": custom})


@pytest.mark.parametrize(
    ("basic", "told"),
    [
        ({"scheduler_image_name": "volcanosh/vc-scheduler"}, "is Volcano's scheduler"),
        ({"scheduler_config_file": "config/mine.conf"}, 'this chart has no file "config/mine.conf"'),
        ({"image_pull_policy": "Sometimes"}, "image_pull_policy"),
    ],
)
def test_an_image_or_a_file_that_cannot_be_meant_is_refused(helm, basic, told):
    assert told in helm.refusal(values={"basic": basic})


def test_the_webhooks_understand_their_arguments_whatever_is_set(helm):
    values = {
        "basic": {"admission_port": 9443},
        "custom": {
            "admission_kube_api_qps": 7,
            "admission_kube_api_burst": 8,
            "admission_feature_gates": "SchedulingGatesQueueAdmission=true",
            "admission_extra_args": ["--max-queue-depth=3"],
            "admission_config_override": "resourceGroups: []\n",
            "admission_log_level": 4,
            "scheduler_name": ["a", "b"],
            "webhooks_namespace_selector_expressions": [{"key": "judged", "operator": "Exists"}],
        },
    }
    manifests = helm.template(values=values)
    pod = one(manifests, "Deployment", "admission")["spec"]["template"]["spec"]["containers"][0]
    given = [each.replace("$(POD_IP)", "fd00::7") for each in pod["args"]]
    with admission.command.make_context("admission", given) as context:
        read = admission_settings.read(go_flags.given(context, admission_flags.FLAGS))
    assert not read.unheard
    assert (str(read.address), read.kube_api_qps, read.kube_api_burst, read.v) == ("[fd00::7]:9443", 7.0, 8, 4)
    assert (read.max_queue_depth, read.scheduler_name) == (3, ("a", "b"))
    assert one(manifests, "Service", "admission")["spec"]["ports"][0]["targetPort"] == 9443
    assert {each["containerPort"] for each in pod["ports"]} == {9443, 11251}
    selectors = [
        each["webhooks"][0]["namespaceSelector"]["matchExpressions"] for each in manifests if "webhooks" in each
    ]
    assert all(each[1] == {"key": "judged", "operator": "Exists"} for each in selectors)
    assert all(each[0]["values"] == ["pumice-system", "kube-system"] for each in selectors)


def test_every_value_is_described_checked_and_used():
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))["properties"]
    known = yaml.safe_load(
        (CHART / "templates" / "_checks.tpl").read_text(encoding="utf-8").split("-}}\n")[1].split("{{-")[0]
    )
    templates = "".join(
        file.read_text(encoding="utf-8") for file in (CHART / "templates").iterdir() if file.name != "_checks.tpl"
    )
    for part in ("basic", "custom"):
        assert set(values[part]) == set(schema[part]["properties"]) == set(known[part])
        unused = [name for name in values[part] if f".{name}" not in templates and f"${part}.{name}" not in templates]
        assert not unused
