"""Answers to questions about a cluster that stands in memory: what the commands print, as records for the page and as their lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.framework import explaining
from pumice.framework import registry as registries
from pumice.server.configuration import plugin_files
from pumice.study import (
    changing,
    comparing,
    comparison_text,
    configuration_text,
    configuring,
    expanding,
    explanation,
    explanation_text,
    files,
    leaving,
    naming,
    rights,
)
from pumice.study.state import StudyError
from pumice.web import hiding, questions, rehearsing
from pumice.web.sight import EVERYTHING

if TYPE_CHECKING:
    from pumice.framework.registry import Registry
    from pumice.study.configuring import Policy
    from pumice.study.rehearsal import Rehearsal
    from pumice.study.state import State
    from pumice.web.sight import Sight

PASTED: Final = "what was pasted"
BREAKS_DOWN: Final = "the answer breaks down; somebody who may see the whole cluster is told why"
MOST_PODS: Final = 20_000
MOST_SIZE: Final = 256 << 20
"""Pods, and bytes of them, that what is pasted may come to; the CLI takes more."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What answers rest on: the objects, the policy in force, and a model of them under it."""

    state: State
    policy: Policy
    rehearsal: Rehearsal
    known: Registry
    given: str = ""
    since: int = 0


def registry(plugins: str) -> Registry:
    """Give the plugins and actions that a policy may list."""
    known = registries.installed()
    return plugin_files.extend(known, plugins) if plugins else known


def answer(subject: Subject, question: questions.Question, sight: Sight = EVERYTHING) -> questions.Answer:
    """Answer a question, without names that may not be seen; what goes wrong is part of the answer."""
    try:
        told = _answered(subject, question, sight)
    except rehearsing.RefusedError as error:
        return questions.Answer(problem=str(error))
    if sight.is_whole:
        return told
    hider = _hider(subject, sight)
    body = msgspec.json.encode(hider.value(msgspec.json.decode(told.body))) if told.body else b""
    return questions.Answer(body=body, problem=hider.text(told.problem))


def _hider(subject: Subject, sight: Sight) -> hiding.Hider:
    """Know all names there are, and what stands for those that may not be read; a name that something else has, too, may be."""
    namespaces: set[str] = set()
    hidden: dict[str, str] = {}
    known: set[str] = set()
    for kind, found in subject.state.objects:
        namespace, name = found.metadata.namespace, found.metadata.name
        namespaces.add(namespace)
        if kind is kinds.NODE or kind is kinds.QUEUE:
            may, instead = (sight.nodes, hiding.NODE) if kind is kinds.NODE else (sight.queues, hiding.QUEUE)
        elif namespace:
            may, instead = sight.names(namespace), hiding.JOB
        else:
            continue
        if may:
            known.add(name)
        else:
            hidden[name] = instead
    return hiding.Hider(sight, namespaces.__contains__, lambda name: None if name in known else hidden.get(name))


def _answered(subject: Subject, question: questions.Question, sight: Sight) -> questions.Answer:
    try:
        match question:
            case questions.Explain():
                found = _explained(subject, question)
            case questions.Shares():
                found = _shares(subject)
            case questions.Policy():
                found = _policy(subject)
            case questions.WhatIf():
                found = _what_if(subject, question, sight)
        return questions.Answer(body=msgspec.json.encode(found))
    except naming.UnknownNameError as error:
        # What is near may be elsewhere, and its number tells of it.
        return questions.Answer(problem=str(error) if sight.is_whole else str(error).partition(";")[0])
    except StudyError as error:
        return questions.Answer(problem=str(error))
    except (MemoryError, rehearsing.RefusedError):
        raise  # there may not even be memory to tell it; what is refused has nothing to be hidden
    except Exception as error:  # noqa: BLE001  whoever asked is told
        why = f"the answer breaks down: {type(error).__name__}: {error}"
        return questions.Answer(problem=why if sight.is_whole else BREAKS_DOWN)


def _explained(subject: Subject, asked: questions.Explain) -> dict[str, Any]:
    request = explanation.Request(what=asked.what, name=asked.name, config=subject.given, search=asked.search)
    told = explanation.answer(
        subject.state,
        request,
        subject.known,
        kept=lambda policy: subject.rehearsal if policy.options == subject.policy.options else None,
        clock=time.monotonic,  # somebody waits for it
    )
    found = {"answer": told, "lines": explanation_text.body(told, verbose=True)}
    if asked.what == "node" and told.explanation is not None:
        found["leaving"] = leaving.from_node(subject.rehearsal, told.name)
    return found


def _shares(subject: Subject) -> dict[str, Any]:
    rehearsal = subject.rehearsal
    with rehearsal.cycle() as (session, _):
        shares = explaining.Explainer(rehearsal.engine, session).shares()
        return {"queues": {each.queue: each for each in shares}, "hyperNodes": _hyper_nodes(rehearsal)}


def _hyper_nodes(rehearsal: Rehearsal) -> dict[str, str]:
    """Give the lowest hyper-node of each node that is in one."""
    tree, table = rehearsal.cluster.hyper_nodes.tree, rehearsal.cluster.nodes
    if tree.is_flat:
        return {}
    return {
        record.name: tree.domains[index].name
        for record, index in zip(table.records[: table.count], tree.lowest.tolist(), strict=True)
        if index >= 0
    }


def _policy(subject: Subject) -> dict[str, Any]:
    policy = subject.policy
    loaded, known = policy.configuration, subject.known.catalog()
    return {
        "source": policy.source,
        "since": 0 if subject.given else subject.since,
        "given": bool(subject.given),
        "schedulers": policy.options.scheduler_name,
        "text": configuration_text.render(loaded, known),
        "actions": loaded.action_names,
        "tiers": [[plugin.name for plugin in tier] for tier in loaded.tiers],
        "warnings": [str(each) for each in loaded.warnings],
        "leftOut": policy.left_out,
    }


def _what_if(subject: Subject, asked: questions.WhatIf, sight: Sight) -> dict[str, Any]:
    before = after = subject.policy
    rights.check(subject.state, before.configuration, given_policy=bool(subject.given))
    if asked.config:
        after = configuring.Policy(configuring.load_text(asked.config, PASTED, subject.known), PASTED, before.options)
    bounds = expanding.Bounds(MOST_PODS, MOST_SIZE)
    manifests = tuple(files.manifests_in(asked.manifests, PASTED, bounds)) if asked.manifests else ()
    rehearsing.check(manifests, sight)
    change = changing.Change(apply=manifests, drain=asked.drain)
    found = comparing.compare(subject.state, before, after, subject.known, change=change)
    found = found if sight.is_whole else rehearsing.seen(found, sight)
    return {"comparison": found, "lines": list(comparison_text.lines(found))}
