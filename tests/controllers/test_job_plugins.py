"""Job plugins: their flags, what they do to pods, and how others' are found."""

import base64
import copy
import json
import re

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import example, given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.controllers.volcano.job_plugins import flags, pods, protocol, registry, ssh
from pumice.controllers.volcano.jobs import pod_making, reading

CATALOG = registry.installed()


def job(roles, plugins=None, name="j", **spec):
    tasks = [
        {"name": name, "replicas": count, "template": {"metadata": {"labels": {"x": "y"}}, "spec": _pod_spec(name)}}
        for name, count in roles.items()
    ]
    metadata = {"name": name, "namespace": "a", "uid": "u"}
    return reading.Job({"metadata": metadata, "spec": {"tasks": tasks, "plugins": plugins or {}, **spec}})


def _pod_spec(name):
    container = {"name": name, "image": "i", "env": [{"name": "OWN", "value": "1"}], "ports": [{"containerPort": 80}]}
    return {"containers": [container], "initContainers": [{"name": "init", "image": "i"}]}


def made(found, role, index=0):
    maker = pod_making.PodMaker(found, "g", CATALOG.named(found.plugins), forwarded=False)
    return maker.make(found.by_name[role], index, replaces_evicted=False)


def variables(pod, part="containers"):
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in pod["spec"][part][0].get("env", [])}


# ---- flags

DEFAULTS = {"port": 22, "name": "x", "wait": False}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], (22, "x", False)),
        (["--port=1", "-name=y", "--wait"], (1, "y", True)),
        (["--port", "1", "-name", "y", "--wait=false"], (1, "y", False)),
        (["--port 3", "--wait=T"], (3, "x", True)),
        (["--name=a=b", "--port=1", "--port=2"], (2, "a=b", False)),
        (["--port=000000000000000007"], (7, "x", False)),
        (["--wait --port 4", "--", ""], (4, "x", True)),
        (["--name", "-----BEGIN KEY-----\na b\n", "--wait"], (22, "-----BEGIN KEY-----\na b\n", True)),
    ],
)
def test_flags_are_read_as_go_reads_them(arguments, expected):
    found = flags.parse("p", arguments, DEFAULTS)
    assert (found.number("port"), found.text("name"), found.switch("wait")) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prot=1"], "did you mean --port?"),
        (["--zzzzzz=1"], "it takes --name, --port, --wait"),
        (["--port=x"], "--port=x is no whole number"),
        (["--port=0000000000000000007"], "is no whole number that it can use"),
        (["--wait=perhaps"], "neither true nor false"),
        (["--port"], "has no value"),
        (["port=1"], "is no flag"),
    ],
)
def test_a_bad_flag_is_named_with_what_to_write(arguments, message):
    with pytest.raises(protocol.PluginError, match=message.replace("?", r"\?")) as raised:
        flags.parse("p", arguments, DEFAULTS)
    assert "plugin p" in str(raised.value)


def test_what_may_be_a_secret_is_not_said():
    with pytest.raises(protocol.PluginError) as raised:
        flags.parse("ssh", ["ssh-private-key=-----BEGIN hidden"], {"ssh-private-key": ""})
    assert "hidden" not in str(raised.value)


@given(st.lists(st.text(max_size=12), max_size=4))
@example([f"--port={'9' * 5000}"])
@example([f"--ssh-port={'9' * 5000}"])
def test_no_arguments_break_a_plugin(arguments):
    for plugin in CATALOG.plugins.values():
        try:
            plugin(arguments)
        except protocol.PluginError:
            continue


# ---- the catalog


def test_an_unknown_plugin_is_named_with_the_nearest():
    with pytest.raises(protocol.PluginError, match="'pytroch' is not known; did you mean pytorch"):
        CATALOG.named({"pytroch": ()})
    with pytest.raises(protocol.PluginError, match="there are env, hcclrank, mpi"):
        CATALOG.named({"zzzzzz": ()})


