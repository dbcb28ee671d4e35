"""Hyper-nodes: members that can be found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pumice.admission import laws, naming
from pumice.admission.pod_templates import placing
from pumice.api import documents
from pumice.model import pattern_parsing, patterns

if TYPE_CHECKING:
    from pumice.admission.parts import Part
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

_WAYS: Final = ("exactMatch", "regexMatch", "labelMatch")
# How Go's regular expressions say what Python's say otherwise, or not at all.
_OF_GO: Final = (
    (re.compile(r"\\[pP](\{\^?\w+\}|[A-Z])"), "x"),
    (re.compile(r"\\Q.*?(\\E|$)"), "x"),
    (re.compile(r"\\x\{[0-9A-Fa-f]+\}"), "x"),
    (re.compile(r"\\[Cz]"), "x"),
    (re.compile(r"\(\?<(?=\w)"), "(?P<"),
    (re.compile(r"\(\?([ims]*)U([ims]*)(?=[:)])"), r"(?\1\2"),
    (re.compile(r"\(\?\)"), ""),
)
_LOOKS: Final = re.compile(r"\(\?<?[=!]|\\[1-9]|\(\?P=|\(\?>|\(\?\(|[*+?}]\+")


def judge(request: Request, found: Remarks, _: Surroundings, __: RuleSettings) -> None:
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
            placing.judge_selector(selector.record(way).under(laws.SELECTOR))
        if kind == "HyperNode" and way != "exactMatch":
            message = "finds nothing: members of type HyperNode are found by exactMatch alone"
            selector.breaks(laws.FINDS_NOTHING, message, way)


def _judge_pattern(match: Part) -> None:
    pattern = match.required("pattern")
    if pattern:
        try:
            patterns.searcher(pattern)
        except pattern_parsing.PatternError as error:
            elsewhere = _is_expression(pattern)
            said = "which cannot be followed here and finds nobody" if elsewhere else "which is no regular expression"
            law = laws.PATTERN_FORM if elsewhere else laws.PATTERN
            match.breaks(law, f"is {documents.quoted(pattern)}, {said}: {error}", "pattern")


def _is_expression(pattern: str) -> bool:
    """Tell whether Go's programs could read a pattern that ours cannot, such as one with classes of Unicode."""
    plain = pattern
    for written, instead in _OF_GO:
        plain = written.sub(instead, plain)
    try:
        re.compile(plain)
    except (re.error, OverflowError, RecursionError):
        return False
    return _LOOKS.search(plain) is None
