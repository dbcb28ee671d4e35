"""Clusters in files, names on the command line, and what the commands print."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner
from study_worlds import KNOWN, played, seen

from pumice.cli.program import program
from pumice.server import dump
from pumice.study import configuring, expanding, explanation, explanation_text, files, naming
from pumice.study.state import State, StudyError

GANGS = Path(__file__).parents[2] / "scenarios" / "gangs" / "all-or-nothing.yaml"
TRIO = "a gang of three with room for two"


def run(*arguments):
    return CliRunner().invoke(program, [str(each) for each in arguments])


@pytest.fixture
def dumped(tmp_path):
    """A dump as the scheduler writes it, of a life in which jobs wait."""
    stage = played(1, "prop_both")
    file = tmp_path / f"snapshot-{stage.cluster.clock.now() // 1_000_000}.json"
    file.write_bytes(dump.encode(stage.model))
    return stage, file


def test_a_dump_is_the_cluster_that_was_dumped(dumped):
    stage, file = dumped
    state = files.read(str(file), KNOWN)
    assert state.now == stage.cluster.clock.now()
    for name in ("Pod", "Node", "PodGroup", "Queue"):
        kind = next(kind for kind in files.kinds.KINDS if kind.name == name)
        there = {(each.metadata.namespace, each.metadata.name) for each in seen(stage).of(kind)}
        assert {(each.metadata.namespace, each.metadata.name) for each in state.of(kind)} == there


def test_a_dump_is_explained_like_the_cluster_that_was_dumped(dumped):
    stage, file = dumped
    live, read = seen(stage), files.read(str(file), KNOWN)
    read.configuration = live.configuration
    for group in live.of(files.kinds.POD_GROUP):
        request = explanation.Request(what="job", name=f"{group.metadata.namespace}/{group.metadata.name}")
        first, second = (explanation.answer(each, request, KNOWN) for each in (live, read))
        assert (first.explanation, first.search) == (second.explanation, second.search)


@pytest.mark.parametrize("form", ["list.json", "list.yaml", "documents.yaml"])
def test_what_kubectl_prints_reads_like_a_dump(dumped, tmp_path, form):
    _, file = dumped
    items = json.loads(file.read_text())
    unknown = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [*items, unknown]}
    text = {
        "list.json": json.dumps(listed),
        "list.yaml": yaml.safe_dump(listed),
        "documents.yaml": yaml.safe_dump_all(items),
    }[form]
    other = tmp_path / form
    other.write_text(text, encoding="utf-8")
    assert len(files.read(str(other), KNOWN).objects) == len(files.read(str(file), KNOWN).objects)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "where a manifest should be"),
        ('[{"kind": "Pod"}]', "without kind or metadata.name"),
        ("[{", "not valid JSON"),
        ("a: [", ":"),
        ("- \n  kind: Pod\n", "without kind or metadata.name"),
    ],
)
def test_a_file_that_holds_no_cluster_is_refused_by_name(tmp_path, text, message):
    file = tmp_path / ("x.json" if text.startswith("[") else "x.yaml")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=message) as error:
        files.read(str(file), KNOWN)
    assert str(file) in str(error.value)


def test_a_scenario_is_explained_at_its_end_or_at_a_line():
    end = run("explain", "job", "trio", "--from", GANGS, "--scenario", TRIO, "-v")
    assert end.exit_code == 0, end.output
    assert "gang: 2 of 3 members fit" in end.output
    assert "Smallest change that would start it: lower its minMember from 3 to 2" in end.output
    assert "after 4 cycles" in end.output
    begin = run("explain", "job", "trio", "--from", GANGS, "--scenario", TRIO, "--until-line", 17)
    assert "after 1 cycles" in begin.output


def test_the_same_dump_gives_the_same_bytes(dumped):
    _, file = dumped
    for what, name in (("job", None), ("queue", "default"), ("node", "n0")):
        chosen = name or next(iter(files.read(str(file), KNOWN).of(files.kinds.POD_GROUP))).metadata.name
        for form in ("text", "json", "yaml"):
            first, second = (run("explain", what, chosen, "--from", file, "-o", form) for _ in range(2))
            assert first.exit_code == 0, first.output
            assert first.output == second.output


@pytest.mark.parametrize(
    ("what", "name", "found"),
    [
        ("job", "a/g", "a/g"),
        ("job", "g", "a/g"),
        ("job", "owner", "a/g"),
        ("job", "vj", "a/g"),
        ("job", "a/missing", "a/missing"),
        ("pod", "a/g-0", "a/g-0"),
        ("queue", "default", "default"),
        ("node", "n1", "n1"),
        ("job", "gg", StudyError("did you mean a/g")),
        ("pod", "a/g-1", StudyError("did you mean a/g-0")),
        ("node", "n", StudyError("did you mean n1")),
        ("queue", "defualt", StudyError("did you mean default")),
        ("pod", "a/b/c", StudyError("NAMESPACE/NAME")),
        ("job", "twice", StudyError("2 have this name: a/twice, b/twice; say which with -n")),
    ],
)
def test_names_lead_to_what_is_meant_or_to_what_is_near(tmp_path, what, name, found):
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": {"minMember": 1}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "u", "controller": True}
    metadata = {
        "name": "g-0",
        "namespace": "a",
        "annotations": {"scheduling.k8s.io/group-name": "g"},
        "labels": {"volcano.sh/job-name": "vj"},
        "ownerReferences": [owner],
    }
    lonely = {"name": "m-0", "namespace": "a", "annotations": {"scheduling.k8s.io/group-name": "missing"}}
    manifests = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        {**group, "metadata": {"name": "g", "namespace": "a"}},
        {**group, "metadata": {"name": "twice", "namespace": "a"}},
        {**group, "metadata": {"name": "twice", "namespace": "b"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": "volcano"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": lonely, "spec": {"schedulerName": "volcano"}},
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(manifests), encoding="utf-8")
    state = files.read(str(file), KNOWN)
    if isinstance(found, str):
        assert naming.find(state, what, name) == found
    else:
        with pytest.raises(StudyError, match=str(found)):
            naming.find(state, what, name)


def test_two_policies_are_compared_by_exit_status(dumped, tmp_path):
    _, file = dumped
    gang = "- plugins: [{name: gang}, {name: predicates}]"
    for name, actions in (("old", "enqueue, allocate"), ("same", "enqueue,allocate"), ("new", "enqueue")):
        (tmp_path / name).write_text(f'actions: "{actions}"\ntiers:\n{gang}\n', encoding="utf-8")
    pending = tmp_path / "pending.yaml"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"schedulerName": "volcano"}}
    pod["spec"]["containers"] = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    pending.write_text(yaml.safe_dump_all([node, pod]), encoding="utf-8")
    old, same, new = (tmp_path / name for name in ("old", "same", "new"))
    equal = run("config", "diff", old, same, "--on", pending, file)
    assert equal.exit_code == 0, equal.output
    differs = run("config", "diff", old, new, "--on", pending, "-o", "json")
    assert differs.exit_code == 1
    (job,) = json.loads(differs.stdout)[0]["jobs"]
    assert (job["before"]["standing"], job["after"]["standing"]) == ("starts", "waits")
    assert run("config", "diff", old, tmp_path / "none", "--on", pending).exit_code == 2
    assert run("config", "diff", old, new, "--on", tmp_path / "none").exit_code == 2


def test_workloads_are_taken_apart_and_what_has_a_controller_here_is_not():
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    pods = expanding.expand({**made, "spec": {"replicas": 2, "template": template}})
    assert [pod["metadata"] for pod in pods] == [{"name": f"d-{index}", "labels": {"a": "b"}} for index in range(2)]
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": []}}
    assert expanding.expand(job) == [job]
    assert expanding.expand({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}) is None


def test_watching_prints_only_what_has_changed(dumped, monkeypatch):
    _, file = dumped
    looks = []

    def sleep(_seconds):
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("pumice.cli.explain.time", SimpleNamespace(sleep=sleep))
    result = run("explain", "node", "n0", "--from", file, "--watch")
    assert result.exit_code == 130
    assert result.output.count("read from") == 1


def test_the_policy_of_another_scheduler_is_studied_without_what_is_not_provided_here():
    text = (
        'actions: "enqueue, allocate, elect, backfill"\n'
        "tiers:\n- plugins: [{name: gang, enablePreemptable: false}, {name: imaginary}]\n- plugins: [{name: extender}]\n"
    )
    kept, left_out = configuring.provided(text, KNOWN)
    assert left_out == ("action elect", "plugin imaginary", "plugin extender")
    loaded = configuring.load(kept, KNOWN, "x")
    assert loaded.action_names == ("enqueue", "allocate", "backfill")
    assert [plugin.name for plugin in loaded.plugins] == ["gang"]
    whole = (
        text.replace(", elect", "").replace(", {name: imaginary}", "").replace("- plugins: [{name: extender}]\n", "")
    )
    assert configuring.provided(whole, KNOWN) == (whole, ())


def test_arguments_that_volcano_ignores_do_not_keep_its_cluster_from_being_explained():
    text = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang, arguments: {nobody.knows: 1}}, {name: predicates}]\n'
    state = State(source="x", now=1, objects=[], text=text, configuration_source="configmap a/b")
    policy = configuring.choose(state, KNOWN)
    assert policy.source == "configmap a/b, by the rules of Volcano"
    state.text = "tiers: 1\n"
    with pytest.raises(StudyError, match="configmap a/b is refused"):
        configuring.choose(state, KNOWN)


def test_a_job_that_was_deleted_and_made_anew_is_the_one_that_is_there():
    """Pods of the old Job are still going, in a group that is named after its uid; the newer Job has a group and no pods yet."""
    old, new = remade("old-uid"), remade("new-uid")
    pod = old_pod()
    for jobs in ({}, {"new-uid": new[0]}):
        state = State(source="here", now=0, objects=[files.decoded(each) for each in (old[1], pod, new[1])], jobs=jobs)
        assert naming.find(state, "job", "train", "ml") == "ml/train-new-uid"


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        ("Completed", "it is Completed since 2026-01-01T00:00:09Z; that is over"),
        ("Failed", "it is Failed since 2026-01-01T00:00:09Z; that is over"),
        ("Aborted", "it is Aborted since 2026-01-01T00:00:09Z; `pumice job resume` starts it again"),
        ("Restarting", "it is Restarting since 2026-01-01T00:00:09Z; its controller is at work"),
        ("", "it is Pending; nobody has made them yet; do the controllers run?"),
    ],
)
def test_job_that_is_there_and_has_neither_group_nor_pods_is_not_called_missing(phase, told):
    job, _ = remade("uid")
    if phase:
        job["status"] = {"state": {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:09Z"}}
    state = State(source="here", now=0, objects=[], jobs={"uid": job})
    with pytest.raises(StudyError) as caught:
        naming.find(state, "job", "train", "ml")
    assert str(caught.value).startswith(f"Job ml/train has no PodGroup and no pods: {told}")
    with pytest.raises(StudyError, match="no job 'other/train'"):
        naming.find(state, "job", "other/train")


def test_what_the_controller_says_of_a_job_that_it_makes_no_group_for_is_the_reason():
    job, _ = remade("uid")
    job["status"] = {"state": {"phase": "Pending", "reason": "QueueNotFound", "message": "queue q does not exist"}}
    state, request = State(source="here", now=0, objects=[], jobs={"uid": job}), explanation.Request(what="job", name="ml/train")  # fmt: skip
    repeated = [SimpleNamespace(reason="QueueNotFound", message="queue q does not exist")]
    with pytest.raises(StudyError, match=r"has no PodGroup and no pods: it is Pending; queue q does not exist$"):
        explanation.answer(state, request, KNOWN, warnings=lambda _objects: repeated)


def alone(scheduler, owner="train"):
    """A pod that names no group."""
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": "u"}]
    metadata = {"name": f"{owner}-x", "namespace": "ml", "uid": f"pod-{owner}", "ownerReferences": owners}
    spec = {"schedulerName": scheduler, "containers": [{"name": "c", "image": "x"}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    return files.decoded(manifest)


@pytest.mark.parametrize(
    ("scheduler", "told"),
    [
        ("default-scheduler", "it belongs to no group; it names scheduler default-scheduler, and Pumice serves volcano unless told otherwise"),
        ("volcano", "it belongs to no group; the controllers make one for each such pod of scheduler volcano: do they run?"),
    ],
)  # fmt: skip
def test_pods_without_a_group_say_whose_they_are(scheduler, told):
    state = State(source="here", now=0, objects=[alone(scheduler), alone(scheduler, "other")])
    with pytest.raises(StudyError) as caught:
        naming.find(state, "job", "ml/train")
    assert str(caught.value) == f"train has 1 pod and no PodGroup; of ml/train-x: {told}"
    found = explanation.answer(state, explanation.Request(what="pod", name="ml/train-x"), KNOWN)
    assert (found.cause, explanation_text.body(found, verbose=False)[0]) == (told, told)


def remade(uid):
    """Return a Job and its group; the newer one is of a later second."""
    created = "2026-01-01T00:00:05Z" if uid == "new-uid" else "2026-01-01T00:00:01Z"
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": uid, "controller": True}
    job = {"metadata": {"name": "train", "namespace": "ml", "uid": uid, "creationTimestamp": created}, "spec": {}}
    metadata = {
        "name": f"train-{uid}",
        "namespace": "ml",
        "uid": f"group-{uid}",
        "creationTimestamp": created,
        "ownerReferences": [owner],
    }
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata}
    return job, {**group, "spec": {"minMember": 1}}


def old_pod():
    """Return a pod of the old Job that is going."""
    metadata = {
        "name": "train-w-0",
        "namespace": "ml",
        "uid": "pod",
        "creationTimestamp": "2026-01-01T00:00:02Z",
        "deletionTimestamp": "2026-01-01T00:00:09Z",
        "annotations": {"scheduling.k8s.io/group-name": "train-old-uid", "volcano.sh/job-name": "train"},
        "ownerReferences": remade("old-uid")[1]["metadata"]["ownerReferences"],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}


def test_last_warning_about_a_job_without_a_group_is_told_beside_it():
    job, _ = remade("uid")
    state = State(source="here", now=0, objects=[], jobs={"uid": job})
    asked = []

    def warnings(objects):
        asked.extend(objects)
        return [SimpleNamespace(reason="Old", message="x"), SimpleNamespace(reason="FailedCreate", message="queue q is Closed")]  # fmt: skip

    with pytest.raises(StudyError, match=r"do the controllers run\?\nFailedCreate: queue q is Closed$"):
        explanation.answer(state, explanation.Request(what="job", name="ml/train"), KNOWN, warnings=warnings)
    assert asked == [("ml", "train")]


def test_warnings_about_whoever_has_to_make_the_pods_of_a_group_are_shown():
    """Nothing in the cluster says why there are no pods but what their controller was told."""
    job, group = remade("uid")
    job["spec"] = {"schedulerName": "mine"}
    state = State(source="here", now=0, objects=[files.decoded(group), alone("default-scheduler")], jobs={"uid": job})
    about = SimpleNamespace(kind="Job", namespace="ml", name="train")

    def warnings(objects):
        told = SimpleNamespace(involved_object=about, type="Warning", reason="FailedCreate", message="exceeded quota: q", last_timestamp="", first_timestamp="")  # fmt: skip
        return [told] if ("ml", "train") in objects else []

    request = explanation.Request(what="job", name="ml/train", search=False)
    found = explanation.answer(state, request, KNOWN, warnings=warnings)
    assert found.schedulers == ("mine",)
    assert "job ml/train: Event Warning, FailedCreate: exceeded quota: q" in explanation_text.body(found, verbose=False)


@pytest.mark.parametrize(("minimum", "shown"), [(2, True), (1, False)])
def test_warnings_about_who_makes_pods_are_shown_as_long_as_some_are_missing(minimum, shown):
    job, group = remade("old-uid")
    group["spec"]["minMember"] = minimum
    pod = old_pod()
    del pod["metadata"]["deletionTimestamp"]
    pod["spec"] = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "x"}]}
    state = State(source="here", now=0, objects=[files.decoded(group), files.decoded(pod)], jobs={"old-uid": job})
    asked = []
    request = explanation.Request(what="job", name="ml/train", search=False)
    explanation.answer(state, request, KNOWN, warnings=lambda objects: asked.extend(objects) or [])
    assert (("ml", "train") in asked) is shown


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("PodGroupPending", "PodGroup ml:train unschedulable, reason: queue q has 1 of its 2 cpu left"),
        ("InvalidSpec", "queue nowhere does not exist; create it or name another in spec.queue"),
    ],
)
def test_warnings_that_repeat_the_cause_are_no_line_of_their_own(reason, message):
    job, group = remade("uid")
    group["spec"]["queue"] = "nowhere"
    state = State(source="here", now=60_000_000, objects=[files.decoded(group)], jobs={"uid": job})
    about = SimpleNamespace(kind="Job", namespace="ml", name="train")
    told = SimpleNamespace(involved_object=about, type="Warning", reason=reason, message=message, last_timestamp="", first_timestamp="")  # fmt: skip
    request = explanation.Request(what="job", name="ml/train", search=False)
    found = explanation.answer(state, request, KNOWN, warnings=lambda _objects: [told])
    lines = explanation_text.body(found, verbose=False)
    assert lines[0] == "queue nowhere does not exist"
    assert [line for line in lines if message in line] == []
