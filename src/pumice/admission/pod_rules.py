"""The file that says what pods of each resource group are given, as Volcano's `--admission-conf` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pumice.admission import parts, remarks
from pumice.admission.pod_templates import placing, template
from pumice.admission.requests import PodRule
from pumice.api import documents, names

if TYPE_CHECKING:
    from pumice.admission.parts import Part

_KNOWN: Final = ("resourceGroup", "object", "schedulerName", "tolerations", "labels", "affinity")


class PodRulesError(ValueError):
    """A file that cannot be followed, with every problem and its line."""

    def __init__(self, source: str, problems: list[str]) -> None:
        super().__init__(f"{source}: {'; '.join(problems)}")
        self.problems = problems


def load(text: str, source: str) -> tuple[PodRule, ...]:
    """Read the rules, in order; an empty file has none."""
    try:
        read = documents.load_all(text, source)
    except documents.DocumentError as error:
        raise PodRulesError(source, [f"line {error.line}: {error.message}"]) from None
    if not read:
        return ()
    if len(read) > 1:
        raise PodRulesError(source, [f"has {len(read)} documents, and must have one"])
    found = remarks.Remarks()
    if not isinstance(read[0].data, dict):
        raise PodRulesError(source, [f"must be a map, not {documents.described(read[0].data)}"])
    top = parts.Part(read[0].data, found)
    for key in top.value:
        if key != "resourceGroups":
            top.refuse("is not known; there is resourceGroups", key)
    rules = [_rule(each) for each in top.items("resourceGroups")]
    if found.refusals:
        lines = [f"line {read[0].line_of(each.path)}: {each}" for each in found.refusals]
        raise PodRulesError(source, lines)
    return tuple(rules)


def _rule(entry: Part) -> PodRule:
    for key in entry.value:
        if key not in _KNOWN:
            near = documents.nearest(str(key), _KNOWN)
            entry.refuse(f"is not known{f'; did you mean {near}?' if near else ''}", key)
    group = entry.required("resourceGroup")
    key, values = _match(entry, group)
    template.judge_labels(entry, "labels")
    for toleration in entry.items("tolerations"):
        placing.judge_toleration(toleration)
    return PodRule(
        group=group,
        key=key,
        values=values,
        scheduler=entry.text("schedulerName"),
        labels={name: part.value for name, part in entry.entries("labels") if isinstance(part.value, str)},
        tolerations=tuple(each.value for each in entry.items("tolerations")),
        affinity=_affinity(entry),
    )


def _match(entry: Part, group: str) -> tuple[Literal["namespace", "annotation"], tuple[str, ...]]:
    chosen = entry.record("object")
    if not chosen:
        return "annotation", (f"{names.RESOURCE_GROUP}: {group}",)
    key = chosen.among("key", ("namespace", "annotation")) or chosen.required("key")
    values = chosen.texts("value")
    if key == "annotation":
        for text, part in values:
            if ":" not in text:
                part.refuse(f"is {documents.quoted(text)}, and must be of the form key: value")
    return ("namespace" if key == "namespace" else "annotation"), tuple(text for text, _ in values)


def _affinity(entry: Part) -> dict[str, Any] | None:
    text = entry.text("affinity")
    if not text:
        return None
    try:
        read = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        entry.refuse(f"must be JSON: {error}", "affinity")
        return None
    if not isinstance(read, dict):
        entry.refuse(f"must be a JSON object, not {documents.described(read)}", "affinity")
        return None
    inner = remarks.Remarks()
    placing.judge_affinity(parts.Part(read, inner))
    for each in inner.refusals:
        entry.refuse(str(each), "affinity")
    return read
