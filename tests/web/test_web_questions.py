"""Questions are answered by a process of their own, in the words of the commands, one at a time and within a time."""

from __future__ import annotations

import asyncio
import os
import resource as limits
import signal
import tempfile
from pathlib import Path

import msgspec
import pytest
import web_worlds as worlds

from pumice.api import kinds
from pumice.framework import registry
from pumice.model import resources
from pumice.study import explanation, explanation_text, files
from pumice.study.state import StudyError
from pumice.web import asking, questions, sources, studying
from pumice.web.sight import EVERYTHING, Sight

EXAMPLE = "docs/examples/why/03-queue-capability.yaml"


@pytest.fixture(scope="module")
def example():
    known = registry.installed()
    state = files.read(EXAMPLE, known)
    return known, state, sources.from_state(state, known, sources.Policy())


def job_of(state):
    groups = [each for each in state.of(kinds.POD_GROUP) if each.status.phase != "Running"]
    return f"{groups[0].metadata.namespace}/{groups[0].metadata.name}"


def test_job_and_queue_are_explained_as_the_command_does_it_and_changes_are_taken_in(example):
    known, state, cluster = example
    request = explanation.Request(what="job", name=job_of(state))
    expected = explanation_text.body(explanation.answer(state, request, known), verbose=True)
    namespace, _, name = request.name.partition("/")

    async def run():
        asked = questions.Explain("job", request.name)
        try:
            first = await cluster.ask(asked)
            shares = msgspec.json.decode((await cluster.ask(questions.Shares())).body)["queues"]
            told = [await cluster.ask(questions.Explain("queue", each)) for each in shares]
            worlds.feed(cluster, "DELETED", worlds.group(name, namespace=namespace))
            return first, shares, told, await cluster.ask(asked)
        finally:
            await cluster.close()

    first, shares, told, later = asyncio.run(run())
    assert first.problem == ""
    assert msgspec.json.decode(first.body)["lines"] == expected
    # The bars say what explain says.
    for name, share in shares.items():
        (explained,) = (
            answer["explanation"]
            for answer in (msgspec.json.decode(each.body)["answer"] for each in told)
            if answer["name"] == name
        )
        dimensions = {each["resource"]: each for each in explained["dimensions"]}
        assert set(share["amounts"]) == set(dimensions)
        for resource, amounts in share["amounts"].items():
            for field in ("held", "asked", "due", "guarantee", "ceiling"):
                if amounts[field] is not None:
                    assert resources.shown(resource, amounts[field]) == dimensions[resource][field], (name, resource)
    assert msgspec.json.decode(later.body)["lines"] != expected


def ask_of(question, seconds=30.0):
    return questions.Ask(question, worlds.NOW, seconds)


def studied(*manifests):
    study = studying.Study()
    study.take(
        questions.Feed([(each["apiVersion"], each["kind"], "ADDED", msgspec.json.encode(each)) for each in manifests])
    )
    study.take(questions.About(source="a test"))
    return study


def small():
    return studied(
        worlds.node("n-0"),
        worlds.queue("default"),
        worlds.queue("root"),
        worlds.group("waits", minimum=1),
        worlds.pod("waits-0", "waits", cpu="9"),
    )


def test_answer_that_takes_too_long_is_ended_and_the_next_one_comes(monkeypatch):
    study = small()
    monkeypatch.setattr(studying.answers, "answer", lambda *_: signal.pause())
    late = studying.answered(study, ask_of(questions.Shares(), 0.2))
    assert late.problem.startswith("no answer within 0.2 s")
    monkeypatch.undo()
    assert studying.answered(study, ask_of(questions.Shares())).problem == ""


def test_answer_that_takes_too_much_memory_is_told_so_and_the_next_one_comes(monkeypatch):
    study = small()
    monkeypatch.setattr(studying.answers.explaining, "Explainer", lambda *_: bytearray(1 << 45))
    assert studying.answered(study, ask_of(questions.Shares())).problem == studying.TOO_MUCH
    monkeypatch.undo()
    assert studying.answered(study, ask_of(questions.Shares())).problem == ""


def test_copy_that_answers_goes_behind_everybody_else_and_has_bounded_memory(monkeypatch):
    def told(*_):
        first = Path("/proc/self/oom_score_adj").read_text(encoding="ascii").strip()
        soft = limits.getrlimit(limits.RLIMIT_AS)[0]
        return questions.Answer(problem=f"{os.nice(0) - nice} {first} {soft != limits.RLIM_INFINITY}")

    nice = os.nice(0)
    monkeypatch.setattr(studying.answers, "answer", told)
    assert studying.answered(small(), ask_of(questions.Shares())).problem == f"{min(10, 19 - nice)} 1000 True"
    assert os.nice(0) == nice


def deployment(replicas, name="big", size=1):
    template = {"spec": {"containers": [{"name": "c", "image": "x" * size}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "a"}, "spec": {"replicas": replicas, "template": template}}  # fmt: skip


def volcano_job(replicas, namespace="a", name="gang"):
    template = {"spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "9"}}}]}}
    spec = {"schedulerName": "volcano", "minAvailable": 1, "queue": "default", "tasks": [{"name": "worker", "replicas": replicas, "template": template}]}  # fmt: skip
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name, "namespace": namespace}, "spec": spec}  # fmt: skip


@pytest.mark.parametrize(
    ("pasted", "told"),
    [
        ([deployment(20_001)], "Deployment a/big would make 20001 pods, 20001 with those before it, and at most 20000"),
        ([deployment(15_000, "first"), deployment(15_000)], "Deployment a/big would make 15000 pods, 30000 with"),
        ([volcano_job(10**9)], "Job a/gang would make 1000000000 pods"),
        ([deployment(20_000), deployment(1, "more")], "Deployment a/more would make 1 pods, 20001 with"),
        ([deployment(3_000, size=100_000)], "Deployment a/big would make 3000 pods, which come to 286 MiB"),
    ],
)
def test_what_is_pasted_may_come_to_only_so_many_pods(pasted, told):
    text = msgspec.json.encode(pasted).decode()
    assert told in studying.answered(small(), ask_of(questions.WhatIf(manifests=text))).problem


