"""The rules about other pods, written straight from their text: plain loops over pods and nodes, on manifests as they are written.

A pod is a manifest; `node` tells where it is, `terminating` whether it is going. Nothing of the scheduler is used.
"""

from __future__ import annotations

import math

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEW = "node(s) didn't match pod topology spread constraints"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Placed:
    """A pod on a node."""

    def __init__(self, pod, node, *, terminating=False):
        self.pod, self.node, self.terminating = pod, node, terminating


def labels_of(thing):
    return thing["metadata"].get("labels") or {}


def namespace_of(pod):
    return pod["metadata"]["namespace"]


def selects(selector, labels):
    """Nothing if there is no selector, everything if it is empty."""
    if selector is None:
        return False
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for wanted in selector.get("matchExpressions", ()):
        found, values = labels.get(wanted["key"]), wanted.get("values", ())
        holds = {
            "In": found is not None and found in values,
            "NotIn": found is None or found not in values,
            "Exists": found is not None,
            "DoesNotExist": found is None,
        }[wanted["operator"]]
        if not holds:
            return False
    return True


def merged(selector, keys, labels, operator="In"):
    """What the API server makes of matchLabelKeys and mismatchLabelKeys."""
    if selector is None or not keys:
        return selector
    more = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels]
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), *more]}


def means(term, declaring, pod, namespaces):
    """Whether a term of the declaring pod means a pod."""
    selector = merged(term.get("labelSelector"), term.get("matchLabelKeys", ()), labels_of(declaring))
    selector = merged(selector, term.get("mismatchLabelKeys", ()), labels_of(declaring), "NotIn")
    listed, chosen = term.get("namespaces", ()), term.get("namespaceSelector")
    if not listed and chosen is None:
        listed = [namespace_of(declaring)]
    name = namespace_of(pod)
    about = {**namespaces.get(name, {}), "kubernetes.io/metadata.name": name}
    return (name in listed or selects(chosen, about)) and selects(selector, labels_of(pod))


def terms(pod, group, kind):
    return pod["spec"].get("affinity", {}).get(group, {}).get(kind, ())


# ---- inter-pod affinity


def judge_affinity(pod, nodes, placed, namespaces):
    """The reason of each node, None where it fits."""
    near, away = terms(pod, "podAffinity", REQUIRED), terms(pod, "podAntiAffinity", REQUIRED)
    by_name = {node["metadata"]["name"]: labels_of(node) for node in nodes}
    existing_anti, affinity, anti = {}, {}, {}
    for other in placed:
        at = by_name.get(other.node)
        if at is None:
            continue
        for term in terms(other.pod, "podAntiAffinity", REQUIRED):
            if means(term, other.pod, pod, namespaces) and term["topologyKey"] in at:
                _count(existing_anti, term["topologyKey"], at)
        if near and all(means(term, pod, other.pod, namespaces) for term in near):
            for term in near:
                _count(affinity, term["topologyKey"], at)
        for term in away:
            if means(term, pod, other.pod, namespaces):
                _count(anti, term["topologyKey"], at)
    return {
        name: _affinity_verdict(pod, labels, (near, away), (existing_anti, affinity, anti), namespaces)
        for name, labels in by_name.items()
    }


def _count(counts, key, labels):
    if key in labels:
        counts[key, labels[key]] = counts.get((key, labels[key]), 0) + 1


def _affinity_verdict(pod, labels, own, maps, namespaces):
    (near, away), (existing_anti, affinity, anti) = own, maps
    if near:
        carries = all(term["topologyKey"] in labels for term in near)
        finds = carries and all(affinity.get((t["topologyKey"], labels[t["topologyKey"]]), 0) > 0 for t in near)
        first = carries and not affinity and all(means(term, pod, pod, namespaces) for term in near)
        if not finds and not first:
            return AFFINITY
    for term in away:
        key = term["topologyKey"]
        if key in labels and anti.get((key, labels[key]), 0):
            return ANTI
    if any(pair in existing_anti for pair in labels.items()):
        return EXISTING
    return None


