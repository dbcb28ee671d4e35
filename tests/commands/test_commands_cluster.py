"""The commands against an API server: what they create, change and delete, what they print, and how they fail."""

from __future__ import annotations

import json

import msgspec
import pytest
import yaml

from pumice.api import kinds
from pumice.cli.volcano import calls
from pumice.kube.calls.retrying import RetryPolicy
from pumice.kube.calls.transport import Transport
from pumice.kube.watches import arrivals

JOBS = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"


# -- jobs ------------------------------------------------------------------------------------------------------------


def test_empty_namespace_says_so_and_is_no_failure(either):
    for what in ("job", "jobflow", "jobtemplate", "pod"):
        assert either.printed(what, "list", "-n", either.namespace) == "No resources found\n"


def test_job_is_run_from_flags(either):
    space = either.namespace
    told = either.printed("job", "run", "-N", "train", "-n", space, "-r", "4", "-m", "2", "-R", "cpu=2", "-i", "im:1")
    assert told == "run job train successfully\n"
    stored = either.server.call("GET", either.path(JOBS, "jobs", "train"))
    assert stored["spec"]["minAvailable"] == 2
    assert stored["spec"]["queue"] == "default"
    (task,) = stored["spec"]["tasks"]
    assert (task["replicas"], task["template"]["spec"]["containers"][0]["image"]) == (4, "im:1")


def test_jobs_are_run_from_a_file_and_from_standard_input(either, tmp_path):
    text = "\n---\n".join(
        f"kind: Job\napiVersion: {JOBS}\nmetadata: {{name: {name}}}\nspec: {{tasks: [{{replicas: 1, template: {{spec: {{containers: [{{name: c, image: x}}]}}}}}}]}}"
        for name in ("a", "b")
    )
    (tmp_path / "jobs.yaml").write_text(text, encoding="utf-8")
    told = either.printed("job", "run", "-f", str(tmp_path / "jobs.yaml"), "-n", either.namespace)
    assert told == "run job a successfully\nrun job b successfully\n"
    again = either.printed(
        "job",
        "run",
        "-f",
        "-",
        "-n",
        either.namespace,
        text=text.replace("name: a", "name: c").replace("name: b", "name: d"),
    )
    assert again == "run job c successfully\nrun job d successfully\n"


def test_job_list_shows_what_the_controller_wrote(either):
    either.job("train", state={"phase": "Running"}, running=2, minAvailable=2)
    heading, row = either.printed("job", "list", "-n", either.namespace).splitlines()
    assert heading.split()[:4] == ["Name", "Creation", "Phase", "JobType"]
    assert row.split()[0] == "train"
    assert row.split()[2:] == ["Running", "Batch", "2", "2", "0", "2", "0", "0", "0", "0"]
    first = either.printed("job", "list", "--all-namespaces", "--selector", "train").splitlines()
    assert first[0].split()[0] == "Namespace"
    assert either.namespace in {line.split()[0] for line in first[1:]}


def test_job_list_says_in_one_line_why_a_job_waits(either, monkeypatch):
    cause = "no node has 64 cpu free: the freest of 4, node-2, has 12 cpu"
    either.job("train", state={"phase": "Pending", "reason": "Unschedulable", "message": cause}, minAvailable=2)
    for name in ("pumice", "vcctl"):
        heading, row = either.printed("job", "list", "-n", either.namespace, name=name).splitlines()
        assert heading.split()[-2:] == ["RetryCount", "Reason"]
        assert row.endswith(cause)
    monkeypatch.setattr("pumice.cli.volcano.listing.terminal", lambda: 80)
    heading, row = either.printed("job", "list", "-n", either.namespace).splitlines()
    assert heading.split() == ["Name", "Phase", "Min", "Running", "Reason"]
    assert row.endswith(cause)