class Greeting:
    """Greets."""

    name = "greeting"
    makes = (kinds.CONFIG_MAP,)

    def __init__(self, arguments):
        self.word = flags.parse(self.name, arguments, {"word": "hello"}).text("word")

    def objects(self, found):
        return []

    def complete(self, pod, place):
        pod["metadata"]["annotations"]["greeting"] = f"{self.word} {place.role.name} {place.index}"


class Entry:
    def __init__(self, name, loaded):
        self.name, self.value, self._loaded = name, f"package:{name}", loaded

    def load(self):
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def test_packages_add_plugins_and_a_broken_one_costs_only_those_who_name_it(monkeypatch):
    entries = [
        Entry("greeting", Greeting),
        Entry("svc", Greeting),
        Entry("broken", ImportError("no module")),
        Entry("other", Greeting),
        Entry("empty", object),
    ]
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: entries if group == registry.GROUP else [])
    found = registry.installed.__wrapped__()
    assert found.plugins["svc"] is not Greeting
    assert isinstance(Greeting(()), protocol.JobPlugin)
    (plugin,) = found.named({"greeting": ("--word=hi",)})
    pod = {"metadata": {"annotations": {}}}
    plugin.complete(pod, protocol.Place(job({"w": 1}), job({"w": 1}).roles[0], 3))
    assert pod["metadata"]["annotations"] == {"greeting": "hi w 3"}
    for name, why in (("broken", "no module"), ("other", "no job plugin of that name"), ("empty", "lacks name, makes")):
        with pytest.raises(protocol.PluginError, match=why):
            found.named({name: ()})


def test_whoever_makes_objects_says_of_which_kinds():
    every = dict.fromkeys(CATALOG.plugins, ())
    found = job({"head": 1, "master": 1, "worker": 2}, every)
    for plugin in CATALOG.named(found.plugins):
        assert {each.kind for each in plugin.objects(found)} <= set(plugin.makes)
    assert set(CATALOG.kinds) == {kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY, kinds.SECRET}


# ---- pods

