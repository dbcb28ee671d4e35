"""Storage objects as manifests, and the volume rules written plainly, one node at a time, straight from the specification."""

from __future__ import annotations

from builders import Desk, metadata

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"
GI = 2**30


# ---- manifests


def storage_class(name, provisioner="kubernetes.io/no-provisioner", mode="WaitForFirstConsumer", topologies=()):
    terms = [{"matchLabelExpressions": [{"key": k, "values": list(v)} for k, v in term]} for term in topologies]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata(name),
        "provisioner": provisioner,
        **({"volumeBindingMode": mode} if mode else {}),
        "allowedTopologies": terms,
    }


def claim(
    name, cls="local", gi=5, *, volume="", bound=None, selected="", namespace="a", modes=("ReadWriteOnce",), **more
):
    notes = {**({COMPLETED: "yes"} if (bool(volume) if bound is None else bound) else {})}
    if selected:
        notes[SELECTED] = selected
    spec = {"accessModes": list(modes), **more.pop("spec", {})}
    if gi is not None:
        spec["resources"] = {"requests": {"storage": f"{gi}Gi"}}
    if cls is not None:
        spec["storageClassName"] = cls
    if volume:
        spec["volumeName"] = volume
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(name, namespace, annotations=notes, **more),
        "spec": spec,
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name, cls="local", gi=5, *, hosts=None, for_claim="", phase="Available", labels=None, csi="", **spec):
    made = {
        "storageClassName": cls,
        "capacity": {"storage": f"{gi}Gi"},
        "accessModes": list(spec.pop("modes", ("ReadWriteOnce",))),
        **spec,
    }
    if hosts is not None:
        wanted = [{"key": HOST, "operator": "In", "values": list(hosts)}]
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}
    if for_claim:
        made["claimRef"] = {"namespace": "a", "name": for_claim}
    if csi:
        made["csi"] = {"driver": csi, "volumeHandle": f"handle-{name}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata(name, labels=labels),
        "spec": made,
        "status": {"phase": phase},
    }


def csi_node(name, migrated="", **limits):
    drivers = [
        {"name": driver, "nodeID": name, **({} if count is None else {"allocatable": {"count": count}})}
        for driver, count in limits.items()
    ]
    notes = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": metadata(name, annotations=notes),
        "spec": {"drivers": drivers},
    }


def csi_driver(name, *, capacity):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": metadata(name),
        "spec": {"storageCapacity": capacity},
    }


def capacity(name, cls, gi, topology, largest=None):
    made = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": metadata(name, "kube-system"),
        "storageClassName": cls,
        "capacity": f"{gi}Gi",
    }
    if topology is not None:
        made["nodeTopology"] = {"matchLabels": topology}
    if largest is not None:
        made["maximumVolumeSize"] = f"{largest}Gi"
    return made


def attachment(name, pv, host, driver="d"):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": metadata(name),
        "spec": {"attacher": driver, "nodeName": host, "source": {"persistentVolumeName": pv}},
    }


def uses(*names):
    """The volumes of a pod that uses claims."""
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(names)]


def rules(desk: Desk):
    """The volume rules of the desk's predicates plugin."""
    plugins = [plugin for tier in desk.scheduler.engine.plugins for plugin in tier]
    return next(plugin for plugin in plugins if plugin.name == "predicates").volumes


def words(desk: Desk, answer):
    """A vector of reasons as texts, by node; "" where the node fits."""
    table = desk.scheduler.engine.evaluator.reasons.table
    names = [record.name for record in desk.cluster.nodes.records]
    found = [0] * len(names) if answer is None else answer.tolist()
    return {name: table[number].text if number else "" for name, number in zip(names, found, strict=True)}


# ---- the rule of VolumeBinding, one node at a time

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"


def gigabytes(text):
    return int(text.removesuffix("Gi"))


def reaches(pv, labels):
    required = pv["spec"].get("nodeAffinity", {}).get("required")
    if required is None:
        return True
    for term in required["nodeSelectorTerms"]:
        wanted = term["matchExpressions"]
        if wanted and all(
            (labels.get(r["key"]) in r["values"]) if r["operator"] == "In" else (r["key"] in labels) for r in wanted
        ):
            return True
    return False


def _same(pvc, pv):
    return all(
        (pvc["spec"].get(f) or d) == (pv["spec"].get(f) or d)
        for f, d in (("volumeMode", "Filesystem"), ("volumeAttributesClassName", ""))
    )