def test_hundreds_of_jobs_come_in_pages_and_all_are_shown(either, monkeypatch):
    asked = []
    monkeypatch.setattr("pumice.cli.volcano.calls.PAGE", 50)
    exchange = Transport.exchange

    async def recorded(self, request, limit):
        asked.append(request.path)
        return await exchange(self, request, limit)

    monkeypatch.setattr("pumice.kube.calls.transport.Transport.exchange", recorded)
    names = [f"job-{i:03}" for i in range(230)]
    for name in names:
        either.job(name)
    assert either.printed("job", "list", "-n", either.namespace, "-o", "name").split() == [
        f"job.batch.volcano.sh/{name}" for name in names
    ]
    assert len(asked) == 5
    assert all("limit=50" in path for path in asked)


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_objects_are_printed_whole_without_who_wrote_what(either, form, load):
    either.job("train", state={"phase": "Running"})
    listed = load(either.printed("job", "list", "-n", either.namespace, "-o", form))
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    viewed = load(either.printed("job", "view", "-N", "train", "-n", either.namespace, "-o", form))
    assert listed["items"] == [viewed]
    assert (viewed["kind"], viewed["status"]["state"]["phase"]) == ("Job", "Running")
    assert "managedFields" not in viewed["metadata"]


def test_wide_adds_columns_and_moves_none(either):
    either.job("train")
    plain = either.printed("job", "list", "-n", either.namespace).splitlines()
    wide = either.printed("job", "list", "-n", either.namespace, "-o", "wide").splitlines()
    assert all(more.startswith(less.rstrip()) for less, more in zip(plain, wide, strict=True))
    assert wide[0].split()[-5:] == ["Queue", "Scheduler", "Priority", "Age", "Reason"]


def test_view_shows_the_events_of_the_job_alone(either):
    either.job("train")
    for name, target in (("train.1", "train"), ("train-0.1", "train-0"), ("train.x.1", "train.x")):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": {"name": target, "namespace": either.namespace, "kind": "Job"},
            "type": "Normal",
            "reason": f"About-{target}",
            "message": "hello",
        }
        either.server.call("POST", f"/api/v1/namespaces/{either.namespace}/events", event)
    shown = either.printed("job", "view", "train", "-n", either.namespace)
    assert shown.splitlines()[0] == "Name:       \ttrain"
    assert [line.split()[1] for line in shown.splitlines() if "About" in line] == ["About-train"]


@pytest.mark.parametrize(
    ("name", "verb", "action"),
    [
        ("pumice", ("job", "suspend", "-N", "train", "-n"), "AbortJob"),
        ("pumice", ("job", "resume", "-N", "train", "-n"), "ResumeJob"),
        ("vcctl", ("job", "suspend", "-N=train", "-n"), "AbortJob"),
        ("vsuspend", ("-n", "train", "-N"), "AbortJob"),
        ("vresume", ("-n", "train", "-N"), "ResumeJob"),
    ],
)
def test_suspending_and_resuming_make_a_command_for_the_controller(either, name, verb, action):
    either.job("train")
    assert either.printed(*verb, either.namespace, name=name) == ""
    (made,) = either.commands()
    job = either.server.call("GET", either.path(JOBS, "jobs", "train"))
    assert made["action"] == action
    assert made["metadata"]["name"].startswith(f"train-{action.lower()}-")
    assert made["target"] == made["metadata"]["ownerReferences"][0]
    assert (made["target"]["kind"], made["target"]["uid"]) == ("Job", job["metadata"]["uid"])


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("pumice", ("job", "delete", "-N", "train", "-n"), "delete job train successfully\n"),
        ("vcctl", ("job", "delete", "--name=train", "--namespace"), "delete job train successfully\n"),
        ("vcancel", ("-n", "train", "-N"), "cancel job train successfully\n"),
    ],
)
def test_deleting_says_what_vcctl_says(either, name, arguments, told):
    either.job("train")
    assert either.printed(*arguments, either.namespace, name=name) == told
    assert either.printed("job", "list", "-n", either.namespace) == "No resources found\n"


# -- queues ----------------------------------------------------------------------------------------------------------


def test_queue_list_counts_groups_and_get_prints_the_same_row(either, queue):
    for index, phase in enumerate(("Running", "Running", "Inqueue", "")):
        group = {
            "apiVersion": SCHEDULING,
            "kind": "PodGroup",
            "metadata": {"name": f"g{index}"},
            "spec": {"queue": queue},
        }
        group["status"] = {"phase": phase} if phase else {}
        either.server.call("POST", either.path(SCHEDULING, "podgroups"), group)
    listed = either.printed("queue", "list").splitlines()
    (row,) = [line for line in listed if line.startswith(f"{queue} ")]
    assert row.split() == [queue, "4", "Open", "1", "1", "2", "0", "0"]
    assert either.printed("queue", "get", "-n", queue).splitlines()[1].split() == row.split()
    assert either.printed("-n", queue, name="vqueues").splitlines()[1].split() == row.split()


