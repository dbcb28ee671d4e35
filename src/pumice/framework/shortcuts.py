"""The shortcuts: everything that is only there for speed, each with a switch.

With any of them off the same is decided, the long way; `pumice test --plain` and `pumice bench --plain` turn all of them off, and tests compare whole lives with and without. Whoever adds a shortcut
adds a field here, named after what is taken for granted, and asks `session.shortcuts` for it where the shortcut begins. Each names a workload of `pumice bench` with how many times the processor time is that deciding takes
there without it, at a tenth or a fifth of its size; one that brings less than 1.3 everywhere is not worth its lines.
"""

from __future__ import annotations

import msgspec


class Shortcuts(msgspec.Struct, frozen=True, kw_only=True):
    """Which shortcuts are taken."""

    quiet_cycles: bool = True
    """A cycle in which nothing can have changed since one that decided nothing is skipped (the column `idle` of every workload)."""

    memory: bool = True
    """What was worked out in one cycle is kept for the next, as long as nothing that it depends on changes (`churn-140000`: 1.6)."""

    kept_answers: bool = True
    """What nodes answer about a pod is kept for its equals, and only nodes that changed are asked again."""

    blocks: bool = True
    """Nodes are asked about many shapes at once, and nodes for some pods are chosen before the first of them is placed (`ones-5000`: 7, `own-shapes-5000`: 2.6, `500x20`: 1.6)."""

    runs: bool = True
    """Nodes for several equal pods are chosen at once, as if each were placed before the next (`20x500`: 4.8, `500x20`: 2.9, `topology-spread-5000`: 2.2)."""

    rounds: bool = True
    """Turns of several jobs, or several turns of one, are taken together where each gets what it would get alone (`1x10000-free`: 12, `10000x1`: 4, `500x20-free`: 2.5)."""

    equal_jobs: bool = True
    """What a waiting job was told is told its equals, which then need not look for a node (`full-waiting-1000`: 2.9, `holders-1000`: 1.9)."""

    dormant_jobs: bool = True
    """Jobs that ask for more than any node will have free, and were told so, are left out of cycles as long as nothing about them changes (`waiting-10000`: 8)."""

    resting_holders: bool = True
    """Jobs that wait for victims on the node that is held for them are left out of cycles as long as nothing about them changes (`preemption-1000`, one more pod: 5)."""

    domain_sums: bool = True
    """Hyper-nodes that have too little room in sum for the members of a job, or would have if everybody went who may, are not tried, and those first where the fewest would have to go."""

    equal_claimants: bool = True
    """Whom a claimant may evict, and who could take its room again, is taken for the same of its equals (`preemption-1000`: 2.3)."""

    deciding_tiers: bool = True
    """That the first of several tiers decides about victims is told by one whom it gives, and what it keeps is not asked about again for every member (reclaim by capacity on 100 nodes in `python -m bench`: 6.2, gangreclaim on 1,000 nodes: 3.3)."""

    victims_by_numbers: bool = True
    """Which victims are needed, and what one more claimant like the last would cost, is told by amounts alone where nothing else counts (`preemption-1000`: 2.8, `preempting-gangs-1000`: 1.5)."""


ALL = Shortcuts()
NONE = Shortcuts(**dict.fromkeys(Shortcuts.__struct_fields__, False))
