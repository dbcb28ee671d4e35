"""Where a pod may run: selectors, affinity, tolerations, spreading, gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import naming
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part

_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS: Final = _NODE_OPERATORS[:4]
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def judge(spec: Part) -> None:
    """Judge where a pod may run."""
    _judge_node_selector(spec)
    for toleration in spec.items("tolerations"):
        judge_toleration(toleration)
    judge_affinity(spec.record("affinity"))
    for rule in spec.items("topologySpreadConstraints"):
        _judge_spread(rule)
    gates: dict[str, int] = {}
    for index, gate in enumerate(spec.items("schedulingGates")):
        name = gate.required("name")
        if name and (problem := naming.key(name)):
            gate.refuse(f"is no name of a gate: {problem}", "name")
        if name and gates.setdefault(name, index) != index:
            gate.refuse(f"is {documents.quoted(name)}, which is listed already", "name")


def _judge_node_selector(spec: Part) -> None:
    for key, value in spec.entries("nodeSelector"):
        if problem := naming.key(key):
            value.refuse(f"is no key of a label: {problem}")
        if not isinstance(value.value, str):
            value.refuse("must be a string; put quotes around numbers and true or false")
        elif problem := naming.label_value(value.value):
            value.refuse(f"is {documents.quoted(value.value)}, and the value of a label {problem}")


def judge_toleration(toleration: Part) -> None:
    """Judge a toleration."""
    key, operator = toleration.text("key"), toleration.among("operator", ("Exists", "Equal", "Lt", "Gt")) or "Equal"
    if key and (problem := naming.key(key)):
        toleration.refuse(f"is no key of a taint: {problem}", "key")
    if not key and operator != "Exists":
        toleration.refuse(f"must be Exists where no key is given, not {operator}", "operator")
    if operator == "Exists" and toleration.text("value"):
        toleration.refuse("must be empty where operator is Exists", "value")
    effect = toleration.among("effect", _EFFECTS)
    if toleration.part("tolerationSeconds").value is not None and effect != "NoExecute":
        toleration.refuse("must be NoExecute where tolerationSeconds is given", "effect")


def judge_affinity(affinity: Part) -> None:
    """Judge rules on nodes and on other pods."""
    nodes = affinity.record("nodeAffinity")
    required = nodes.record(_REQUIRED)
    if required:
        terms = required.items("nodeSelectorTerms")
        if not required.part("nodeSelectorTerms").value:
            required.refuse("is empty, and must hold at least one term", "nodeSelectorTerms")
        for term in terms:
            _judge_term(term)
    for preferred in nodes.items(_PREFERRED):
        _judge_weight(preferred)
        _judge_term(preferred.record("preference"))
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.record(name)
        for term in pods.items(_REQUIRED):
            _judge_pod_term(term)
        for preferred in pods.items(_PREFERRED):
            _judge_weight(preferred)
            _judge_pod_term(preferred.record("podAffinityTerm"))


def _judge_weight(preferred: Part) -> None:
    if preferred.whole("weight", least=1, most=100) is None and preferred.part("weight").value is None:
        preferred.refuse("is missing, and must be 1 to 100", "weight")


def _judge_term(term: Part) -> None:
    for name in ("matchExpressions", "matchFields"):
        for line in term.items(name):
            _judge_line(line, _NODE_OPERATORS)


def _judge_pod_term(term: Part) -> None:
    if not term:
        return
    key = term.required("topologyKey")
    if key and (problem := naming.key(key)):
        term.refuse(f"is no key of a label: {problem}", "topologyKey")
    judge_selector(term.record("labelSelector"))


def judge_selector(selector: Part) -> None:
    """Judge a label selector."""
    for key, value in selector.entries("matchLabels"):
        if problem := naming.key(key):
            value.refuse(f"is no key of a label: {problem}")
        if not isinstance(value.value, str):
            value.refuse("must be a string; put quotes around numbers and true or false")
    for line in selector.items("matchExpressions"):
        _judge_line(line, _LABEL_OPERATORS)


def _judge_line(line: Part, operators: tuple[str, ...]) -> None:
    key = line.required("key")
    if key and (problem := naming.key(key)):
        line.refuse(f"is no key of a label: {problem}", "key")
    operator, values = line.required("operator"), line.texts("values")
    line.among("operator", operators)
    if operator in ("In", "NotIn") and not values:
        line.refuse(f"is empty, and {operator} needs at least one value", "values")
    elif operator in ("Exists", "DoesNotExist") and values:
        line.refuse(f"has {len(values)}, and {operator} takes none", "values")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        line.refuse(f"has {len(values)}, and {operator} takes exactly one number", "values")


def _judge_spread(rule: Part) -> None:
    if rule.whole("maxSkew", least=1) is None and rule.part("maxSkew").value is None:
        rule.refuse("is missing, and must be at least 1", "maxSkew")
    key = rule.required("topologyKey")
    if key and (problem := naming.key(key)):
        rule.refuse(f"is no key of a label: {problem}", "topologyKey")
    when = rule.required("whenUnsatisfiable")
    rule.among("whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"))
    if rule.whole("minDomains", least=1) is not None and when != "DoNotSchedule":
        rule.refuse("may only be given where whenUnsatisfiable is DoNotSchedule", "minDomains")
    judge_selector(rule.record("labelSelector"))
