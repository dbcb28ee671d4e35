"""Schemas of what the scheduler itself reads: pod groups, queues, hyper-nodes, NUMA topologies and shards."""

from __future__ import annotations

from typing import Final

from pumice.manifests.schema import (
    Schema,
    boolean,
    listing,
    mapping,
    moment,
    name,
    number,
    record,
    resources,
    ruled,
    selector,
    string,
)


def network_topology() -> Schema:
    """Describe how close together members must be."""
    return record(
        "How close together, in the tree of HyperNodes, the members must be.",
        mode=string(
            "hard: all members inside one HyperNode of an allowed tier; soft: as low a tier as possible.",
            default="hard",
            among=("hard", "soft"),
        ),
        highestTierAllowed=number("The largest tier allowed.", least=0, bits=64),
        highestTierName=string("The largest tier allowed, by its name; excludes highestTierAllowed.", longest=253),
    )


def _condition(*more: str) -> Schema:
    texts = ("type", "status", "reason", "message", *more)
    return record(lastTransitionTime=moment(), **{field: string() for field in texts})


_SUB_GROUP: Final = record(
    name=string("Identifies the policy.", longest=253),
    networkTopology=network_topology(),
    subGroupSize=number("Members of one sub-group, all or none of which are started.", default=1, least=1),
    minSubGroups=number("Sub-groups that must be complete before the group counts as ready.", default=0, least=0),
    labelSelector=selector("The pods that this policy is about."),
    matchLabelKeys=listing(
        string(), "Pods that agree on the values of all these labels form one sub-group.", atomic=True
    ),
)

POD_GROUP: Final = {
    "spec": record(
        "What the group needs.",
        minMember=number("Members that are started together or not at all; 0 is no gang.", least=0),
        minTaskMember=mapping(number(), "The same per role, by the value of the pods' volcano.sh/task-spec."),
        queue=name("The Queue the group belongs to.", default="default"),
        priorityClassName=string("The PriorityClass of the group.", longest=253),
        minResources=resources("What must be free before pods of the group are considered."),
        networkTopology=network_topology(),
        subGroupPolicy=listing(_SUB_GROUP, "How members are cut into sub-groups."),
    ),
    "status": record(
        "What the scheduler found; written by it alone once the group exists.",
        phase=string(among=("Pending", "Running", "Unknown", "Inqueue", "Completed")),
        conditions=listing(_condition("transitionID"), "At most one verdict of each type."),
        running=number("Members that run.", least=0),
        succeeded=number("Members that succeeded.", least=0),
        failed=number("Members that failed.", least=0),
    ),
}


def _node_groups(text: str) -> Schema:
    ends = ("required", "preferred")
    return record(text, **{f"{end}DuringSchedulingIgnoredDuringExecution": listing(string()) for end in ends})


_CLUSTER: Final = record(name=string(), weight=number(), capacity=resources())

QUEUE: Final = {
    "spec": record(
        "Shares and limits of the queue.",
        weight=number("Share against sibling queues.", default=1, least=1, most=65535),
        capability=resources("The most the queue may hold; a resource that is not listed is not limited."),
        reclaimable=boolean("Whether other queues may take back what this one holds above its due."),
        extendClusters=listing(_CLUSTER, "Other clusters that jobs of the queue may be forwarded to."),
        guarantee=record("What is kept for the queue.", resource=resources()),
        affinity=record(
            "Groups of nodes, by their label volcano.sh/nodegroup-name.",
            nodeGroupAffinity=_node_groups("Groups to use."),
            nodeGroupAntiAffinity=_node_groups("Groups to avoid."),
        ),
        type=string(longest=253),
        parent=name("The queue above this one; none means root."),
        deserved=resources("What the queue is due; may be lent to others and taken back."),
        priority=number("Higher is served earlier and taken from later.", least=0),
        dequeueStrategy=string(
            "fifo: a job that cannot be placed blocks those behind it; traverse: it is passed over.",
            default="traverse",
            among=("fifo", "traverse"),
        ),
    ),
    "status": record(
        "What the queue holds.",
        state=string("Absent means Open.", among=("Open", "Closed", "Closing", "Unknown")),
        unknown=number(),
        pending=number(),
        running=number(),
        inqueue=number(),
        completed=number(),
        reservation=record(nodes=listing(string()), resource=resources()),
        allocated=resources("The requests of all pods that hold room, those of descendants included."),
    ),
}

_ONE_OF: Final = ("exactMatch", "regexMatch", "labelMatch")
_MEMBER_SELECTOR: Final = ruled(
    record(
        "Exactly one of exactMatch, regexMatch and labelMatch.",
        exactMatch=record("A member by its name.", name=name(shortest=1)),
        regexMatch=record("Members by a pattern on their names.", pattern=string(shortest=1)),
        labelMatch=selector("Nodes by their labels."),
    ),
    (
        " || ".join(f"has(self.{field})" for field in _ONE_OF),
        "one of exactMatch, regexMatch and labelMatch must be set",
    ),
    (
        " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in _ONE_OF) + " <= 1",
        "only one of exactMatch, regexMatch and labelMatch may be set",
    ),
)
_MEMBER: Final = record("", ("type",), type=string(among=("Node", "HyperNode")), selector=_MEMBER_SELECTOR)

HYPER_NODE: Final = {
    "spec": record(
        "A set of nodes that are well connected.",
        ("tier",),
        tier=number("1 is closest; a larger number is farther.", least=0, bits=64),
        tierName=string("What people call this tier.", longest=253),
        members=listing(_MEMBER, "The nodes or HyperNodes inside.", least=1),
    ),
    "status": record(
        conditions=listing(_condition()),
        nodeCount=number("Nodes inside, those of inner HyperNodes included.", least=0, bits=64),
    ),
}

_WHOLE: Final = number(bits=64)
_CPU: Final = record(numa=_WHOLE, socket=_WHOLE, core=_WHOLE)
_CONTAINER: Final = record(name=string(), allocations=mapping(string()))
_POD: Final = record(uid=string(), name=string(), namespace=string(), containerAllocations=listing(_CONTAINER))

NUMATOPOLOGY: Final = {
    "spec": record(
        "NUMA cells of the node of the same name, as its agent saw them.",
        policies=mapping(string(), "CPUManagerPolicy and TopologyManagerPolicy of the kubelet."),
        resReserved=mapping(string(), "What is reserved, by resource."),
        numares=mapping(record(allocatable=string(), capacity=_WHOLE), "What there is, by resource."),
        cpuDetail=mapping(_CPU, "Where each CPU is."),
        podAllocations=listing(_POD, "Which pod holds what."),
    )
}

NODE_SHARD: Final = {
    "spec": record("The nodes of the scheduler of the same name.", ("nodesDesired",), nodesDesired=listing(string())),
    "status": record(
        lastUpdateTime=moment(),
        nodesInUse=listing(string()),
        nodesToRemove=listing(string()),
        nodesToAdd=listing(string()),
    ),
}

OLDER_POD_GROUP: Final = {
    "spec": record(
        minMember=number("Members that are started together or not at all.", least=0),
        queue=string("The Queue the group belongs to."),
        priorityClassName=string("The PriorityClass of the group."),
    ),
    "status": record(
        phase=string(),
        conditions=listing(_condition("transitionID")),
        running=number(least=0),
        succeeded=number(least=0),
        failed=number(least=0),
    ),
}

OLDER_QUEUE: Final = {
    "spec": record(weight=number("Share against other queues."), capability=resources("The most the queue may hold.")),
    "status": record(unknown=number(), pending=number(), running=number()),
}