NAMES = ("head", "master", "worker", "ps", "chief", "evaluator", "other-role")


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.sampled_from(sorted(CATALOG.plugins)), unique=True, max_size=8),
)
def test_pods_are_made_without_changing_the_job_and_alike_each_time(roles, chosen):
    if "head" not in roles:
        chosen = [each for each in chosen if each != "ray"]
    volumes = [{"mountPath": "/v", "volumeClaimName": "c"}]
    found = job(roles, {name: [] for name in chosen}, volumes=volumes)
    before = copy.deepcopy(found.manifest)
    for role in found.roles:
        for index in range(role.replicas):
            pod = made(found, role.name, index)
            assert pod == made(found, role.name, index)
            assert pod["metadata"]["name"] == f"j-{role.name}-{index}"
            assert variables(pod)["OWN"] == "1"
            for part in ("containers", "initContainers"):
                listed = [each["name"] for each in pod["spec"][part][-1].get("env", [])]
                assert len(listed) == len(set(listed))
            mounted = {each["name"] for each in pod["spec"]["volumes"]}
            used = {each["name"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
            assert used == mounted
            json.dumps(pod)
    assert found.manifest == before


@given(
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", fullmatch=True),
    st.lists(st.sampled_from(["svc", "ssh"]), unique=True),
    st.lists(st.sampled_from(["claim", "other", "third"]), unique=True),
)
def test_volumes_have_names_that_kubernetes_takes_however_the_job_is_called(name, chosen, claims):
    volumes = [{"mountPath": f"/{each}", "volumeClaimName": each} for each in claims]
    spec = made(job({"w": 1}, {each: [] for each in chosen}, name=name, volumes=volumes), "w")["spec"]
    listed = [each["name"] for each in spec.get("volumes", ())]
    assert len(listed) == len(set(listed)) == len(chosen) + len(claims)
    assert all(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", each) and len(each) <= 63 for each in listed)
    files = {each["name"]: each.get("configMap", each.get("secret", {})) for each in spec.get("volumes", ())}
    named = {each.get("name", each.get("secretName")) for each in files.values()} - {None}
    assert named == {f"{name}-{each}" for each in chosen}  # the objects keep the names that Volcano gives them


def test_the_longest_name_of_a_job_is_cut_so_that_its_volumes_have_one():
    assert pods.volume_name("a." * 40, "svc") == f"{'a-' * 29}a-svc"
    assert len(pods.volume_name("a" * 59, "svc")) == 63


@pytest.mark.parametrize("length", [1, 63, 64, 253])
def test_a_queue_is_a_label_where_it_may_be_one_and_an_annotation_always(length):
    metadata = made(job({"w": 1}, queue="q" * length), "w")["metadata"]
    assert metadata["annotations"]["volcano.sh/queue-name"] == "q" * length
    assert metadata["labels"].get("volcano.sh/queue-name") == ("q" * length if length <= 63 else None)


@pytest.mark.parametrize("plugin", ["mpi", "pytorch", "tensorflow", "ray"])
@pytest.mark.parametrize("port", ["0", "65536", "4294967318"])
def test_a_port_that_is_none_is_named_and_not_taken(plugin, port):
    message = f"plugin {plugin}: --port={port} is no port; write 1 to 65535"
    assert registry.problem(plugin, [f"--port={port}"]) == message
    assert CATALOG.named({plugin: [f"--port={port}"]})


@pytest.mark.parametrize(
    ("plugin", "arguments", "read"),
    [
        ("svc", ["--enable-networking"], []),
        ("svc", ["--disable-network-policy", "--enable-networking", "--inject-hosts-env=false"], ["--disable-network-policy"]),
        ("mpi", ["--master=m", "stray", "--worker=w"], ["--master=m"]),
        ("ssh", ["--ssh-port=2222", "--ssh-public-key=k"], ["--ssh-port=2222"]),
        ("env", ["--anything"], []),
        ("of-somebody-else", ["--anything"], ["--anything"]),
    ],
)  # fmt: skip
def test_a_plugin_goes_on_with_the_arguments_before_the_one_it_cannot_read(plugin, arguments, read):
    assert registry.readable(plugin, arguments) == read
    assert bool(registry.problem(plugin, arguments)) == (arguments != read)


PORTS = [
    {"containerPort": 6379, "name": "redis"},
    {"containerPort": 80, "name": "dashboard"},
    {"containerPort": 7, "name": "mpijob-port"},
    {"containerPort": 22},
    {"containerPort": 23456, "name": "pytorchjob-port"},
]


@given(st.lists(st.sampled_from(PORTS), unique_by=str), st.sampled_from(["mpi", "pytorch", "ray"]))
def test_no_port_has_two_places_and_what_a_service_leads_to_has_its_name(stated, plugin):
    found = job({"head": 1, "master": 1, "worker": 1}, {plugin: []})
    for task in found.manifest["spec"]["tasks"]:
        task["template"]["spec"]["containers"][0]["ports"] = stated
    found = reading.Job(found.manifest)
    for role in found.roles:
        ports = made(found, role.name)["spec"]["containers"][0]["ports"]
        listed = [each["name"] for each in ports if "name" in each]
        assert len(listed) == len(set(listed))
        if (plugin, role.name) == ("ray", "head"):
            expected = {"gcs": 6379, "dashboard": 8265, "client-server": 10001}
            assert expected.items() <= {each.get("name"): each["containerPort"] for each in ports}.items()


def test_a_variable_of_the_template_is_replaced_and_not_doubled():
    found = job({"w": 1}, {"env": []})
    found.manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "VC_TASK_INDEX", "value": "9"}
    ]
    found = reading.Job(found.manifest)
    listed = made(found, "w")["spec"]["containers"][0]["env"]
    assert listed == [{"name": "VC_TASK_INDEX", "value": "0"}, {"name": "VK_TASK_INDEX", "value": "0"}]


def test_a_host_name_that_a_template_fixes_is_the_only_one():
    found = job({"w": 3}, {"svc": []})
    found.manifest["spec"]["tasks"][0]["template"]["spec"] |= {"hostname": "h", "subdomain": "d"}
    found = reading.Job(found.manifest)
    (svc,) = CATALOG.named(found.plugins)
    (data,) = [each.content["data"] for each in svc.objects(found) if each.kind is kinds.CONFIG_MAP]
    assert data == {"w.host": "h.d", "VC_W_HOSTS": "h.d", "VC_W_NUM": "1"}
    assert (made(found, "w", 2)["spec"]["hostname"], made(found, "w", 2)["spec"]["subdomain"]) == ("h", "d")


def test_keys_of_ssh_belong_together_and_its_configuration_names_every_pod():
    (plugin,) = CATALOG.named(job({"w": 2}, {"ssh": ["--ssh-port=2222"]}).plugins)
    (secret,) = plugin.objects(job({"w": 2}))
    data = {name: base64.b64decode(text).decode() for name, text in secret.make()["data"].items()}
    private = serialization.load_pem_private_key(data["id_rsa"].encode(), None)
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    assert data["id_rsa.pub"].strip() == private.public_key().public_bytes(*form).decode()
    assert private.key_size == 2048
    assert data["authorized_keys"] == data["id_rsa.pub"]
    assert data["config"].splitlines()[2:] == [
        "Host j-w-0",
        "  HostName j-w-0.j",
        "  Port 2222",
        "Host j-w-1",
        "  HostName j-w-1.j",
        "  Port 2222",
    ]


def test_keys_that_are_given_are_used_as_they_are():
    private, public = "-----BEGIN X-----\nab c\n-----END X-----\n", "ssh-rsa AAA= me@here"
    plugin = ssh.Ssh([f"--ssh-private-key={private}", f"--ssh-public-key={public}", "--ssh-port=none"])
    data = plugin.objects(job({"w": 1}))[0].make()["data"]
    assert base64.b64decode(data["id_rsa"]).decode() == private
    assert base64.b64decode(data["authorized_keys"]).decode() == public
    assert "Port 22\n" in base64.b64decode(data["config"]).decode()
    with pytest.raises(protocol.PluginError, match="together"):
        ssh.Ssh([f"--ssh-public-key={public}"])


def test_a_flag_of_old_manifests_is_read_and_changes_nothing():
    assert made(job({"w": 1}, {"ssh": ["--no-root"]}), "w") == made(job({"w": 1}, {"ssh": []}), "w")


def test_keys_outside_the_home_of_root_can_be_read_by_others():
    pod = made(job({"w": 1}, {"ssh": ["--ssh-key-file-path=/home/me/.ssh"]}), "w")
    assert pod["spec"]["volumes"][0]["secret"]["defaultMode"] == 0o644
    assert pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == "/home/me/.ssh"


def test_a_tensorflow_job_of_one_pod_is_left_alone():
    assert "TF_CONFIG" not in variables(made(job({"worker": 1}, {"tensorflow": []}), "worker"))
    assert "TF_CONFIG" in variables(made(job({"worker": 2}, {"tensorflow": []}), "worker"))


def test_an_mpi_master_without_workers_is_left_alone():
    found = job({"master": 1}, {"mpi": []})
    assert made(found, "master")["spec"] == made(job({"master": 1}), "master")["spec"]


def test_init_containers_of_an_mpi_master_know_the_workers_too():
    pod = made(job({"master": 1, "worker": 2}, {"mpi": ["--port=80"]}), "master")
    assert variables(pod, "initContainers") == {"MPI_HOST": "j-worker-0.j,j-worker-1.j"}
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80}]  # it has that port already


