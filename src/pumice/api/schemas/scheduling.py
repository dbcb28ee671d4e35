"""Schemas of pod groups and queues, those of kube-batch included."""

from __future__ import annotations

from typing import Final

from pumice.api.schemas.language import (
    Schema,
    boolean,
    listing,
    mapping,
    moment,
    name,
    number,
    record,
    resources,
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


_CONDITION: Final = record(
    "",
    type=string("Scheduled or Unschedulable."),
    status=string("True, False or Unknown."),
    transitionID=string("The cycle that found it."),
    lastTransitionTime=moment("Since when it is so; the latest of several that are True counts."),
    reason=string("Why, in one word."),
    message=string("Why, with names and numbers."),
)


_SUB_GROUP: Final = record(
    "",
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
        phase=string("How far the group has come.", among=("Pending", "Running", "Unknown", "Inqueue", "Completed")),
        conditions=listing(_CONDITION, "At most one verdict of each type."),
        running=number("Members that run.", least=0),
        succeeded=number("Members that succeeded.", least=0),
        failed=number("Members that failed.", least=0),
    ),
}


def _node_groups(text: str) -> Schema:
    return record(
        text,
        **{
            f"{end}DuringSchedulingIgnoredDuringExecution": listing(string(), f"{force} Names of groups.")
            for end, force in (("required", "Must."), ("preferred", "If possible."))
        },
    )


_CLUSTER: Final = record(
    "",
    name=string("The other cluster."),
    weight=number("Its share against the others of the list."),
    capacity=resources("The most that is forwarded to it."),
)

QUEUE: Final = {
    "spec": record(
        "Shares and limits of the queue.",
        weight=number("Share against sibling queues.", default=1, least=1, most=65535),
        capability=resources("The most the queue may hold; a resource that is not listed is not limited."),
        reclaimable=boolean("Whether other queues may take back what this one holds above its due."),
        extendClusters=listing(_CLUSTER, "Other clusters that jobs of the queue may be forwarded to."),
        guarantee=record("What is kept for the queue.", resource=resources("Amounts that no other queue may use.")),
        affinity=record(
            "Groups of nodes, by their label volcano.sh/nodegroup-name.",
            nodeGroupAffinity=_node_groups("Groups to use."),
            nodeGroupAntiAffinity=_node_groups("Groups to avoid."),
        ),
        type=string("For people; nothing is decided by it.", longest=253),
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
        unknown=number("Groups in phase Unknown."),
        pending=number("Groups in phase Pending."),
        running=number("Groups in phase Running."),
        inqueue=number("Groups in phase Inqueue."),
        completed=number("Groups in phase Completed."),
        reservation=record(
            "What was set aside, by older releases of Volcano.",
            nodes=listing(string(), "Nodes set aside."),
            resource=resources("Amounts set aside."),
        ),
        allocated=resources("The requests of all pods that hold room, those of descendants included."),
    ),
}

OLDER_POD_GROUP: Final = {
    "spec": record(
        "What the group needs.",
        minMember=number("Members that are started together or not at all.", least=0),
        queue=string("The Queue the group belongs to."),
        priorityClassName=string("The PriorityClass of the group."),
    ),
    "status": record(
        "What the scheduler found.",
        phase=string("How far the group has come."),
        conditions=listing(_CONDITION, "At most one verdict of each type."),
        running=number("Members that run.", least=0),
        succeeded=number("Members that succeeded.", least=0),
        failed=number("Members that failed.", least=0),
    ),
}

OLDER_QUEUE: Final = {
    "spec": record(
        "Share and limit of the queue.",
        weight=number("Share against other queues."),
        capability=resources("The most the queue may hold."),
    ),
    "status": record(
        "What the queue holds.",
        unknown=number("Groups in phase Unknown."),
        pending=number("Groups in phase Pending."),
        running=number("Groups in phase Running."),
    ),
}
