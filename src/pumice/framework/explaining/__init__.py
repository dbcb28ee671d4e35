"""Explanations in depth: why a job waits, how a queue stands, what a node is kept for.

They are worked out when somebody asks, at the end of a cycle and before what is only held is rolled back; a cycle pays nothing for them. Structured data comes
first (`explanations`), text follows from it (`texts`). Nothing here changes the cluster: what has to be tried out is tried in a trial, which is taken back with its words.
"""

from pumice.framework.explaining.explainer import Explainer
from pumice.framework.explaining.explanations import (
    JobExplanation,
    NodeExplanation,
    PodExplanation,
    QueueExplanation,
)
from pumice.framework.explaining.texts import text

__all__ = ["Explainer", "JobExplanation", "NodeExplanation", "PodExplanation", "QueueExplanation", "text"]
