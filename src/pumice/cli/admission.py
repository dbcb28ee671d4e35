"""`pumice admission`: judge and complete objects before a cluster stores them."""

from __future__ import annotations

from typing import Any

from pumice.cli import process_command
from pumice.server.admission import flags

_EXAMPLES = """\b
Examples:
  pumice admission --webhook-namespace pumice-system \\
    --webhook-service-name pumice-admission-service
  pumice admission --kubeconfig ~/.kube/config --webhook-url https://10.0.0.7:8443 \\
    --listen-address 10.0.0.7
  pumice admission --enabled-admission /pods/mutate --admission-conf resource-groups.yaml

\b
Exit status: 0 stopped by SIGTERM or SIGINT, 1 refused to start, 2 wrong flags.
The same rules without a cluster: pumice vet FILE.
"""


def _run(given: dict[str, Any]) -> int:
    from pumice.server.admission import process, settings  # noqa: PLC0415  imports aiohttp, which help does not need

    return process.run(settings.read(given))


command = process_command.made(
    "admission",
    flags.FLAGS,
    _run,
    meaning="Serve the admission webhooks of Volcano's kinds, in place of Volcano's webhook manager.",
    examples=_EXAMPLES,
)
