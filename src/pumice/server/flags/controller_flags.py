"""The flags of `pumice controllers` as data: names and defaults are those of Volcano's controller manager.

Servers listen on loopback, and the number of requests per second is higher: the API server's own flow control limits it better than we could.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from pumice.api import names
from pumice.server.flags import flags
from pumice.server.flags.flags import Flag

LEASE: Final = names.CONTROLLER_MANAGER
DEFAULT_CHOICE: Final = ("*", "-sharding-controller")
_SHARED: Final = flags.BY_NAME


def _like(name: str, **other: object) -> Flag:
    """Give a flag of the scheduler, with what is different here."""
    return structs.replace(_SHARED[name], **other)


def _ignored(name: str, kind: flags.Kind, default: object, why: str) -> Flag:
    return Flag(name, kind, default, why, flags.NO_EFFECT, ignored=why)


_ONE_QUEUE: Final = "one set of workers serves all controllers; see --worker-threads"
_SHARDS: Final = "node shards are not provided"

FLAGS: Final[tuple[Flag, ...]] = (
    *(_SHARED[name] for name in ("master", "kubeconfig", "kube-api-qps", "kube-api-burst")),
    Flag(
        "controllers",
        "list",
        DEFAULT_CHOICE,
        "which controllers run: `*` for all, `name` or `+name` for one more, `-name` for all but this one",
        flags.CONTROLLERS,
    ),
    _like(
        "scheduler-name",
        help="group pods without a group whose `schedulerName` is one of these",
        section=flags.CONTROLLERS,
    ),
    Flag("worker-threads", "whole", 64, "objects that are worked on at the same time", flags.CONTROLLERS),
    Flag(
        "max-requeue-num",
        "whole",
        15,
        "refusals in a row after which a job is given up; below 0: never",
        flags.CONTROLLERS,
    ),
    Flag(
        "inherit-owner-annotations",
        "truth",
        True,
        "groups of pods that nobody grouped take `volcano.sh/*` annotations and the minimum of the pods' owner",
        flags.CONTROLLERS,
    ),
    _like(
        "feature-gates",
        help="`Name=true|false` pairs; WorkLoadSupport turns the watches of ReplicaSets and StatefulSets off, others are accepted",
        section=flags.CONTROLLERS,
    ),
    _like("leader-elect", help="work only while holding the Lease, so that replicas can stand by"),
    *(
        _SHARED[name]
        for name in (
            "leader-elect-lease-duration",
            "leader-elect-renew-deadline",
            "leader-elect-retry-period",
            "leader-elect-resource-lock",
            "leader-elect-resource-namespace",
        )
    ),
    _like("leader-elect-resource-name", default=LEASE),
    _SHARED["lock-object-namespace"],
    _like("listen-address", default="127.0.0.1:8081", help="address of /metrics; `:8081` means all interfaces"),
    *(
        _SHARED[name]
        for name in (
            "enable-metrics",
            "healthz-address",
            "enable-healthz",
            "ca-cert-file",
            "tls-cert-file",
            "tls-private-key-file",
        )
    ),
    _like("v", help="verbosity: 3 every write"),
    *(_SHARED[name] for name in ("logging-format", "version")),
    *(
        _ignored(f"worker-threads-for-{name}", "whole", default, _ONE_QUEUE)
        for name, default in (("cronjob", 3), ("podgroup", 5), ("queue", 5), ("gc", 1))
    ),
    _ignored("sharding-configmap", "text", "volcano-sharding-configmap", _SHARDS),
    _ignored("sharding-configmap-namespace", "text", "volcano-system", _SHARDS),
    _ignored("scheduler-configs", "list", (), _SHARDS),
    _ignored("shard-sync-period", "duration", 60_000_000, _SHARDS),
    _ignored("enable-node-event-trigger", "truth", True, _SHARDS),
    *(flag for flag in flags.FLAGS if flag.ignored and flag.help in (flags.KLOG, *flags.GO_RUNTIME)),
)

SECTIONS: Final = tuple(dict.fromkeys(flag.section for flag in FLAGS))
