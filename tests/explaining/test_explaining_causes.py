"""Why something waits is one sentence, first wherever it is told, right for each of the commonest causes, and written again only when the cause is another."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from builders import Desk, group, node, pod
from pumice.api import decoding, kinds
from pumice.apiserver.tables import json_paths
from pumice.cli.program import program
from pumice.controllers.volcano.jobs import pod_groups
from pumice.framework import reason_keys
from pumice.manifests import resources
from pumice.scenario import stage, steps, suite
from pumice.study.following import tracking

FOLDER = Path(__file__).parents[2] / "docs/examples/why"
NOW = 1_767_225_700_000_000

CAUSES = {
    "01-no-room": "no node has 64 cpu free: the freest of 4, node-2, has 12 cpu",
    "02-quota": "not let in: quota ml/compute has 6 of its 8 cpu in use, the job asks for 4 more",
    "03-queue-capability": "queue team holds 6 of its 8 cpu, the job asks for 4 more",
    "04-queue-closed": "queue team is Closed, only Open queues start new jobs",
    "05-selector": "no node has the label disk=nvme that its nodeSelector asks for",
    "06-taint": "all 2 nodes have taints that it does not tolerate, such as dedicated=gpu:NoSchedule on n1",
    "07-claim-unbound": "claim data is not bound: storage class fast does not exist",
    "08-below-min-member": "only 2 of the 3 pods that minMember needs exist",
    "09-gang-fits-partly": "room for 2 of the 3 pods it needs, then no node has 5 cpu free",
    "10-waits-for-victims": "waits for pods evicted for it to go: ml/old-1",
    "11-not-let-in": "not let in: queue team holds 6 of its 8 cpu, the job asks for 4 more",
    "12-missing-queue": "queue tema does not exist",
    "13-missing-group": "its PodGroup ml/train does not exist",
    "14-priority-class": "priority class hihg does not exist, so it has priority 0, and no node has 4 cpu free: the freest of 2, n1, has 0 cpu",
}


def seen(file):
    """What is stored at the first expectation of a scenario."""
    (scenario,) = suite.collect([str(FOLDER / f"{file}.yaml")])
    played = stage.build(scenario)
    for step in scenario.steps:
        if not isinstance(step, steps.Cycles):
            break
        for _ in range(step.count):
            played.cycle(scenario.period)
    return played.view(played.counts())


def message(manifest, kind):
    return next(each["message"] for each in manifest["status"]["conditions"] if each["type"] == kind)


def column(kind, manifest):
    """What `kubectl get` shows in the column REASON."""
    (found,) = [each for each in (*resources.SCHEDULING, *resources.WORKLOADS) if each.kind is kind]
    (path,) = [each.path for each in found.columns if each.name == "Reason"]
    assert found.columns[-1].name == "Reason"
    (value,) = json_paths.find(manifest, path)
    return value


@pytest.mark.parametrize(("file", "cause"), CAUSES.items(), ids=CAUSES)
def test_the_cause_comes_first_on_the_pod_on_the_group_and_in_every_list(file, cause):
    world = seen(file)
    assert message(world.pods["ml/train-0"], "PodScheduled").startswith(f"{cause}; ")
    if file == "13-missing-group":
        return
    stored = world.pod_groups["ml/train"]
    told = message(stored, "Unschedulable")
    assert told.startswith(f"{cause}; ")
    assert column(kinds.POD_GROUP, stored) == told
    assert reason_keys.cause(told) == cause
    assert pod_groups.cause(stored, "") == ("" if file == "08-below-min-member" else cause)
    tracker = tracking.Tracker()
    raw = msgspec.json.encode({"apiVersion": kinds.POD_GROUP.api_version, "kind": "PodGroup", **stored})
    tracker.feed(kinds.POD_GROUP, "ADDED", decoding.decode_json(kinds.POD_GROUP, raw))
    assert tracker.look(NOW).jobs[0].reason == cause


@pytest.mark.parametrize(("file", "cause"), CAUSES.items(), ids=CAUSES)
@pytest.mark.parametrize("what", ["job", "pod"])
def test_an_answer_begins_with_the_cause_and_has_five_lines(file, cause, what):
    name = "ml/train" if what == "job" else "ml/train-0"
    asked = ["explain", what, name, "--from", str(FOLDER / f"{file}.yaml"), "--no-search"]
    told = CliRunner().invoke(program, asked)
    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert lines[0] == cause
    assert len(lines) <= 5
    assert msgspec.json.decode(CliRunner().invoke(program, [*asked, "-o", "json"]).stdout)["cause"] == cause
    assert CliRunner().invoke(program, [*asked, "-v"]).stdout.startswith(f"{cause}\n")


def test_the_cause_is_seen_on_eighty_columns():
    shortened = {file: cause[:80] for file, cause in CAUSES.items()}
    for file, key in (
        ("01-no-room", "the freest of 4, node-2, has 12 cpu"),
        ("06-taint", "taints that it does not tolerate"),
        ("14-priority-class", "no node has 4 cpu"),
    ):
        assert key in shortened[file]
    assert all(len(cause) <= 80 for file, cause in CAUSES.items() if file not in ("06-taint", "14-priority-class"))


# -- what will never be, before what may pass --------------------------------------------------------------------

FULL = [pod("web", scheduler="else", cpu="32", node="n1"), pod("app", scheduler="else", cpu="32", node="n2")]
NEVER = [
    ("more than a node has", {"cpu": "33"}, "no node has 33 cpu at all: the largest of 2, n1, has 32"),
    ("what nobody offers", {"requests": {"example.com/acc": "1"}}, "no node offers example.com/acc, it asks for 1"),
    ("a label", {"cpu": "1", "nodeSelector": {"disk": "nvme"}}, "no node has the label disk=nvme that its nodeSelector asks for"),
]  # fmt: skip


@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize(("case", "asked", "cause"), NEVER, ids=[row[0] for row in NEVER])
def test_what_no_node_could_ever_do_is_said_on_a_full_cluster_too(case, asked, cause, full):
    made = Desk().feed(node("n1", cpu="32"), node("n2", cpu="32"), *(FULL if full else []))
    made.feed(group("g", 1), pod("g-0", "g", **asked))
    made.cycle()
    told = [patch.body["status"]["conditions"][-1]["message"] for patch in made.world.patches("Pod")]
    told += [patch.body["status"]["conditions"][-1]["message"] for patch in made.world.patches("PodGroup")]
    assert len(told) == 2
    assert all(each.startswith(f"{cause}; ") for each in told)


def test_a_node_that_becomes_large_enough_is_news_though_it_is_full():
    made = Desk().feed(node("n1", cpu="32"), pod("web", scheduler="else", cpu="30", node="n1"))
    made.feed(group("g", 1), pod("g-0", "g", cpu="33"))
    made.cycle()
    made.modify(node("n1", cpu="36"))
    made.cycle()
    told = [patch.body["status"]["conditions"][0]["message"].partition(":")[0] for patch in made.world.patches("Pod")]
    assert told == ["no node has 33 cpu at all", "no node has 33 cpu free"]


# -- what is written ---------------------------------------------------------------------------------------------


def test_another_freest_node_and_other_numbers_are_not_written_again():
    made = Desk().feed(*(node(f"n{i}", cpu="8") for i in range(3)), group("g", 1), pod("g-0", "g", cpu="6"))
    made.feed(*(pod(f"w{i}", scheduler="else", cpu=str(4 + i), node=f"n{i}") for i in range(3)))
    made.cycle()
    assert "n0, has 4 cpu" in made.world.patches("Pod")[0].body["status"]["conditions"][0]["message"]
    made.world.effects.clear()
    made.feed(pod("more", scheduler="else", cpu="2", node="n0"))
    made.cycle()
    made.feed(pod("most", scheduler="else", cpu="1", node="n1"))
    made.cycle()
    assert made.world.patches("Pod") == []
    assert made.world.patches("PodGroup") == []


def test_a_gang_of_which_now_more_and_now_less_fits_is_not_written_again():
    made = Desk().feed(*(node(f"n{i}", cpu="8") for i in range(3)), group("g", 3))
    made.feed(*(pod(f"g-{i}", "g", cpu="6") for i in range(3)), pod("w0", scheduler="else", cpu="4", node="n0"))
    made.feed(pod("w1", scheduler="else", cpu="4", node="n1"))
    made.cycle()
    made.world.effects.clear()
    made.delete(pod("w1", scheduler="else", cpu="4", node="n1"))
    made.cycle()
    assert made.world.patches("PodGroup") == []


@pytest.mark.parametrize("older", [False, True], ids=["by this version", "by an older one"])
def test_what_is_written_is_written_anew_once_at_the_most(older):
    first = Desk().feed(node("n1", cpu="8"), pod("w", scheduler="else", cpu="4", node="n1"))
    first.feed(group("g", 1), pod("g-0", "g", cpu="6"))
    first.cycle()
    (condition,) = first.world.patches("Pod")[0].body["status"]["conditions"]
    status = first.world.patches("PodGroup")[-1].body["status"]
    if older:
        condition = {**condition, "message": reason_keys.parted(condition["message"])[1]}
        status["conditions"][0]["message"] = reason_keys.parted(status["conditions"][0]["message"])[1]
    listed, waiting = group("g", 1), pod("g-0", "g", cpu="6")
    listed["status"], waiting["status"]["conditions"] = status, [condition]
    made = Desk().feed(node("n1", cpu="8"), pod("w", scheduler="else", cpu="3", node="n1"), listed, waiting)
    for _ in range(5):
        made.cycle()
    assert len(made.world.patches("Pod")) == len(made.world.patches("PodGroup")) == int(older)
