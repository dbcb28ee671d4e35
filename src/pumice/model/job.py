"""A job: the pods of one PodGroup, with its sub-jobs and tallies."""

from pumice.model.reading import INT32_MAX
from pumice.model.records import Job, SubJob
from pumice.model.tally import BEST_EFFORT_PENDING, Tally

__all__ = ["BEST_EFFORT_PENDING", "INT32_MAX", "Job", "SubJob", "Tally"]