def smallest(pvc, volumes, chosen, labels):
    """The volume that a claim gets on a node, None if there is none."""
    asked = gigabytes(pvc["spec"]["resources"]["requests"]["storage"])
    best = None
    for pv in sorted(volumes, key=lambda pv: (gigabytes(pv["spec"]["capacity"]["storage"]), pv["metadata"]["name"])):
        reference = pv["spec"].get("claimRef")
        mine = reference is not None and reference["name"] == pvc["metadata"]["name"]
        if pv["metadata"]["name"] in chosen or (reference is not None and not mine):
            continue
        if pv["spec"]["storageClassName"] != pvc["spec"]["storageClassName"]:
            continue
        if gigabytes(pv["spec"]["capacity"]["storage"]) < asked or not _same(pvc, pv):
            continue
        if mine:
            return pv if reaches(pv, labels) else None
        wanted = pvc["spec"].get("selector", {}).get("matchLabels", {})
        if pv["status"]["phase"] != "Available" or any(
            pv["metadata"].get("labels", {}).get(k) != v for k, v in wanted.items()
        ):
            continue
        if reaches(pv, labels) and set(pvc["spec"]["accessModes"]) <= set(pv["spec"]["accessModes"]):
            best = best or pv
    return best


def bind_on(node, claims, volumes, classes, *, drivers=(), capacities=()):
    """What unbound claims get on a node: a reason, or the volume of each claim ("" to be made)."""
    labels, given = node["metadata"].get("labels", {}), {}
    making, looking = [], []
    for pvc in claims:
        selected = pvc["metadata"].get("annotations", {}).get(SELECTED)
        if selected is not None and selected != node["metadata"]["name"]:
            return NO_VOLUME, {}
        (looking if selected is None else making).append(pvc)
    looking.sort(key=lambda pvc: (gigabytes(pvc["spec"]["resources"]["requests"]["storage"]), pvc["metadata"]["name"]))
    for pvc in looking:
        found = smallest(pvc, volumes, set(given.values()), labels)
        if found is None:
            making.append(pvc)
        else:
            given[pvc["metadata"]["name"]] = found["metadata"]["name"]
    for pvc in making:
        cls = classes[pvc["spec"]["storageClassName"]]
        if cls["provisioner"] == "kubernetes.io/no-provisioner" or not _allowed(cls, labels):
            return NO_VOLUME, {}
        if not _has_room(pvc, cls, labels, drivers, capacities):
            return NO_ROOM, {}
        given[pvc["metadata"]["name"]] = ""
    return "", given


def _allowed(cls, labels):
    terms = cls["allowedTopologies"]
    return not terms or any(
        term["matchLabelExpressions"]
        and all(labels.get(e["key"]) in e["values"] for e in term["matchLabelExpressions"])
        for term in terms
    )


def _has_room(pvc, cls, labels, drivers, capacities):
    if not any(d["metadata"]["name"] == cls["provisioner"] and d["spec"]["storageCapacity"] for d in drivers):
        return True
    asked = gigabytes(pvc["spec"]["resources"]["requests"]["storage"])
    for stated in capacities:
        if stated["storageClassName"] != cls["metadata"]["name"] or "nodeTopology" not in stated:
            continue
        limit = gigabytes(stated.get("maximumVolumeSize", stated["capacity"]))
        if limit >= asked and all(labels.get(k) == v for k, v in stated["nodeTopology"]["matchLabels"].items()):
            return True
    return False


# ---- the rules of VolumeZone and NodeVolumeLimits, one node at a time


def in_zone(labels, pvs):
    keys = (OLD_ZONE, OLD_REGION, ZONE, REGION)
    if not any(key in labels for key in keys):
        return True
    for pv in pvs:
        for key in keys:
            text = pv["metadata"].get("labels", {}).get(key)
            if text is None:
                continue
            present = {OLD_ZONE: ZONE, OLD_REGION: REGION}.get(key, key)
            if labels.get(key, labels.get(present)) not in text.split("__"):
                return False
    return True


def exceeds(limits, of_pods, of_attachments, new):
    """Whether new volumes (driver, handle) are too many for a node with limits by driver."""
    attached = set(of_pods) | set(of_attachments)
    for driver, limit in limits.items():
        fresh = {each for each in set(new) - attached if each[0] == driver}
        if fresh and sum(1 for each in attached if each[0] == driver) + len(fresh) > limit:
            return True
    return False
