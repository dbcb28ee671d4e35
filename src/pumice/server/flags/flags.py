"""The flags of `pumice scheduler` as data: names and defaults are Volcano's, apart from servers, which listen on loopback, and the pace of cycles.

Help, the reference page and the command line are made of this table. A flag that means nothing here is accepted, so that existing manifests
start, and says so: its `ignored` tells why.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

Kind = Literal["text", "whole", "number", "truth", "duration", "list"]

CONNECTION: Final = "Connection"
SCHEDULING: Final = "Scheduling"
CONFIGURATION: Final = "Configuration"
CONTROLLERS: Final = "Controllers"
ELECTION: Final = "Leader election"
SERVERS: Final = "Servers"
DIAGNOSTICS: Final = "Logs and diagnostics"
NO_EFFECT: Final = "Accepted without effect"


class Flag(msgspec.Struct, frozen=True):
    """One flag; `shapes` names those that are part of `pumice.cache.options.Options`."""

    name: str
    kind: Kind
    default: Any
    help: str
    section: str
    shapes: bool = False
    ignored: str = ""
    bare: str = ""  # what it means without a value

    @property
    def field(self) -> str:
        """The name as an attribute of the settings."""
        return self.name.replace("-", "_")


def _shaping(name: str, kind: Kind, default: Any, text: str) -> Flag:
    return Flag(name, kind, default, text, SCHEDULING, shapes=True)


def _ignored(name: str, kind: Kind, default: Any, why: str) -> Flag:
    return Flag(name, kind, default, why, NO_EFFECT, ignored=why)


_SAMPLING: Final = "nodes are not sampled unless a percentage is given"
KLOG: Final = "logs go to the standard error"
GO_RUNTIME: Final = (
    "watches are checked for silence instead",
    "there is no Go runtime to profile",
    "every line is written at once",
    "there are no Go source lines",
    "verbosity is one for all modules",
)

FLAGS: Final[tuple[Flag, ...]] = (
    Flag("master", "text", "", "address of the API server; overrides the one in the kubeconfig", CONNECTION),
    Flag("kubeconfig", "text", "", "kubeconfig file; without it and --master: the pod's own account", CONNECTION),
    Flag("kube-api-qps", "number", 2000.0, "requests to the API server per second", CONNECTION),
    Flag("kube-api-burst", "whole", 2000, "requests that may go out at once", CONNECTION),
    _shaping("scheduler-name", "list", ("volcano",), "schedule pods whose `schedulerName` is one of these"),
    _shaping("default-queue", "text", "default", "the queue of groups that name none; created if it is missing"),
    _shaping("node-selector", "list", (), "`label:value`; use only nodes that carry one of these labels"),
    _shaping("priority-class", "truth", True, "read PriorityClass objects"),
    _shaping(
        "enable-namespace-as-queue",
        "truth",
        False,
        "take every namespace for a queue, as kube-batch did; Queue objects do not count, and the weight is that of a ResourceQuota's `volcano.sh/namespace.weight`",
    ),
    _shaping("minimum-feasible-nodes", "whole", 100, "with a percentage: look for at least so many feasible nodes"),
    _shaping("percentage-nodes-to-find", "whole", 0, "stop looking after this part of the nodes was feasible; 0 = all"),
    Flag("csi-storage", "truth", True, "read CSIDriver and CSIStorageCapacity objects", SCHEDULING),
    Flag(
        "schedule-period",
        "duration",
        None,
        "pause between the end of a cycle and the next; without it a cycle starts when something has changed",
        SCHEDULING,
    ),
    Flag(
        "cycle-deadline",
        "duration",
        600_000_000,
        "end the process, so that another replica decides, if one cycle takes longer than this; 0 = never",
        SCHEDULING,
    ),
    Flag(
        "feature-gates",
        "list",
        (),
        "`Name=true|false` pairs; PriorityClass, WorkLoadSupport, PodDisruptionBudgetsSupport and ResourceTopology turn watches off, SchedulingGatesQueueAdmission=true takes the gate `scheduling.volcano.sh/queue-allocation-gate` off pods that ask for it once their queue may take them on, others are accepted",
        SCHEDULING,
    ),
    Flag(
        "scheduler-sharding-mode",
        "text",
        "none",
        "only `none`: node shards are not provided; see --node-selector",
        SCHEDULING,
    ),
    Flag(
        "scheduler-conf",
        "text",
        "",
        "configuration: a file, or `namespace/name` of a ConfigMap; without it the built-in default",
        CONFIGURATION,
    ),
    Flag(
        "disable-default-scheduler-config",
        "truth",
        False,
        "end if --scheduler-conf is missing, instead of using the built-in default",
        CONFIGURATION,
    ),
    Flag("plugins-dir", "text", "", "folder of Python files with plugins and actions of your own", CONFIGURATION),
    Flag(
        "controllers",
        "text",
        "",
        "run controllers of Volcano's kinds in this process too: `*` or no value for all, else as `pumice controllers --controllers` takes them; each process that runs them needs their Lease",
        CONTROLLERS,
        bare="*",
    ),
    Flag(
        "controllers-lease-name",
        "text",
        "vc-controller-manager",
        "name of the controllers' Lease, in the namespace of the scheduler's",
        CONTROLLERS,
    ),
    Flag("leader-elect", "truth", True, "decide only while holding the Lease, so that replicas can stand by", ELECTION),
    Flag("leader-elect-lease-duration", "duration", 15_000_000, "how long others wait for a silent leader", ELECTION),
    Flag(
        "leader-elect-renew-deadline",
        "duration",
        10_000_000,
        "a leader that cannot renew for this long stops",
        ELECTION,
    ),
    Flag("leader-elect-retry-period", "duration", 2_000_000, "pause between two attempts", ELECTION),
    Flag("leader-elect-resource-lock", "text", "leases", "only `leases`", ELECTION),
    Flag("leader-elect-resource-namespace", "text", "volcano-system", "namespace of the Lease", ELECTION),
    Flag("leader-elect-resource-name", "text", "volcano", "name of the Lease", ELECTION),
    Flag("lock-object-namespace", "text", "", "older name of --leader-elect-resource-namespace", ELECTION),
    Flag("listen-address", "text", "127.0.0.1:8080", "address of /metrics; `:8080` means all interfaces", SERVERS),
    Flag("enable-metrics", "truth", False, "serve /metrics", SERVERS),
    Flag("healthz-address", "text", "127.0.0.1:11251", "address of /healthz, /livez and /readyz", SERVERS),
    Flag("enable-healthz", "truth", False, "serve /healthz, /livez and /readyz", SERVERS),
    Flag("ca-cert-file", "text", "", "with the two below: serve health over TLS", SERVERS),
    Flag("tls-cert-file", "text", "", "certificate of the health server", SERVERS),
    Flag("tls-private-key-file", "text", "", "key of the health server", SERVERS),
    Flag(
        "web-address",
        "text",
        "",
        "serve the page on this address, over TLS and to who signs in: `:8443` means all interfaces; nothing is served without it",
        SERVERS,
    ),
    Flag("web-cert-file", "text", "", "certificate of the page; without it one is made that nobody knows", SERVERS),
    Flag("web-private-key-file", "text", "", "key of the page's certificate", SERVERS),
    Flag(
        "web-client-ca",
        "text",
        "",
        "authority of certificates that are taken in place of a token, their CN for the user and their O for the groups",
        SERVERS,
    ),
    Flag(
        "web-hosts", "list", (), "names by which browsers call the page, beside localhost; that of an ingress", SERVERS
    ),
    Flag("v", "whole", 0, "verbosity: 2 configuration, 3 every decision, 4 every cycle", DIAGNOSTICS),
    Flag("logging-format", "text", "text", "`text` (key=value) or `json`", DIAGNOSTICS),
    Flag(
        "cache-dumper",
        "truth",
        True,
        "SIGUSR1 writes what is known to a file, SIGUSR2 a summary to the log",
        DIAGNOSTICS,
    ),
    Flag(
        "cache-dump-dir",
        "text",
        "",
        "folder of these files, which keeps the newest five; default: the temporary folder",
        DIAGNOSTICS,
    ),
    Flag(
        "record",
        "text",
        "",
        "folder to record every input and every decision in, for `pumice replay`; nothing is recorded without it",
        DIAGNOSTICS,
    ),
    Flag(
        "record-limit",
        "text",
        "1Gi",
        "bytes that the recordings in this folder may have; the oldest go before there are more",
        DIAGNOSTICS,
    ),
    Flag("version", "truth", False, "print the version and end", DIAGNOSTICS),
    _ignored("resync-period", "duration", 0, "watches are checked for silence instead"),
    _ignored(
        "resource-sync-timeout",
        "duration",
        60_000_000,
        "no cycle runs before every list that decisions read is complete",
    ),
    Flag(
        "minimum-percentage-nodes-to-find",
        "whole",
        5,
        _SAMPLING,
        NO_EFFECT,
        shapes=True,
        ignored=_SAMPLING,
    ),
    _ignored("node-worker-threads", "whole", 20, "events need no workers"),
    _ignored("gate-removal-worker-num", "whole", 5, "gates need no workers"),
    _ignored("ignored-provisioners", "list", (), "only volumes of CSI drivers that state a limit are counted"),
    _ignored("scheduler-sharding-name", "text", "volcano", "node shards are not provided"),
    _ignored("enable-pprof", "truth", False, "there is no Go runtime to profile"),
    _ignored("log-flush-frequency", "duration", 5_000_000, "every line is written at once"),
    _ignored("add-dir-header", "truth", False, KLOG),
    _ignored("alsologtostderr", "truth", False, KLOG),
    _ignored("log-backtrace-at", "text", "", "there are no Go source lines"),
    _ignored("log-dir", "text", "", KLOG),
    _ignored("log-file", "text", "", KLOG),
    _ignored("log-file-max-size", "whole", 1800, KLOG),
    _ignored("logtostderr", "truth", True, KLOG),
    _ignored("one-output", "truth", False, KLOG),
    _ignored("skip-headers", "truth", False, KLOG),
    _ignored("skip-log-headers", "truth", False, KLOG),
    _ignored("stderrthreshold", "text", "2", KLOG),
    _ignored("vmodule", "text", "", "verbosity is one for all modules"),
)

BY_NAME: Final = {flag.name: flag for flag in FLAGS}
SECTIONS: Final = tuple(dict.fromkeys(flag.section for flag in FLAGS))