def test_a_pytorch_job_without_a_master_is_left_alone_and_other_roles_have_no_rank():
    found = job({"worker": 2}, {"pytorch": []})
    assert made(found, "worker")["spec"] == made(job({"worker": 2}), "worker")["spec"]
    found = job({"master": 1, "ps": 1}, {"pytorch": []})
    told = variables(made(found, "ps"))
    assert "RANK" not in told
    assert (told["WORLD_SIZE"], told["MASTER_PORT"], told["MASTER_ADDR"]) == ("1", "23456", "j-master-0.j")
    assert variables(made(found, "master"))["WORLD_SIZE"] == "1"


def test_a_ray_worker_joins_the_head_by_its_name_and_other_roles_start_as_they_say():
    found = job({"head": 1, "worker": 2, "other": 1}, {"ray": ["--port=7000"]})
    command = made(found, "worker", 1)["spec"]["containers"][0]["command"]
    assert command == ["sh", "-c", "ray start --block --address=j-head-0.j:7000"]
    assert "command" not in made(found, "other")["spec"]["containers"][0]


def test_ray_without_a_head_says_how_to_name_it():
    with pytest.raises(protocol.PluginError, match="no task is named 'head'; name the head with --head"):
        made(job({"worker": 2}, {"ray": []}), "worker")