def affinity_points(pod, nodes, placed, namespaces, candidates):
    """The normalised score of each candidate; None if nothing contributes."""
    by_name = {node["metadata"]["name"]: labels_of(node) for node in nodes}
    sums = {}
    for other in placed:
        at = by_name.get(other.node)
        if at is None:
            continue
        for declaring, about in ((pod, other.pod), (other.pod, pod)):
            for group, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                for weighted in terms(declaring, group, PREFERRED):
                    term = weighted["podAffinityTerm"]
                    key = term["topologyKey"]
                    if key in at and means(term, declaring, about, namespaces):
                        sums[key, at[key]] = sums.get((key, at[key]), 0) + sign * weighted["weight"]
    if not sums:
        return None
    raw = {name: sum(sums.get(pair, 0) for pair in by_name[name].items()) for name in candidates}
    low, high = min(raw.values()), max(raw.values())
    return {name: 100 * (score - low) // (high - low) if high > low else 0 for name, score in raw.items()}


# ---- topology spread


def chosen_nodes(pod, nodes):
    """Nodes that match the pod's node selector (tests use no node affinity here)."""
    wanted = pod["spec"].get("nodeSelector", {})
    return {node["metadata"]["name"] for node in nodes if all(labels_of(node).get(k) == v for k, v in wanted.items())}


def untainted(pod, nodes):
    """Nodes without a taint that keeps the pod off (tests tolerate by key and Exists)."""
    tolerated = {toleration["key"] for toleration in pod["spec"].get("tolerations", ())}
    return {
        node["metadata"]["name"]
        for node in nodes
        if all(
            taint["effect"] == "PreferNoSchedule" or taint["key"] in tolerated
            for taint in node["spec"].get("taints", ())
        )
    }


def counted_nodes(pod, nodes, constraint, keys):
    names = {node["metadata"]["name"] for node in nodes if all(key in labels_of(node) for key in keys)}
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor":
        names &= chosen_nodes(pod, nodes)
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor":
        names &= untainted(pod, nodes)
    return names


def pods_counted(pod, placed, node, selector):
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return 0
    return sum(
        other.node == node
        and not other.terminating
        and namespace_of(other.pod) == namespace_of(pod)
        and selects(selector, labels_of(other.pod))
        for other in placed
    )


def judge_spread(pod, nodes, placed):
    constraints = [
        c for c in pod["spec"].get("topologySpreadConstraints", ()) if c["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    return {node["metadata"]["name"]: _spread_verdict(pod, node, nodes, placed, constraints) for node in nodes}


def _spread_verdict(pod, node, nodes, placed, constraints):
    keys = [c["topologyKey"] for c in constraints]
    for constraint in constraints:
        key = constraint["topologyKey"]
        selector = merged(constraint.get("labelSelector"), constraint.get("matchLabelKeys", ()), labels_of(pod))
        counted = counted_nodes(pod, nodes, constraint, keys)
        counts = {}
        for other in nodes:
            name = other["metadata"]["name"]
            if name in counted:
                value = labels_of(other)[key]
                counts[value] = counts.get(value, 0) + pods_counted(pod, placed, name, selector)
        if key not in labels_of(node):
            return MISSING
        least = 0 if len(counts) < constraint.get("minDomains", 1) else min(counts.values())
        skew = counts.get(labels_of(node)[key], 0) + selects(selector, labels_of(pod)) - least
        if skew > constraint["maxSkew"]:
            return SKEW
    return None


def spread_points(pod, nodes, placed, candidates, defaults=None):
    """The normalised score of each candidate; `defaults` is the selector of a pod that declares no constraints. None if skipped."""
    declared = pod["spec"].get("topologySpreadConstraints", ())
    if declared:
        soft = [
            {**c, "labelSelector": merged(c.get("labelSelector"), c.get("matchLabelKeys", ()), labels_of(pod))}
            for c in declared
            if c["whenUnsatisfiable"] == "ScheduleAnyway"
        ]
    elif defaults is not None:
        soft = [{"topologyKey": HOSTNAME, "maxSkew": 3, "labelSelector": defaults}]
        soft.append({"topologyKey": ZONE, "maxSkew": 5, "labelSelector": defaults})
    else:
        soft = []
    if not soft:
        return None
    by_name = {node["metadata"]["name"]: labels_of(node) for node in nodes}
    keys = [c["topologyKey"] for c in soft] if declared else []
    rated = [name for name in candidates if all(key in by_name[name] for key in keys)]
    raw = {name: _crowding(pod, nodes, placed, (soft, keys, rated), name) for name in rated}
    if not rated:
        return dict.fromkeys(candidates, 0)
    low, high = min(raw.values()), max(raw.values())
    points = {name: 100 if high == 0 else 100 * (high + low - score) // high for name, score in raw.items()}
    return {name: points.get(name, 0) for name in candidates}


def _crowding(pod, nodes, placed, rules, name):
    soft, keys, rated = rules
    by_name = {node["metadata"]["name"]: labels_of(node) for node in nodes}
    total = 0.0
    for constraint in soft:
        key = constraint["topologyKey"]
        if key not in by_name[name]:
            continue
        if key == HOSTNAME:
            count, size = pods_counted(pod, placed, name, constraint["labelSelector"]), len(rated)
        else:
            size = len({by_name[other].get(key, "") for other in rated})
            count = sum(
                pods_counted(pod, placed, other, constraint["labelSelector"])
                for other in counted_nodes(pod, nodes, constraint, keys)
                if by_name[other].get(key) == by_name[name][key]
            )
        total += count * math.log(size + 2) + constraint["maxSkew"] - 1
    return math.floor(total + 0.5)
