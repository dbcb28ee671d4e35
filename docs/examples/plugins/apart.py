"""apart: spread the pods of a job. A score of one node at a time."""

from pumice.framework.per_node import Node, score_per_node
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_TASKS, Reads
from pumice.framework.session import Session
from pumice.framework.subject import Subject


class Apart(Plugin):
    """Prefer nodes that hold fewer pods of the same job."""

    name = "apart"
    points = frozenset({"NodeOrder"})
    reads = NODE_TASKS | Reads.JOB  # the single pods on a node, and which job the subject is of

    def open(self, session: Session) -> None:
        """Register the score."""
        session.score.add(self.wanted)

    @score_per_node
    def wanted(self, subject: Subject, node: Node) -> float:
        """Give 100 where no pod of the job is, less with each one."""
        mine = sum(task.job is subject.job for task in node.record.tasks.values())
        return 100.0 / (1 + mine)
