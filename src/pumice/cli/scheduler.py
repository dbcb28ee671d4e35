"""`pumice scheduler`: schedule the pods of a real cluster."""

from __future__ import annotations

from typing import Any

from pumice.cli import process_command
from pumice.server.flags import flags

_EXAMPLES = """\b
Examples:
  pumice scheduler --kubeconfig ~/.kube/config --leader-elect=false -v 3
  pumice scheduler --scheduler-conf /volcano.scheduler/volcano-scheduler.conf \\
    --enable-healthz --enable-metrics
  pumice scheduler --scheduler-conf volcano-system/volcano-scheduler-configmap

\b
Exit status: 0 stopped by SIGTERM or SIGINT, 1 refused to start, or lost the lease or the
connection, 2 wrong flags.
SIGUSR1 writes what the scheduler knows to a file that a scenario can start from; SIGUSR2 logs a
summary.
"""


def _run(given: dict[str, Any]) -> int:
    from pumice.server import process  # noqa: PLC0415  imports numpy and aiohttp, which help does not need
    from pumice.server.flags import settings  # noqa: PLC0415

    wanted = settings.read(given)
    if not wanted.web_address:
        return process.run(wanted)
    from pumice.web.beside import Beside  # noqa: PLC0415  only where the page is served

    return process.run(wanted, Beside)


command = process_command.made(
    "scheduler",
    flags.FLAGS,
    _run,
    meaning="Schedule the pods of a cluster, in place of Volcano's or kube-batch's scheduler.",
    examples=_EXAMPLES,
)