@pytest.mark.parametrize(("action", "made"), [("open", "OpenQueue"), ("close", "CloseQueue")])
def test_operating_a_queue_makes_a_command_in_the_default_namespace(either, queue, action, made):
    assert either.printed("queue", "operate", "-n", queue, "-a", action) == ""
    (command,) = [each for each in either.commands("default") if each["target"]["name"] == queue]
    assert command["action"] == made
    assert command["target"]["kind"] == "Queue"


def test_update_patches_the_weight_alone(either, queue):
    before = either.server.call("GET", f"/apis/{SCHEDULING}/queues/{queue}")
    either.printed("queue", "operate", "-n", queue, "-a", "update", "-w", "9")
    after = either.server.call("GET", f"/apis/{SCHEDULING}/queues/{queue}")
    assert after["spec"] == {**before["spec"], "weight": 9}


def test_closed_queue_is_created_and_closed_by_a_command(either):
    name = f"closed-{either.namespace}"
    either.printed("queue", "create", "-n", name, "-S", "Closed")
    assert [each["action"] for each in either.commands("default") if each["target"]["name"] == name] == ["CloseQueue"]
    assert either.printed("queue", "delete", "-n", name) == ""
    assert "there is no queue" in either.failed("queue", "get", "-n", name)


# -- pods, flows, templates ------------------------------------------------------------------------------------------


def test_pods_are_listed_by_job_and_by_queue(either):
    labels = {"volcano.sh/job-name": "train", "volcano.sh/queue-name": "q"}
    made = (("train-0", labels, {}), ("other", {}, {"scheduling.volcano.sh/queue-name": "q"}), ("stray", {}, {}))
    for name, labelled, annotated in made:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labelled, "annotations": annotated},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        }
        either.server.call("POST", f"/api/v1/namespaces/{either.namespace}/pods", pod)

    def names(*wanted):
        return [
            line.split()[0] for line in either.printed("pod", "list", "-n", either.namespace, *wanted).splitlines()[1:]
        ]

    assert names() == ["train-0"]
    assert names("-j", "train") == ["train-0"]
    assert names("-q", "q") == ["other", "train-0"]
    assert names("-q", "q", "-j", "train") == ["train-0"]
    told = either.failed("pod", "list", "-n", either.namespace, "-q", "r", "-j", "train")
    assert told == "Failed to list pod: job train is in queue q, not in r; leave -q out\n"


def test_nothing_is_kept_of_pods_that_are_not_wanted():
    listing = calls.Chosen(lambda metadata: metadata.name == "b")
    for name in ("a", "b", "c"):
        raw = msgspec.Raw(msgspec.json.encode({"metadata": {"name": name, "uid": name}}))
        listing.add(arrivals.arrival(kinds.POD, raw, keep=True))
    assert len(listing.found) == 3
    assert list(listing.changed) == [("", "b")]


FLOW = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: %s, namespace: %s}\nspec: {jobRetainPolicy: delete, flows: [{name: a}]}\n"
TEMPLATE = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: %s, namespace: %s}\nspec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: c, image: x}]}}}]}\n"


