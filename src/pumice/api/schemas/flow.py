"""Schemas of commands, job flows and the templates that flows are made of."""

from __future__ import annotations

from typing import Final

from pumice.api.schemas.language import Schema, boolean, duration, listing, mapping, moment, number, record, string
from pumice.api.schemas.workload import TASK_COUNTS, job_spec

COMMAND: Final = {
    "action": string("What is to be done."),
    "target": record(
        "The object it is to be done to.",
        ("apiVersion", "kind", "name", "uid"),
        apiVersion=string("Its API version."),
        kind=string("Its kind: Job or Queue."),
        name=string("Its name."),
        uid=string("Its uid."),
        controller=boolean("Whether the target controls the command."),
        blockOwnerDeletion=boolean("Whether the target waits for the command when it is deleted."),
    ),
    "reason": string("Why, in one word."),
    "message": string("Why, for people."),
}


def _probe() -> Schema:
    task = {"taskName": string("The role that is asked.")}
    port = number("The port.", least=0, most=65535)
    header = record("A header of the request.", name=string("Its name."), value=string("Its value."))
    http = record("", **task, path=string("The path."), port=port, httpHeader=header)
    return record(
        "What must be true of the jobs before.",
        httpGetList=listing(http, "Requests that must succeed."),
        tcpSocketList=listing(record("", ("port",), **task, port=port), "Connections that must succeed."),
        taskStatusList=listing(record("", **task, phase=string("The phase it must be in.")), "Phases of roles."),
    )


def _flow() -> Schema:
    return record(
        "",
        ("name",),
        name=string("The JobTemplate.", shortest=1),
        dependsOn=record(
            "What must have ended before.", targets=listing(string(), "Names of other flows."), probe=_probe()
        ),
        patch=record("What differs from the template.", jobSpec=job_spec(defaults=False)),
    )


_JOB_NAMES: Final = {
    "pendingJobs": "wait",
    "runningJobs": "run",
    "failedJobs": "failed",
    "completedJobs": "completed",
    "terminatedJobs": "were terminated",
    "unKnowJobs": "nothing is known of",
}
_SPAN: Final = {
    "startTimestamp": moment("When it began."),
    "endTimestamp": moment("When it ended."),
    "state": string("The phase."),
}

JOB_FLOW: Final = {
    "spec": record(
        "Jobs that run one after another.",
        flows=listing(_flow(), "The jobs, each with what must have ended before it."),
        jobRetainPolicy=string("What becomes of the jobs at the end.", among=("retain", "delete")),
    ),
    "status": record(
        "How far the flow has come.",
        **{field: listing(string(), f"Jobs that {what}.") for field, what in _JOB_NAMES.items()},
        jobStatusList=listing(
            record(
                "",
                name=string("The job."),
                **_SPAN,
                restartCount=number("Restarts so far."),
                runningHistories=listing(record("", **_SPAN), "The phases it went through."),
            ),
            "The life of each job.",
        ),
        conditions=mapping(
            record(
                "",
                phase=string("The job's phase."),
                createTime=moment("When the job was made."),
                runningDuration=duration("How long it has run."),
                taskStatusCount=TASK_COUNTS,
            ),
            "What is known of each job, by its name.",
        ),
        state=record(
            "The phase of the flow.",
            phase=string("The phase.", among=("Succeed", "Terminating", "Failed", "Running", "Pending")),
        ),
    ),
}

JOB_TEMPLATE: Final = {
    "spec": job_spec(),
    "status": record("What was made of it.", jobDependsOnList=listing(string(), "Jobs made from this template.")),
}
