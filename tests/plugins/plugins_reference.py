"""The rules of filters and scores for one pod and one node, written out one at a time from the specification.

Works on manifests; nothing of the model, the framework or the plugins is used. `present` lists the pods on a node as pairs of a manifest and a
state: held, leaving (being released) or coming (waiting for release).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

HELD, LEAVING, COMING = "held", "leaving", "coming"
MIB = 2**20
GPU = "nvidia.com/gpu"
BLOCKING = ("NoSchedule", "NoExecute")


# ---- amounts


def number(text):
    """The few forms of quantities that the tests write."""
    factors = {"m": Fraction(1, 1000), "Mi": MIB, "Gi": 2**30}
    match = re.fullmatch(r"(\d+)(m|Mi|Gi)?", text)
    return Fraction(match[1]) * factors.get(match[2], 1)


def request(pod, name):
    if name == "pods":
        return Fraction(1)
    texts = [c["resources"]["requests"].get(name) for c in pod["spec"]["containers"]]
    return sum((number(text) for text in texts if text is not None), Fraction(0))


def non_zero(pod, name):
    stand_in = {"cpu": Fraction(1, 10), "memory": Fraction(200 * MIB)}[name]
    texts = [c["resources"]["requests"].get(name) for c in pod["spec"]["containers"]]
    return sum((stand_in if text is None else number(text) for text in texts), Fraction(0))


def capacity(node, name):
    text = node["status"]["allocatable"].get(name)
    return number(text) if text is not None else Fraction(0)


def used(present, name, states=(HELD, LEAVING), amount=request):
    return sum((amount(pod, name) for pod, state in present if state in states), Fraction(0))


# ---- room (core 5.1, actions 2.3, ours 6)


def short(pod, node, present, offered, *, released):
    """The resources that are missing, those that some node offers first: future room must do, and in a view of now idle room too."""
    asked = {name for c in pod["spec"]["containers"] for name in c["resources"]["requests"] if request(pod, name)}
    missing = []
    for name in ["cpu", "memory", "pods", *sorted(asked - {"cpu", "memory"}, key=lambda n: (n not in offered, n))]:
        idle = capacity(node, name) - used(present, name)
        future = idle + used(present, name, (LEAVING,)) - used(present, name, (COMING,))
        if request(pod, name) > (future if released else min(idle, future)):
            missing.append(name)
    return missing


def explain(missing, reasons):
    """What is said of a node: the first resource that is short, pod slots last, else the reasons of the filters."""
    amounts = [name for name in missing if name != "pods"]
    if amounts:
        return [f"Insufficient {amounts[0]}"]
    return reasons or [f"Insufficient {name}" for name in missing]


# ---- filters (kube-predicates 1-5, plugins 15, ours 9 and 16-18)


def refusals(pod, node, present, *, released):
    """The reasons of the predicates plugin against a node, in order."""
    reasons = []
    counted = [pod for pod, state in present if not (released and state == LEAVING)]
    if len(counted) >= capacity(node, "pods"):
        reasons.append("node(s) pod number exceeded")
    final = _unresolvable(pod, node)
    if final:
        return [*reasons, final]
    if any(_conflicts(want, have) for want in _ports(pod) for other in counted for have in _ports(other)):
        reasons.append("node(s) didn't have free ports for the requested pod ports")
    return reasons


def _unresolvable(pod, node):
    tolerations = pod["spec"].get("tolerations", [])
    if any(c["type"] == "Ready" and c["status"] != "True" for c in node["status"]["conditions"]):
        return "node(s) were not ready"
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "value": ""}
    if node["spec"]["unschedulable"] and not any(tolerates(t, cordon) for t in tolerations):
        return "node(s) were unschedulable"
    if not matches_node(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in node["spec"]["taints"]:
        if taint["effect"] in BLOCKING and not any(tolerates(t, taint) for t in tolerations):
            return "node(s) had untolerated taint(s)"
    return ""


def tolerates(toleration, taint):
    if toleration.get("effect", "") not in ("", taint["effect"]):
        return False
    if toleration.get("key", "") not in ("", taint["key"]):
        return False
    operator = toleration.get("operator", "")
    return operator == "Exists" or (operator in ("", "Equal") and toleration.get("value", "") == taint.get("value", ""))


def matches_node(pod, node):
    labels = node["metadata"].get("labels", {})
    if any(labels.get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return False
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(matches_term(term, node) for term in required["nodeSelectorTerms"])


def matches_term(term, node):
    labels, name = node["metadata"].get("labels", {}), node["metadata"]["name"]
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    for field in fields:
        if field["key"] != "metadata.name" or field["operator"] not in ("In", "NotIn") or len(field["values"]) != 1:
            return False
        if (name == field["values"][0]) != (field["operator"] == "In"):
            return False
    return all(_parses(r) for r in expressions) and all(_requires(r, labels.get(r["key"])) for r in expressions)


def _parses(requirement):
    values = requirement["values"]
    match requirement["operator"]:
        case "In" | "NotIn":
            return len(values) > 0
        case "Exists" | "DoesNotExist":
            return len(values) == 0
        case "Gt" | "Lt":
            return len(values) == 1 and _integer(values[0]) is not None
    return False


def _requires(requirement, value):
    values = requirement["values"]
    match requirement["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    found = None if value is None else _integer(value)
    if found is None:
        return False
    return found > _integer(values[0]) if requirement["operator"] == "Gt" else found < _integer(values[0])


def _integer(text):
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


def _ports(pod):
    listed = [port for c in pod["spec"]["containers"] for port in c["ports"] if port["hostPort"] > 0]
    return [(port.get("protocol") or "TCP", port["hostPort"], port.get("hostIP") or "0.0.0.0") for port in listed]  # noqa: S104  compared, not bound


def _conflicts(want, have):
    if want[:2] != have[:2]:
        return False
    anywhere = "0.0.0.0"  # noqa: S104  compared, not bound
    return want[2] == anywhere or have[2] in (want[2], anywhere)


# ---- scores (kube-predicates 3, 5, 12; plugins 1)


def _after(pod, node, present, name):
    return used(present, name, amount=non_zero) + non_zero(pod, name)


def _units(name, amount):
    """Whole millicores, bytes or devices: what Kubernetes computes with."""
    return int(amount * 1000) if name == "cpu" else int(amount)


def least(pod, node, present):
    points = 0
    for name in ("cpu", "memory"):
        after, room = _units(name, _after(pod, node, present, name)), _units(name, capacity(node, name))
        points += 0 if after > room or not room else (room - after) * 100 // room
    return points // 2


def most(pod, node, present):
    points = 0
    for name in ("cpu", "memory"):
        after, room = _units(name, _after(pod, node, present, name)), _units(name, capacity(node, name))
        points += min(after, room) * 100 // room if room else 0
    return points // 2


def balanced(pod, node, present):
    if not any(request(pod, name) for name in ("cpu", "memory", GPU)):
        return 0
    names = [name for name in ("cpu", "memory", GPU) if capacity(node, name) and (name != GPU or request(pod, GPU))]

    def balance(extra):
        shares = []
        for name in names:
            room = _units(name, capacity(node, name))
            shares.append(min(1.0, _units(name, used(present, name) + extra * request(pod, name)) / room))
        return int(100 * (1 - _deviation(shares)))

    return 50 + (50 + balance(1) - balance(0)) // 2


def _deviation(shares):
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        return abs(shares[0] - shares[1]) / 2
    mean = sum(shares) / len(shares)
    return math.sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))


def preference(pod, node):
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    return sum(term["weight"] for term in terms if matches_term(term["preference"], node))


def aversion(pod, node):
    tolerations = [t for t in pod["spec"].get("tolerations", []) if t.get("effect", "") in ("", "PreferNoSchedule")]
    soft = [taint for taint in node["spec"]["taints"] if taint["effect"] == "PreferNoSchedule"]
    return sum(not any(tolerates(t, taint) for t in tolerations) for taint in soft)


def normalised(raws, *, reverse):
    top = max(raws)
    if top == 0:
        return [100 if reverse else 0 for _ in raws]
    return [100 - 100 * raw // top if reverse else 100 * raw // top for raw in raws]


def binpack(pod, node, present, weights, weight):
    """`weights` by resource; the whole score times `weight`."""
    named = [name for name in weights if request(pod, name)]
    total, points = sum(weights[name] for name in named), Fraction(0)
    for name in named:
        room, full = capacity(node, name), used(present, name) + request(pod, name)
        if not room or not weights[name]:
            continue
        if full > room:
            return Fraction(0)
        points += weights[name] * full / room
    return 100 * weight * points / (total or 1)
