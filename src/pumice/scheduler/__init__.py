"""The loop: apply what has come in, open a session, run the actions, write what was found out.

Time is handed in. Here nothing waits, watches a file or talks to a network: whoever drives the loop does.
"""

from pumice.cache.options import Options
from pumice.framework.record import CycleRecord
from pumice.scheduler.loop import Scheduler

__all__ = ["CycleRecord", "Options", "Scheduler"]
