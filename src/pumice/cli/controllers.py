"""`pumice controllers`: run the controllers of Volcano's kinds on a real cluster."""

from __future__ import annotations

from typing import Any

from pumice.cli import process_command
from pumice.server.flags import controller_flags

_EXAMPLES = """\b
Examples:
  pumice controllers --kubeconfig ~/.kube/config --leader-elect=false -v 3
  pumice controllers --enable-healthz --enable-metrics
  pumice controllers --controllers '*,-gc-controller'    all but one
  pumice controllers --controllers +job-controller       one alone
  pumice scheduler --controllers                         in the scheduler's own process

\b
Exit status: 0 stopped by SIGTERM or SIGINT, 1 refused to start, or lost the lease or the
connection, 2 wrong flags.
"""


def _run(given: dict[str, Any]) -> int:
    from pumice.server.controlling import process  # noqa: PLC0415  imports aiohttp, which help does not need
    from pumice.server.flags import controller_settings  # noqa: PLC0415

    return process.run(controller_settings.read(given))


command = process_command.made(
    "controllers",
    controller_flags.FLAGS,
    _run,
    meaning="Run the controllers of Jobs, Queues, CronJobs, JobFlows and HyperNodes, in place of Volcano's controller manager.",
    examples=_EXAMPLES,
)
