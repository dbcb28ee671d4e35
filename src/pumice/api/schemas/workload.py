"""Schemas of jobs and cron jobs.

The scheduler does not look into these objects. They are defined so that manifests written for Volcano are checked as Volcano checks them.
"""

from __future__ import annotations

from typing import Final

from pumice.api.schemas.language import (
    Schema,
    boolean,
    duration,
    foreign,
    listing,
    mapping,
    moment,
    name,
    number,
    record,
    resources,
    selector,
    string,
)
from pumice.api.schemas.scheduling import network_topology

_EVENTS: Final = (
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
)
PHASES: Final = (
    "Pending",
    "Aborting",
    "Aborted",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)


def _policies(text: str) -> Schema:
    policy = record(
        "",
        action=string("What is done."),
        event=string("On which event.", among=_EVENTS),
        events=listing(string(among=_EVENTS), "On any of these events."),
        exitCode=number("On a container that ends with this code; not 0."),
        timeout=duration("How long to wait before it is done."),
    )
    return listing(policy, text)


def _task() -> Schema:
    partition = record(
        "Pods cut into equal parts.",
        ("totalPartitions", "partitionSize"),
        totalPartitions=number("Parts.", least=1),
        partitionSize=number("Pods of one part.", least=1),
        minPartitions=number("Parts that are started together or not at all.", default=0, least=0),
        networkTopology=network_topology(),
    )
    return record(
        "",
        name=string("The role.", longest=63, pattern="^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        replicas=number("Pods of this role.", least=0),
        minAvailable=number("Pods of this role that are started together or not at all.", least=0),
        template=foreign("The template of the pods, as in a Deployment."),
        policies=_policies("What is done on which event; before those of the job."),
        topologyPolicy=string(
            "How pods want their NUMA cells.", among=("none", "best-effort", "restricted", "single-numa-node")
        ),
        maxRetry=number("Restarts of its containers before the role has failed.", least=0),
        dependsOn=record(
            "Roles that must have started before.",
            name=listing(string(), "Their names."),
            iteration=string("Whether any of them suffices, or all are needed.", among=("any", "all")),
        ),
        partitionPolicy=partition,
    )


def _reference(text: str) -> Schema:
    return record(
        text,
        ("kind", "name"),
        apiGroup=string("Its API group; none means the core group."),
        kind=string("Its kind."),
        name=string("Its name."),
        namespace=string("Its namespace; only of dataSourceRef."),
    )


def _claim() -> Schema:
    return record(
        "The claim that is made for the job.",
        accessModes=listing(string(), "ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod.", atomic=True),
        dataSource=_reference("What the volume is filled from: a snapshot or a claim."),
        dataSourceRef=_reference("What the volume is filled from: any object that a populator knows."),
        resources=record(
            "How large the volume must be.",
            limits=resources("The most it may have."),
            requests=resources("The least it must have."),
        ),
        selector=selector("Volumes to choose from."),
        storageClassName=string("The StorageClass of the claim."),
        volumeAttributesClassName=string("The VolumeAttributesClass of the claim."),
        volumeMode=string("Filesystem or Block."),
        volumeName=string("The volume that is claimed."),
    )


def job_spec(*, defaults: bool = True) -> Schema:
    """Describe a job; without defaults where absent means unchanged."""
    volume = record(
        "",
        ("mountPath",),
        mountPath=string("Where it is mounted in every container.", shortest=1),
        volumeClaimName=string("An existing claim.", longest=253),
        volumeClaim=_claim(),
    )
    return record(
        "What the job runs.",
        schedulerName=string("The scheduler of pods whose template names none.", longest=63),
        minAvailable=number("Pods that are started together or not at all.", least=0),
        volumes=listing(volume, "Mounted in every container."),
        tasks=listing(_task(), "The roles.", least=1),
        policies=_policies("What is done on which event."),
        plugins=mapping(listing(string()), "Arguments by the name of the job plugin."),
        runningEstimate=duration("How long the job is expected to run."),
        queue=name("The Queue the job belongs to.", default="default" if defaults else ""),
        maxRetry=number("Restarts before the job has failed.", default=3 if defaults else None, least=0),
        ttlSecondsAfterFinished=number("Deleted that long after its end.", least=0),
        priorityClassName=name("The PriorityClass of the job."),
        minSuccess=number("Succeeded pods that complete the job.", least=1),
        networkTopology=network_topology(),
    )


TASK_COUNTS: Final = mapping(
    record("", phase=mapping(number(), "Pods by their phase.")), "Pods by role, and by their phase."
)

JOB: Final = {
    "spec": job_spec(),
    "status": record(
        "How far the job has come.",
        state=record(
            "Its phase.",
            phase=string("The phase.", among=PHASES),
            reason=string("Why, in one word."),
            message=string("Why, for people."),
            lastTransitionTime=moment("Since when it is so."),
        ),
        taskStatusCount=TASK_COUNTS,
        minAvailable=number("The minimum that is in force.", least=0),
        pending=number("Pods that wait.", least=0),
        running=number("Pods that run.", least=0),
        succeeded=number("Pods that succeeded.", least=0),
        failed=number("Pods that failed.", least=0),
        terminating=number("Pods that are being deleted.", least=0),
        unknown=number("Pods of which nothing is known.", least=0),
        version=number("How often all pods were ended and made anew.", least=0),
        retryCount=number("Restarts so far.", least=0),
        runningDuration=duration("From its creation to its latest change of phase."),
        controlledResources=mapping(string(), "What was made for the job, by what made it."),
        conditions=listing(
            record("", status=string("The phase."), lastTransitionTime=moment("When it was entered.")),
            "The phases it went through.",
        ),
    ),
}

_ACTIVE: Final = record(
    "",
    apiVersion=string("Its API version."),
    kind=string("Its kind."),
    name=string("Its name."),
    namespace=string("Its namespace."),
    uid=string("Its uid."),
    resourceVersion=string("Its version."),
    fieldPath=string("A part of it."),
)
_METADATA: Final = record(
    "Metadata of the jobs.",
    name=string("Ignored: each start has a name of its own."),
    namespace=string("Ignored: that of the CronJob."),
    labels=mapping(string(), "Labels of the jobs."),
    annotations=mapping(string(), "Annotations of the jobs."),
    finalizers=listing(string(), "Finalizers of the jobs."),
)

CRON_JOB: Final = {
    "spec": record(
        "When which job runs.",
        ("schedule", "jobTemplate"),
        schedule=string("Five cron fields, or a descriptor such as @hourly.", shortest=1),
        timeZone=string("An IANA name."),
        startingDeadlineSeconds=number("A start that is later than this is left out.", least=0, bits=64),
        concurrencyPolicy=string(
            "A start while the last job runs: Allow both, Forbid the new one, Replace the old one.",
            default="Allow",
            among=("Allow", "Forbid", "Replace"),
        ),
        suspend=boolean("No further starts.", default=False),
        jobTemplate=record("The job.", metadata=_METADATA, spec=job_spec()),
        successfulJobsHistoryLimit=number("Completed jobs that are kept.", default=3, least=0),
        failedJobsHistoryLimit=number("Failed jobs that are kept.", default=1, least=0),
    ),
    "status": record(
        "What was started.",
        active=listing(_ACTIVE, "The jobs that run.", atomic=True),
        lastScheduleTime=moment("The latest start."),
        lastSuccessfulTime=moment("The latest completion."),
    ),
}
