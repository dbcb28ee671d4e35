"""What the controllers may do on an API server, each permission with the code that needs it.

Whatever they write they may also read: a write without an answer is followed by a read of its object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import kinds
from pumice.controllers import podgroups
from pumice.controllers.volcano import registry
from pumice.kube.permissions import may

if TYPE_CHECKING:
    from pumice.kube.permissions import Permission

_WORLD: Final = "kube.reconciling:ApiWorld.perform"
_GROUPER: Final = "kube.grouping:Grouping"


def _watched() -> tuple[kinds.Kind, ...]:
    own = (kind for each in registry.controllers() for kind in (each.kind, *each.watched))
    return tuple(dict.fromkeys((*own, *podgroups.WATCHED)))


PERMISSIONS: Final[tuple[Permission, ...]] = (
    *(may(kind, "list watch", "kube.watches.informers:Informers") for kind in _watched()),
    may(kinds.POD, "create delete get patch", _WORLD),
    may(kinds.POD_GROUP, "create delete get patch", _WORLD),
    may(kinds.JOB, "create delete get patch", _WORLD),
    may(kinds.JOB, "patch", _WORLD, of="status"),
    may(kinds.COMMAND, "delete get", _WORLD),
    may(kinds.QUEUE, "get patch", _WORLD),
    may(kinds.QUEUE, "patch", _WORLD, of="status"),
    may(kinds.PERSISTENT_VOLUME_CLAIM, "create get", _WORLD),
    may(kinds.SERVICE, "create delete get", _WORLD),
    may(kinds.CONFIG_MAP, "create delete get patch", _WORLD),
    may(kinds.SECRET, "create delete get", _WORLD),
    may(kinds.NETWORK_POLICY, "create delete get", _WORLD),
    may(kinds.CRON_JOB, "get patch", _WORLD),
    may(kinds.CRON_JOB, "patch", _WORLD, of="status"),
    may(kinds.JOB_FLOW, "get", _WORLD),
    may(kinds.JOB_FLOW, "patch", _WORLD, of="status"),
    may(kinds.JOB_TEMPLATE, "get", _WORLD),
    may(kinds.JOB_TEMPLATE, "patch", _WORLD, of="status"),
    may(kinds.HYPER_NODE, "create delete get patch", _WORLD),
    may(kinds.HYPER_NODE, "patch", _WORLD, of="status"),
    may(kinds.SECRET, "get", "kube.ufm:Poller.ask"),
    # Some API servers ask for this before an owner can be named that waits for those it owns.
    *(may(kind, "update", _WORLD, of="finalizers") for kind in (kinds.JOB, kinds.CRON_JOB, kinds.JOB_FLOW)),
    may(kinds.POD, "patch", _GROUPER),
    may(kinds.POD_GROUP, "create delete get patch", _GROUPER),
    may(kinds.EVENT, "create patch", "kube.writes.eventing:EventRecorder.send"),
    # Other controllers may be in any namespace; a rule cannot be limited to labels.
    may(kinds.LEASE, "list", "kube.rivals:Lookout.look"),
    may(kinds.LEASE, "get create update", "kube.election:Election", place="lease"),
)