@pytest.mark.parametrize(
    ("roles", "role", "index", "rank"),
    [
        ({"master": 2, "worker": 2}, "master", 1, "1"),
        ({"master": 2, "worker": 2}, "worker", 1, "3"),
        ({"worker": 2}, "worker", 1, "1"),
        ({"master": 1, "ps": 1}, "ps", 0, None),
    ],
)
def test_ranks_count_workers_after_masters(roles, role, index, rank):
    annotations = made(job(roles, {"hcclrank": []}), role, index)["metadata"]["annotations"]
    assert annotations.get("hccl/rankIndex") == rank


def test_a_rank_that_is_stated_stays():
    found = job({"worker": 1}, {"hcclrank": []})
    template = found.manifest["spec"]["tasks"][0]["template"]
    template["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "7"}]
    assert made(reading.Job(found.manifest), "worker")["metadata"]["annotations"]["hccl/rankIndex"] == "7"
    template["metadata"]["annotations"] = {"hccl/rankIndex": "8"}
    assert made(reading.Job(found.manifest), "worker")["metadata"]["annotations"]["hccl/rankIndex"] == "8"


# ---- what each plugin does where nothing is said


@pytest.mark.parametrize(
    ("plugin", "port", "expected"),
    [("mpi", "1", 1), ("mpi", "65535", 65535), ("pytorch", "1", 1), ("mpi", None, 22), ("pytorch", None, 23456)],
)
def test_the_port_is_declared_in_every_container(plugin, port, expected):
    found = job({"master": 1, "worker": 1}, {plugin: [] if port is None else [f"--port={port}"]})
    for role in ("master", "worker"):
        ports = made(found, role)["spec"]["containers"][0]["ports"]
        assert {"name": f"{plugin}job-port", "containerPort": expected, "protocol": "TCP"} in ports


@pytest.mark.parametrize("part", ["containers", "initContainers"])
def test_every_container_knows_the_index_of_its_pod(part):
    told = variables(made(job({"w": 3}, {"env": []}), "w", 2), part)
    assert (told["VC_TASK_INDEX"], told["VK_TASK_INDEX"]) == ("2", "2")


def test_a_variable_is_replaced_where_it_stands():
    container = {"env": [{"name": name, "value": "old"} for name in "axb"]}
    pods.set_variable(container, "x", "new")
    assert [(each["name"], each["value"]) for each in container["env"]] == [("a", "old"), ("x", "new"), ("b", "old")]


@pytest.mark.parametrize(
    ("role", "index", "rank"), [("master", 0, "0"), ("worker", 0, "1"), ("worker", 2, "3"), ("ps", 0, None)]
)
def test_pytorch_counts_the_workers_after_the_master(role, index, rank):
    told = variables(made(job({"master": 1, "worker": 3, "ps": 1}, {"pytorch": []}), role, index))
    assert (told.get("RANK"), told["WORLD_SIZE"]) == (rank, "4")


@pytest.mark.parametrize(
    ("arguments", "role", "waits"),
    [
        ([], "worker", None),
        (["--wait-master-enabled"], "master", None),
        (["--wait-master-enabled"], "worker", 300),
        (["--wait-master-enabled", "--wait-master-timeout=9"], "worker", 9),
    ],
)
def test_workers_wait_for_the_master_of_pytorch_only_if_they_are_to(arguments, role, waits):
    first, *others = made(job({"master": 1, "worker": 1}, {"pytorch": arguments}), role)["spec"]["initContainers"]
    assert (first["name"] == "wait-for-master") is (waits is not None)
    assert waits is None or f"does not answer after {waits} s" in first["command"][2]
    assert [each["name"] for each in (first, *others)][-1] == "init"


def test_tensorflow_is_told_its_cluster_at_its_usual_port():
    told = json.loads(variables(made(job({"ps": 1, "worker": 2}, {"tensorflow": []}), "worker", 1))["TF_CONFIG"])
    assert told["cluster"] == {"ps": ["j-ps-0.j:2222"], "worker": ["j-worker-0.j:2222", "j-worker-1.j:2222"]}
    assert told["task"] == {"type": "worker", "index": 1}


@pytest.mark.parametrize(("stated", "port"), [("1", 1), ("65535", 65535), ("0", 22), ("65536", 22), ("x", 22)])
def test_a_port_of_ssh_that_is_none_is_the_usual_one(stated, port):
    plugin = ssh.Ssh([f"--ssh-port={stated}"], keys=lambda: ("", ""))
    config = base64.b64decode(plugin.objects(job({"w": 1}))[0].make()["data"]["config"]).decode()
    assert config.splitlines()[-1] == f"  Port {port}"


def test_keys_in_the_home_of_root_can_be_read_by_root_alone():
    (volume,) = made(job({"w": 1}, {"ssh": []}), "w")["spec"]["volumes"]
    assert volume["secret"]["defaultMode"] == 0o600


@pytest.mark.parametrize(
    ("arguments", "policy", "early", "told"),
    [
        ([], True, None, True),
        (["--disable-network-policy"], False, None, True),
        (["--publish-not-ready-addresses"], True, True, True),
        (["--inject-hosts-env=false"], True, None, False),
    ],
)
def test_a_service_leads_to_the_pods_of_a_job_and_a_policy_keeps_others_out_unless_that_is_switched_off(
    arguments, policy, early, told
):
    found = job({"w": 2, "other-role": 1}, {"svc": arguments})
    (svc,) = CATALOG.named(found.plugins)
    objects = {each.kind: each for each in svc.objects(found)}
    selector = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "a"}
    spec = objects[kinds.SERVICE].content["spec"]
    assert (spec["clusterIP"], spec["selector"], spec.get("publishNotReadyAddresses")) == ("None", selector, early)
    assert [(each["port"], each["targetPort"]) for each in spec["ports"]] == [(1, 1)]
    assert (kinds.NETWORK_POLICY in objects) is policy
    if policy:
        own = {"podSelector": {"matchLabels": selector}}
        lets_in = objects[kinds.NETWORK_POLICY].content["spec"]
        assert lets_in == {**own, "ingress": [{"from": [own]}], "policyTypes": ["Ingress"]}
    for part in ("containers", "initContainers"):
        given = variables(made(found, "w"), part)
        source = {"configMapKeyRef": {"name": "j-svc", "key": "VC_OTHER_ROLE_HOSTS"}}
        assert given.get("VC_OTHER_ROLE_HOSTS") == (source if told else None)
        assert ("VC_W_NUM" in given) is told
