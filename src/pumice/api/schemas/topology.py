"""Schemas of what describes nodes: hyper-nodes, NUMA topologies and shards."""

from __future__ import annotations

from typing import Final

from pumice.api.schemas.language import listing, mapping, moment, name, number, record, ruled, selector, string

_ONE_OF: Final = ("exactMatch", "regexMatch", "labelMatch")
_MEMBER_SELECTOR: Final = ruled(
    record(
        "Exactly one of exactMatch, regexMatch and labelMatch.",
        exactMatch=record("A member by its name.", name=name("Its name.", shortest=1)),
        regexMatch=record("Members by a pattern on their names.", pattern=string("A regular expression.", shortest=1)),
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
_MEMBER: Final = record(
    "",
    ("type",),
    type=string("What the members are.", among=("Node", "HyperNode")),
    selector=_MEMBER_SELECTOR,
)
_CONDITION: Final = record(
    "",
    type=string("What it is about."),
    status=string("True, False or Unknown."),
    observedGeneration=number("The generation of the object that it is about.", least=0, bits=64),
    lastTransitionTime=moment("Since when it is so."),
    reason=string("Why, in one word."),
    message=string("Why, for people."),
)

HYPER_NODE: Final = {
    "spec": record(
        "A set of nodes that are well connected.",
        ("tier",),
        tier=number("1 is closest; a larger number is farther.", least=0, bits=64),
        tierName=string("What people call this tier.", longest=253),
        members=listing(_MEMBER, "The nodes or HyperNodes inside.", least=1),
    ),
    "status": record(
        "What was found about it.",
        conditions=listing(_CONDITION, "At most one verdict of each type."),
        nodeCount=number("Nodes inside, those of inner HyperNodes included.", least=0, bits=64),
    ),
}

_CPU: Final = record(
    "",
    numa=number("Its NUMA cell.", bits=64),
    socket=number("Its socket.", bits=64),
    core=number("Its core.", bits=64),
)
_CONTAINER: Final = record(
    "",
    name=string("The container."),
    allocations=mapping(string(), "What it holds: of cpu a list of CPUs, of others an amount."),
)
_POD: Final = record(
    "",
    uid=string("The pod's uid."),
    name=string("The pod's name."),
    namespace=string("The pod's namespace."),
    containerAllocations=listing(_CONTAINER, "What each container holds."),
)
_CELLS: Final = record(
    "",
    allocatable=string("What pods may use: of cpu a list of CPUs, of others an amount."),
    capacity=number("How much there is.", bits=64),
)

NUMATOPOLOGY: Final = {
    "spec": record(
        "NUMA cells of the node of the same name, as its agent saw them.",
        policies=mapping(string(), "CPUManagerPolicy and TopologyManagerPolicy of the kubelet."),
        resReserved=mapping(string(), "What is reserved, by resource."),
        numares=mapping(_CELLS, "What there is, by resource."),
        cpuDetail=mapping(_CPU, "Where each CPU is."),
        podAllocations=listing(_POD, "Which pod holds what."),
    )
}

NODE_SHARD: Final = {
    "spec": record(
        "The nodes of the scheduler of the same name.",
        ("nodesDesired",),
        nodesDesired=listing(string(), "Nodes that it shall use."),
    ),
    "status": record(
        "The nodes that it uses.",
        lastUpdateTime=moment("When this was written."),
        nodesInUse=listing(string(), "Nodes that it uses."),
        nodesToRemove=listing(string(), "Nodes that it uses and shall not."),
        nodesToAdd=listing(string(), "Nodes that it shall use and does not yet."),
    ),
}
