"""Hyper-nodes: members that can be found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import naming
from pumice.admission.pod_templates import placing
from pumice.api import documents
from pumice.model import pattern_parsing, patterns

if TYPE_CHECKING:
    from pumice.admission.parts import Part
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, Settings
    from pumice.admission.surroundings import Surroundings

_WAYS: Final = ("exactMatch", "regexMatch", "labelMatch")


def judge(request: Request, found: Remarks, _: Surroundings, __: Settings) -> None:
    """Judge a hyper-node that is created or changed."""
    if request.operation == "UPDATE" and request.object.get("spec") == request.old.get("spec"):
        return
    spec = request.part(found).record("spec")
    if spec.whole("tier", least=0) is None and spec.part("tier").value is None:
        spec.refuse("is missing, and must be at least 0", "tier")
    members = spec.items("members")
    if not spec.part("members").value:
        spec.refuse("is empty, and must hold at least one member", "members")
    for member in members:
        _judge_member(member)


def _judge_member(member: Part) -> None:
    member.required("type")
    kind = member.among("type", ("Node", "HyperNode"))
    selector = member.record("selector")
    given = [way for way in _WAYS if selector.part(way).value is not None]
    if len(given) != 1:
        selector.refuse(f"must have exactly one of {', '.join(_WAYS)}, not {len(given)}")
    for way in given:
        if way == "exactMatch":
            name = selector.record(way).required("name")
            if name and (problem := naming.subdomain(name)):
                selector.refuse(f"is {documents.quoted(name)}, and {problem}", way, "name")
        elif way == "regexMatch":
            _judge_pattern(selector.record(way))
        else:
            placing.judge_selector(selector.record(way))
        if kind == "HyperNode" and way != "exactMatch":
            selector.warn("finds nothing: members of type HyperNode are found by exactMatch alone", way)


def _judge_pattern(match: Part) -> None:
    pattern = match.required("pattern")
    if pattern:
        try:
            patterns.searcher(pattern)
        except pattern_parsing.PatternError as error:
            match.refuse(f"is {documents.quoted(pattern)}, which is no regular expression: {error}", "pattern")
