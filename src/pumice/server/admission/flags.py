"""The flags of `pumice admission` as data: names and defaults are Volcano's, apart from the address, which is loopback."""

from __future__ import annotations

from typing import Final

from pumice.admission import rules
from pumice.server.flags.flags import CONNECTION, DIAGNOSTICS, NO_EFFECT, SERVERS, Flag
from pumice.server.flags.flags import FLAGS as OF_SCHEDULER

RULES: Final = "Rules"
CERTIFICATES: Final = "Certificates"
# Of klog, which every program of Volcano's takes.
_SHARED: Final = ("log-flush-frequency", "add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size", "logtostderr", "one-output", "skip-headers", "skip-log-headers", "stderrthreshold", "vmodule")  # fmt: skip

FLAGS: Final[tuple[Flag, ...]] = (
    Flag("master", "text", "", "address of the API server; overrides the one in the kubeconfig", CONNECTION),
    Flag("kubeconfig", "text", "", "kubeconfig file; without it and --master: the pod's own account", CONNECTION),
    Flag("kube-api-qps", "number", 50.0, "requests to the API server per second", CONNECTION),
    Flag("kube-api-burst", "whole", 100, "requests that may go out at once", CONNECTION),
    Flag(
        "enabled-admission",
        "list",
        rules.DEFAULT_PATHS,
        f"the paths that are served; there are {', '.join(rules.BY_PATH)}",
        RULES,
    ),
    Flag("scheduler-name", "list", ("volcano",), "schedulers whose pods are judged; jobs that name none get the first", RULES),
    Flag("admission-conf", "text", "", "file of resource groups for /pods/mutate; a change of it is followed", RULES),
    Flag("strict", "truth", False, "refuse also what Volcano admits and only this project finds wrong; otherwise that is a warning", RULES),
    Flag("max-queue-depth", "whole", 5, "levels of queues below root", RULES),
    Flag("enable-root-queue-protection", "truth", True, "keep capability, deserved and guarantee of root as they are", RULES),
    Flag("enable-queue-allocated-pods-check", "truth", False, "refuse to delete a queue that has pods", RULES),
    Flag("feature-gates", "list", (), "`Name=true|false` pairs; SchedulingGatesQueueAdmission=true gives pods the gate they ask for, others are accepted", RULES),
    Flag("listen-address", "text", "127.0.0.1", "address to listen on, without a port; empty means all interfaces", SERVERS),
    Flag("port", "whole", 8443, "port to listen on", SERVERS),
    Flag("graceful-shutdown-time", "duration", 30_000_000, "how long requests that are being answered may take at the end", SERVERS),
    Flag("healthz-address", "text", "127.0.0.1:11251", "address of /healthz, /livez and /readyz", SERVERS),
    Flag("enable-healthz", "truth", False, "serve /healthz, /livez and /readyz", SERVERS),
    Flag("webhook-namespace", "text", "volcano-system", "namespace of the Service and the Secret; never judged, nor is kube-system", CERTIFICATES),
    Flag("webhook-service-name", "text", "volcano-admission-service", "the Service; webhook configurations are called after it", CERTIFICATES),
    Flag("webhook-secret-name", "text", "", "the Secret that replicas share the certificate through; else the Service's name with -secret for -service", CERTIFICATES),
    Flag("webhook-url", "text", "", "where the API server finds this process, if not through the Service", CERTIFICATES),
    Flag("ca-cert-file", "text", "", "with the two below: a certificate of your own, followed when its files change", CERTIFICATES),
    Flag("tls-cert-file", "text", "", "the certificate", CERTIFICATES),
    Flag("tls-private-key-file", "text", "", "its key", CERTIFICATES),
    Flag("v", "whole", 0, "verbosity: 2 configuration, 3 every refusal, 4 every request", DIAGNOSTICS),
    Flag("logging-format", "text", "text", "`text` (key=value) or `json`", DIAGNOSTICS),
    Flag("version", "truth", False, "print the version and end", DIAGNOSTICS),
    *(flag for flag in OF_SCHEDULER if flag.section == NO_EFFECT and flag.name in _SHARED),
)  # fmt: skip
