"""Questions are answered by a process of their own, in the words of the commands, one at a time and within a time."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile

import msgspec
import pytest
import web_worlds as worlds

from pumice.api import kinds
from pumice.framework import registry
from pumice.model import resources
from pumice.study import explanation, explanation_text, files
from pumice.web import asking, questions, sources, studying
from pumice.web.sight import EVERYTHING

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


def test_object_that_cannot_be_read_hides_nobody_else():
    study = studied(worlds.node("n-0"), worlds.queue("default"), {**worlds.pod("bad"), "spec": {"containers": 7}})
    assert studying.answered(study, ask_of(questions.Shares())).problem == ""


def test_questions_that_pile_up_are_refused():
    async def run():
        cluster = worlds.small()
        asked = asking.Asking(cluster.objects.whole, lambda: cluster.about, lambda: worlds.NOW)
        asked._waiting = asking.MOST_WAITING
        return await asked.ask(questions.Shares(), EVERYTHING)

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
