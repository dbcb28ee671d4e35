"""Where each plugin decides otherwise than Volcano's, and why; `docs/generate.py` writes it under each plugin, and a test keeps the list complete."""

from __future__ import annotations

ALWAYS = (
    "All of them: arguments are read strictly, ties go by a stable order instead of chance, pods placed earlier in a cycle count as if they ran, sums are exact integers, and victims are offered in victim order. "
    "Protections are final: no later tier gives away whom an earlier one protects."
)
"""What holds for every plugin, said once."""

PLUGINS: dict[str, tuple[str, ...]] = {
    "binpack": (),
    "capacity": (
        "A queue that cannot be in the tree, or a job of a queue with children, waits alone: in Volcano the plugin then serves nobody.",
        "A resource that `capability` does not list is not limited, by `root` neither: there unlisted cpu and memory of the root starve the tree.",
        "Guarantees hold jointly, so that two borrowers never take what is guaranteed to a third, and are scaled down where they exceed the cluster.",
        "The vote on letting groups in counts what the group could evict, and shares follow placements on every level of the tree.",
        "Of a claim every request counts, whatever its options and its mode; there `firstAvailable` and `All` do not.",
    ),
    "cdp": ("Gang forms and `shuffle` honour it as well, and a later tier cannot offer whom it protects.",),
    "conformance": ("`shuffle` honours it as well, and a later tier cannot offer whom it protects.",),
    "crossquota": (
        "Pods that wait for room count, those of other schedulers too, and only resources that the pod asks for are compared.",
        "Eviction can make room under a quota; a pod that is larger than the quota by itself is refused for good.",
        "An annotation that cannot be read is told, and the configuration counts; there the node takes no pod without GPUs. A configuration that cannot be read is refused.",
    ),
    "deviceshare": (
        "Cards that are not well take nobody, virtual ones too, whose health Volcano does not look at.",
        "Pods of one cycle never get the same part of a card or the same MIG instance: what a plan takes is part of it, and is given back with it.",
        "A pod that is bound now gets nothing of what was promised to one that waits for room.",
        "`spread` scores a node by whether a card was free before the pod came; there the pod itself counts, and every node scores 0.",
        "A MIG card is free to be cut anew when its last pod has gone, and instances of another size are used when those in use are taken: there both wait for the node to be read anew.",
        "Cards in mode `mig` without a known geometry take nobody; there they are shared as if they were not cut.",
        "The ConfigMap of geometries is read again every minute, not once in the life of a process.",
        "Pods with Ascend cards wait, with a reason: nobody has described such nodes to us yet.",
        "`predicates` need not be listed beside it.",
    ),
    "drf": (
        "As an order it never fails: a queue without the annotation hangs under the root with weight 1, missing weights are 1, a queue without jobs has share 0.",
        "Shares follow every placement, so equal branches end equal; when something is reclaimed they are of what foreign pods leave.",
    ),
    "extender": (
        "A server that is away and must not be ignored refuses JobReady too, where Volcano lets the job start (`compatibility: volcano` brings that back).",
        "After three failures it is left alone for the rest of the cycle, which would else wait for every question.",
        "Explanations, scenarios and replays do not ask it: what it says cannot be repeated.",
    ),
    "gang": (
        "Members that the minimum names are placed before surplus of any role, and a gang that was interrupted while it was bound comes first.",
        "An eviction takes surplus, or a whole gang, never a part that leaves the rest below its minimum; which pods are offered is no chance.",
        "Conditions are written when the verdict changes, not in every cycle.",
    ),
    "network-topology-aware": (
        "Idle room of a hyper-node follows placements through the cycle, where Volcano's is that of its beginning.",
        "Of hyper-nodes with equal scores the first by name is taken.",
    ),
    "nodegroup": (
        "A limit that is used up can be cured by evicting pods of the same queue: there its refusals are final (`compatibility: volcano`).",
    ),
    "nodeorder": ("Pods placed earlier in the cycle count for affinity on nodes that had none before.",),
    "numa-aware": (
        "CPUs are counted by cell, not numbered: which ones a pod gets is the kubelet's choice, and the cells alone decide about score and admission. There a socket or core is offered only if the CPU of the same number is free.",
        "Cells that were chosen are read back from the pod's annotation after a restart, and count until the node's agent lists the pod.",
        "The Numatopology of a node that is gone is left to whoever wrote it; it counts for nothing.",
    ),
    "overcommit": (
        "Groups that can never run take no budget from others, and where an evicting action is listed the vote counts what the group could evict.",
    ),
    "pdb": (
        "It protects only: together with `shuffle` Volcano's evicts whatever budgets allow.",
        "A pod without labels is matched by no budget, an empty selector matches the whole namespace, and evictions made here count until the budget has been updated.",
        "The gang forms honour it as well.",
    ),
    "predicates": (
        "All filters are asked again once victims are gone, ports, spread and volumes included.",
        "`predicate.CacheEnable` changes no result: answers are kept by what decides them, not by the pod's template.",
    ),
    "priority": ("A more important pod is never given away by a later tier.",),
    "proportion": (
        "What a queue deserves is the exact water level, guarantees included, where rounds of Volcano's loop may promise more than there is.",
        "No room stays idle for a share: once all queues are served up to their due, what still waits is placed beyond it, and can be reclaimed (`compatibility: volcano` leaves it empty).",
        "Guarantees hold jointly, and the vote on letting groups in counts what the group could evict.",
    ),
    "rescheduling": (
        "Averages are those of ten minutes, whatever `metricsPeriod` says: there the default finds no measurement and nothing ever happens.",
        "A pod leaves only if an idle node has room for it, a gang keeps its minimum, budgets and other protections hold, and pods are known by namespace and name.",
        "A node that was not measured is neither idle nor busy; there it counts as idle.",
    ),
    "resource-strategy-fit": (),
    "resourcequota": (),
    "sla": (),
    "task-topology": ("Pods that were placed in earlier cycles count too, and what is undone does not.",),
    "tdm": (
        "A window over midnight is open after midnight too.",
        "Hours are those of `tdm.time-zone`, UTC unless set, not of the machine; hours that cannot be read refuse the file.",
    ),
    "usage": (
        "A node without a measurement is neither refused nor preferred; there it reads as idle.",
        "Loads are fetched beside the cycle and kept by a recording, and `metrics` is read in both forms, as documented and as coded.",
    ),
}
