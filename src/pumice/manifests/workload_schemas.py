"""Schemas of what controllers read: jobs, cron jobs, commands and job flows.

The scheduler does not look into these objects. They are defined so that manifests written for Volcano are accepted and kept as they are.
"""

from __future__ import annotations

from typing import Final

from pumice.manifests.scheduling_schemas import network_topology
from pumice.manifests.schema import (
    Schema,
    boolean,
    duration,
    listing,
    mapping,
    moment,
    name,
    number,
    opaque,
    record,
    string,
)

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
_PHASES: Final = (
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
        totalPartitions=number(least=1),
        partitionSize=number(least=1),
        minPartitions=number(default=0, least=0),
        networkTopology=network_topology(),
    )
    return record(
        name=string("The role.", longest=63, pattern="^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        replicas=number("Pods of this role.", least=0),
        minAvailable=number("Pods of this role that are started together or not at all.", least=0),
        template=opaque("The template of the pods."),
        policies=_policies("What is done on which event; before those of the job."),
        topologyPolicy=string(among=("none", "best-effort", "restricted", "single-numa-node")),
        maxRetry=number(least=0),
        dependsOn=record(name=listing(string()), iteration=string(among=("any", "all"))),
        partitionPolicy=partition,
    )


def _job() -> Schema:
    volume = record(
        "",
        ("mountPath",),
        mountPath=string(shortest=1),
        volumeClaimName=string(longest=253),
        volumeClaim=opaque("The claim that is made for the job."),
    )
    return record(
        "What the job runs.",
        schedulerName=string("The scheduler of pods whose template names none.", longest=63),
        minAvailable=number("Pods that are started together or not at all.", least=0),
        volumes=listing(volume, "Mounted in every container."),
        tasks=listing(_task(), "The roles.", least=1),
        policies=_policies("What is done on which event."),
        plugins=mapping(listing(string()), "Arguments by the name of the job plugin."),
        runningEstimate=duration(),
        queue=name("The Queue the job belongs to.", default="default"),
        maxRetry=number("Restarts before the job has failed.", default=3, least=0),
        ttlSecondsAfterFinished=number("Deleted that long after its end.", least=0),
        priorityClassName=name("The PriorityClass of the job."),
        minSuccess=number("Succeeded pods that complete the job.", least=1),
        networkTopology=network_topology(),
    )


def _counts(*fields: str) -> dict[str, Schema]:
    return {field: number(least=0) for field in fields}


_TASK_COUNTS: Final = mapping(record(phase=mapping(number())))

JOB: Final = {
    "spec": _job(),
    "status": record(
        state=record(phase=string(among=_PHASES), reason=string(), message=string(), lastTransitionTime=moment()),
        taskStatusCount=_TASK_COUNTS,
        **_counts("minAvailable", "pending", "running", "succeeded", "failed", "terminating", "unknown"),
        **_counts("version", "retryCount"),
        runningDuration=duration(),
        controlledResources=mapping(string()),
        conditions=listing(record(status=string(), lastTransitionTime=moment())),
    ),
}

CRON_JOB: Final = {
    "spec": record(
        "When which job runs.",
        ("schedule", "jobTemplate"),
        schedule=string("Five cron fields, or a descriptor such as @hourly.", shortest=1),
        timeZone=string("An IANA name."),
        startingDeadlineSeconds=number("A start that is later than this is left out.", least=0, bits=64),
        concurrencyPolicy=string(default="Allow", among=("Allow", "Forbid", "Replace")),
        suspend=boolean("No further starts.", default=False),
        jobTemplate=record("The job.", metadata=opaque(), spec=_job()),
        successfulJobsHistoryLimit=number(default=3, least=0),
        failedJobsHistoryLimit=number(default=1, least=0),
    ),
    "status": record(
        active=listing(opaque(), "The jobs that run.", atomic=True),
        lastScheduleTime=moment(),
        lastSuccessfulTime=moment(),
    ),
}

COMMAND: Final = {
    "action": string("What is to be done."),
    "target": record(
        "The object it is to be done to.",
        ("apiVersion", "kind", "name", "uid"),
        apiVersion=string(),
        kind=string(),
        name=string(),
        uid=string(),
        controller=boolean(),
        blockOwnerDeletion=boolean(),
    ),
    "reason": string(),
    "message": string(),
}


def _flow() -> Schema:
    task = {"taskName": string()}
    port = number(least=0, most=65535)
    http = record(**task, path=string(), port=port, httpHeader=record(name=string(), value=string()))
    probe = record(
        httpGetList=listing(http),
        tcpSocketList=listing(record("", ("port",), **task, port=port)),
        taskStatusList=listing(record(**task, phase=string())),
    )
    return record(
        "",
        ("name",),
        name=string("The JobTemplate.", shortest=1),
        dependsOn=record("What must have ended before.", targets=listing(string()), probe=probe),
        patch=record(jobSpec=opaque("What differs from the template.")),
    )


_JOB_NAMES: Final = ("pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs", "unKnowJobs")
_SPAN: Final = {"startTimestamp": moment(), "endTimestamp": moment(), "state": string()}

JOB_FLOW: Final = {
    "spec": record(
        "Jobs that run one after another.",
        flows=listing(_flow()),
        jobRetainPolicy=string("What becomes of the jobs at the end.", among=("retain", "delete")),
    ),
    "status": record(
        **{field: listing(string()) for field in _JOB_NAMES},
        jobStatusList=listing(
            record(name=string(), **_SPAN, restartCount=number(), runningHistories=listing(record(**_SPAN)))
        ),
        conditions=mapping(
            record(phase=string(), createTime=moment(), runningDuration=duration(), taskStatusCount=_TASK_COUNTS)
        ),
        state=record(phase=string(among=("Succeed", "Terminating", "Failed", "Running", "Pending"))),
    ),
}

JOB_TEMPLATE: Final = {
    "spec": _job(),
    "status": record(jobDependsOnList=listing(string(), "Jobs made from this template.")),
}