@pytest.mark.parametrize(
    ("what", "kind", "text"), [("jobflow", "JobFlow", FLOW), ("jobtemplate", "JobTemplate", TEMPLATE)]
)
def test_flows_and_templates_live_through_their_verbs(either, tmp_path, what, kind, text):
    space = either.namespace
    file = tmp_path / "all.yaml"
    file.write_text("---\n".join(text % (name, space) for name in ("one", "two")), encoding="utf-8")
    assert (
        either.printed(what, "create", "-f", str(file)) == f"Created {kind}: {space}/one\nCreated {kind}: {space}/two\n"
    )
    heading, *rows = either.printed(what, "list", "-n", space).splitlines()
    assert heading.split()[:2] == ["Name", "Namespace"]
    assert [row.split()[:2] for row in rows] == [["one", space], ["two", space]]
    assert either.printed(what, "get", "-N", "two", "-n", space).splitlines()[1].split()[0] == "two"
    assert yaml.safe_load(either.printed(what, "describe", "-N", "one", "-n", space))["kind"] == kind
    assert (
        json.loads(either.printed(what, "describe", "-N", "one", "-n", space, "-o", "json"))["metadata"]["name"]
        == "one"
    )
    both = either.printed(what, "describe", "-n", space).split("---------------------------------\n")
    assert [yaml.safe_load(each)["metadata"]["name"] for each in both] == ["one", "two"]
    assert either.printed(what, "delete", "-N", "one", "-n", space) == f"Deleted {kind}: {space}/one\n"
    told = either.failed(what, "delete", "-f", str(file))
    assert told.splitlines()[0] == f"Deleted {kind}: {space}/two"
    assert f"Failed to delete {what}: delete {kind} {space}/one: there is no {what} 'one' in namespace {space}" in told


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("job", "view", "-N", "nope"),
            "Failed to view job: there is no job 'nope' in namespace default; pumice job list -n default shows those that exist\n",
        ),
        (("job", "suspend", "-N", "nope"), "Failed to suspend job: there is no job 'nope'"),
        (("job", "delete", "-N", "nope"), "Failed to delete job: there is no job 'nope'"),
        (("job", "view"), "Failed to view job: the name of the job is missing; give -N NAME\n"),
        (("job", "run"), "Failed to run job: the name of the job is missing; give -N NAME\n"),
        (("job", "run", "-N", "a", "-m", "2"), "Failed to run job: --min 2 is more than --replicas 1"),
        (("job", "run", "-f", "/nowhere.yaml"), "Failed to run job: /nowhere.yaml: there is no such file\n"),
        (("job", "run", "-N", "Bad_Name"), "Failed to run job: "),
        (
            ("job", "run", "-N", "a", "-n", "no-such-namespace"),
            "Failed to run job: there is no namespace 'no-such-namespace'; create it: kubectl create namespace no-such-namespace\n",
        ),
        (("queue", "get"), "Failed to get queue: the name of the queue is missing; give -n NAME\n"),
        (
            ("queue", "get", "-n", "nope"),
            "Failed to get queue: there is no queue 'nope'; pumice queue list shows those that exist\n",
        ),
        (
            ("queue", "create", "-n", "default"),
            "Failed to create queue: queue 'default' exists already; take another name, or delete it first\n",
        ),
        (
            ("queue", "operate", "-n", "default"),
            "Failed to operate queue: the action is missing; give -a open, -a close or -a update\n",
        ),
        (
            ("queue", "operate", "-n", "default", "-a", "shut"),
            "Failed to operate queue: action 'shut' is not known; give -a open",
        ),
        (
            ("queue", "operate", "-n", "default", "-a", "update"),
            "Failed to operate queue: the new weight of queue default is missing; give -w N, 1 or more\n",
        ),
        (("jobflow", "create"), "Failed to create jobflow: the file is missing; give -f FILE\n"),
    ],
)
def test_failure_is_one_line_on_standard_output_with_the_next_step(either, arguments, told):
    if arguments[:2] == ("queue", "create"):
        either.run("queue", "create", "-n", "default")
    assert either.failed(*arguments).startswith(told)


def test_name_that_was_probably_meant_is_told(either):
    either.job("llama")
    for verb in ("view", "suspend", "delete"):
        told = either.failed("job", verb, "-N", "lama", "-n", either.namespace)
        assert told.endswith("shows those that exist; did you mean 'llama'?\n")


def test_job_that_exists_is_named(either):
    either.job("train")
    told = either.failed("job", "run", "-N", "train", "-n", either.namespace)
    assert (
        told
        == f"Failed to run job: job 'train' exists already in namespace {either.namespace}; take another name, or delete it first\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("job", "list", "--nonsense"), "No such option"),
        (("job", "list", "-o", "xml"), "'xml' is not one of"),
        (("job", "run", "-N", "a", "-r", "many"), "not a valid integer"),
        (("job", "run", "-N", "a", "-r", "-1"), "is not in the range"),
        (("job", "view", "-N", "a", "b"), "two names: 'a' and 'b'; give one"),
        (("job", "list", "--all-namespaces=maybe"), "'maybe' is neither true nor false"),
        (("queue", "create", "-w", "0"), "is not in the range"),
        (("job", "frobnicate"), "No such command"),
    ],
)
def test_wrong_usage_is_told_apart_from_failure(commands, arguments, told):
    result = commands.run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_server_that_is_away_is_named_with_what_to_check(commands, monkeypatch):
    monkeypatch.setattr(
        "pumice.cli.volcano.calls.RETRIES",
        RetryPolicy(attempts=1),
    )
    told = commands.failed("job", "list", "-s", "https://127.0.0.1:9")
    assert told.startswith("Failed to list job: ")
    assert "check that the server runs and the address is right" in told
