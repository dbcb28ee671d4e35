"""The controllers that a cluster for ordinary manifests runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import kinds
from pumice.controllers import device_claims, device_taints, group_protection, volumes
from pumice.controllers.cron_jobs import flavours
from pumice.controllers.cron_jobs.controlling import CronJobs
from pumice.controllers.workloads import daemon_sets, manifests, replica_sets, stateful_sets
from pumice.controllers.workloads.deployments.controlling import Deployments
from pumice.controllers.workloads.jobs.controlling import Jobs

if TYPE_CHECKING:
    from pumice.controllers.queueing.controller import Controller

SOURCES: Final = {
    kinds.BATCH_JOB: "job-controller",
    kinds.BATCH_CRON_JOB: "cronjob-controller",
    kinds.REPLICA_SET: "replicaset-controller",
    kinds.REPLICATION_CONTROLLER: "replication-controller",
    manifests.DEPLOYMENT: "deployment-controller",
    kinds.STATEFUL_SET: "statefulset-controller",
    kinds.DAEMON_SET: "daemonset-controller",
    kinds.PERSISTENT_VOLUME_CLAIM: "persistentvolume-controller",
    kinds.RESOURCE_CLAIM: "resource_claim",
    kinds.PERSISTENT_VOLUME: "persistentvolume-controller",
}
"""Who is named as the source of events about objects of a kind."""


def controllers(*, gang_jobs: bool = False) -> list[Controller]:
    """Give one controller for each kind of workload, those for volumes and claims of devices, and what protects groups; `gang_jobs` makes gangs of Jobs whose pods all run at once."""
    return [
        Jobs(gangs=gang_jobs),
        CronJobs(flavours.BATCH),
        Deployments(),
        replica_sets.ReplicaSets(),
        replica_sets.ReplicaSets(kinds.REPLICATION_CONTROLLER),
        stateful_sets.StatefulSets(),
        daemon_sets.DaemonSets(),
        volumes.Claims(),
        volumes.Volumes(),
        group_protection.ProtectedGroups(),
        *device_claims.controllers(),
        device_taints.TaintedClaims(),
    ]
