"""What an answer about nodes depends on, declared by whoever gives it."""

from __future__ import annotations

from enum import Flag, auto


class Reads(Flag):
    """What an answer about nodes depends on: its cache key and its invalidation.

    A filter that looks at what the subject asks for declares COLUMNS: where it declares less, subjects of equal constraints share its answers.

    JOB and QUEUE mean who they are and what their objects say. Whoever reads what they hold, which every placement changes, declares
    OTHER_NODES. An answer of None ("this is not for me") may depend on the subject and on Node objects only, unless OTHER_NODES is declared.

    Whoever answers about victims knows of a claimant its queue and its priority, and of a candidate the numbers of its job, its priority and its shape. Beyond that
    COLUMNS means what the claimant asks for and its job holds, JOB who the claimant is, QUEUE what queues hold, TASK more of a candidate, OTHER_NODES what jobs hold or who else goes.
    """

    NODE = auto()  # labels, taints, conditions: what the Node object says
    COLUMNS = auto()  # the amounts of the view
    TASKS = auto()  # the single tasks on the node
    OTHER_NODES = auto()  # tasks anywhere else, what jobs and queues hold: affinity, spreading
    TASK = auto()  # more of the task than its shape
    JOB = auto()
    QUEUE = auto()
    TIME = auto()


NODE_LOCAL = Reads.NODE | Reads.COLUMNS
NODE_TASKS = NODE_LOCAL | Reads.TASKS
SINGLE = Reads.TASK | Reads.JOB | Reads.QUEUE | Reads.TIME
"""Who asks, and when: answers are not for everybody of one shape."""
MOVED = Reads.COLUMNS | Reads.TASKS | Reads.OTHER_NODES
"""What anybody's coming or going may change: answers hold until then."""
NOTHING = Reads(0)
EVERYTHING = ~NOTHING
