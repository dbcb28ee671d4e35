"""Every path at which objects are completed or judged, with its kind, its operations and its function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pumice.admission import cron_jobs, hyper_nodes, job_flows, pod_groups, pods, remarks
from pumice.admission.jobs import completing as job_completing
from pumice.admission.jobs import validity as job_validity
from pumice.admission.queues import completing as queue_completing
from pumice.admission.queues import validity as queue_validity
from pumice.admission.requests import Operation, Request, RuleSettings
from pumice.admission.surroundings import Surroundings
from pumice.api import kinds

Document = dict[str, Any]
Judge = Callable[[Request, remarks.Remarks, Surroundings, RuleSettings], None]
Complete = Callable[[Request, Surroundings, RuleSettings], Document]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One path of the webhook server: it either completes objects or judges them."""

    path: str
    kind: kinds.Kind
    operations: tuple[Operation, ...] = ("CREATE",)
    complete: Complete | None = None
    judge: Judge | None = None

    @property
    def mutates(self) -> bool:
        """Whether it changes objects."""
        return self.complete is not None

    @property
    def webhook(self) -> str:
        """The name of the webhook, as clients are told who refused."""
        return f"{'mutate' if self.mutates else 'validate'}{self.kind.singular}.volcano.sh"


_WRITES: Final = ("CREATE", "UPDATE")
RULES: Final = (
    Rule(path="/jobs/mutate", kind=kinds.JOB, complete=job_completing.complete),
    Rule(path="/jobs/validate", kind=kinds.JOB, operations=_WRITES, judge=job_validity.judge),
    Rule(path="/podgroups/mutate", kind=kinds.POD_GROUP, complete=pod_groups.complete),
    Rule(path="/podgroups/validate", kind=kinds.POD_GROUP, judge=pod_groups.judge),
    Rule(path="/pods/mutate", kind=kinds.POD, complete=pods.complete),
    Rule(path="/pods/validate", kind=kinds.POD, judge=pods.judge),
    Rule(path="/queues/mutate", kind=kinds.QUEUE, complete=queue_completing.complete),
    Rule(path="/queues/validate", kind=kinds.QUEUE, operations=(*_WRITES, "DELETE"), judge=queue_validity.judge),
    Rule(path="/hypernodes/validate", kind=kinds.HYPER_NODE, operations=_WRITES, judge=hyper_nodes.judge),
    Rule(path="/jobflows/validate", kind=kinds.JOB_FLOW, operations=_WRITES, judge=job_flows.judge),
    Rule(path="/cronjobs/validate", kind=kinds.CRON_JOB, operations=_WRITES, judge=cron_jobs.judge),
)
BY_PATH: Final = {rule.path: rule for rule in RULES}

# What Volcano's webhook process serves unless told otherwise, and what its chart turns on.
DEFAULT_PATHS: Final = ("/jobs/mutate", "/jobs/validate", "/podgroups/mutate", "/pods/validate", "/pods/mutate", "/queues/mutate", "/queues/validate")  # fmt: skip
INSTALLED_PATHS: Final = ("/jobs/mutate", "/jobs/validate", "/podgroups/validate", "/queues/mutate", "/queues/validate", "/hypernodes/validate", "/cronjobs/validate")  # fmt: skip


def named(paths: tuple[str, ...]) -> tuple[Rule, ...]:
    """Give the rules of some paths, those that complete first."""
    return tuple(sorted((BY_PATH[path] for path in paths), key=lambda rule: not rule.mutates))


def completed(
    rules: tuple[Rule, ...], kind: kinds.Kind, request: Request, around: Surroundings, settings: RuleSettings
) -> Document:
    """Give an object as the rules of its kind complete it."""
    found = request.object
    for rule in rules:
        if rule.complete is not None and rule.kind is kind and request.operation in rule.operations:
            found = rule.complete(msgspec.structs.replace(request, object=found), around, settings)
    return found


def judged(
    rules: tuple[Rule, ...], kind: kinds.Kind, request: Request, around: Surroundings, settings: RuleSettings
) -> remarks.Remarks:
    """Give what the rules of a kind find wrong with an object."""
    found = remarks.Remarks(strict=settings.strict)
    for rule in rules:
        if rule.judge is not None and rule.kind is kind and request.operation in rule.operations:
            rule.judge(request, found, around, settings)
    return found