def test_process_that_ends_before_it_has_answered_is_told(monkeypatch):
    study = small()
    monkeypatch.setattr(studying.answers, "answer", lambda *_: os._exit(1))
    assert "ended before it did" in studying.answered(study, ask_of(questions.Shares())).problem


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (questions.WhatIf(manifests="kind: ["), "what was pasted"),
        (questions.WhatIf(manifests="kind: Pod"), "without kind or metadata.name"),
        (questions.WhatIf(config="actions: fly"), "fly"),
        (questions.WhatIf(drain=("nowhere",)), "nowhere"),
        (questions.Explain("job", "a/nobody"), "nobody"),
        (questions.Explain("queue", "<script>"), "<script>"),
    ],
)
def test_bad_questions_are_answered_with_what_is_wrong(question, told):
    answer = studying.answered(small(), ask_of(question))
    assert told in answer.problem
    assert "/tmp" not in answer.problem  # noqa: S108  files of this machine mean nothing to who asked


def test_what_if_and_policy_say_what_the_commands_say():
    study = small()
    smaller = worlds.pod("waits-0", "waits", cpu="1")
    compared = studying.answered(study, ask_of(questions.WhatIf(manifests=msgspec.json.encode(smaller).decode())))
    assert compared.problem == ""
    assert "1 job differs" in msgspec.json.decode(compared.body)["lines"][-1]
    policy = msgspec.json.decode(studying.answered(study, ask_of(questions.Policy())).body)
    assert policy["actions"] == ["enqueue", "allocate", "backfill"]
    assert policy["source"] == "the built-in default"


def test_names_that_are_near_are_told_to_who_sees_everything():
    own = Sight(groups=frozenset({"a"}), pods=frozenset({"a"}))
    for name in ("a/wait", "a/" + "x" * 40):
        ask = questions.Ask(questions.Explain("job", name), worlds.NOW, 30.0, own)
        assert studying.answered(small(), ask).problem == f"no job '{name}'"
        assert ";" in studying.answered(small(), ask_of(ask.question)).problem


def test_what_breaks_down_is_told_in_full_only_to_who_sees_everything(monkeypatch):
    def told(sight):
        return studying.answered(small(), questions.Ask(questions.Shares(), worlds.NOW, 30.0, sight)).problem

    def fail(*_args, **_kwargs):
        raise StudyError("b/secret")

    def break_down(*_args, **_kwargs):
        raise KeyError("secret-0")

    own = Sight(queues=True, groups=frozenset({"a"}))
    for what in (fail, break_down):
        monkeypatch.setattr(studying.configuring, "choose", what)
        assert "secret" in told(EVERYTHING)
        assert told(own) == studying.NO_MODEL
    monkeypatch.undo()
    monkeypatch.setattr(studying.answers.explaining.Explainer, "shares", break_down)
    assert "secret" in told(EVERYTHING)
    assert told(own) == studying.answers.BREAKS_DOWN


def test_object_that_cannot_be_read_hides_nobody_else():
    study = studied(worlds.node("n-0"), worlds.queue("default"), {**worlds.pod("bad"), "spec": {"containers": 7}})
    assert studying.answered(study, ask_of(questions.Shares())).problem == ""


def test_questions_that_pile_up_are_refused():
    async def run():
        cluster = worlds.small()
        asked = asking.Asking(cluster.objects.whole, lambda: cluster.about, lambda: worlds.NOW, cluster.then)
        waiting = [asyncio.create_task(asked.ask(questions.Shares(), EVERYTHING)) for _ in range(asking.MOST_WAITING)]
        await asyncio.sleep(0)
        try:
            return await asked.ask(questions.Shares(), EVERYTHING)
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    assert "try again in a moment" in asyncio.run(run()).problem


PREEMPTS = """
actions: "enqueue, allocate, preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def test_node_names_who_could_have_to_go_and_for_whom():
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent", "uid": "u"}, "value": 9}  # fmt: skip
    claims = worlds.group("claims")
    claims["spec"]["priorityClassName"] = "urgent"
    study = studied(
        *(worlds.node("n-0"), worlds.queue("default"), worlds.queue("root"), urgent, claims),
        worlds.pod("claims-0", "claims", cpu="9"),  # more than the node has, so nobody goes for it now
        worlds.group("runs", phase="Running"),
        *(worlds.pod(f"runs-{index}", "runs", "n-0", cpu="2") for index in range(2)),  # its gang needs one of them
        worlds.pod("alone", "", "n-0", cpu="1"),
    )
    study.take(questions.About(source="a test", text=PREEMPTS, configuration="here"))
    body = msgspec.json.decode(studying.answered(study, ask_of(questions.Explain("node", "n-0"))).body)
    assert body["leaving"] == [
        {"pod": "a/runs-1", "action": "preempt", "claimant": "a/claims", "claimants": 1, "decided": False}
    ]


def test_rehearsal_that_is_ended_leaves_no_file_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(studying.answers.comparing, "compare", lambda *_, **__: signal.pause())
    text = msgspec.json.encode(worlds.group("more")).decode()
    for question in (questions.WhatIf(manifests=text), questions.WhatIf(config=PREEMPTS)):
        assert studying.answered(small(), ask_of(question, 0.5)).problem.startswith("no answer within")
    assert list(tmp_path.iterdir()) == []
