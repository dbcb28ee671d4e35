"""Every rule that objects are judged by, with who refuses what breaks it: only what others refuse too is refused unless one asks for more."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Refuser = Literal["Volcano", "Kubernetes", "schema", "Pumice", "nobody"]


class Law(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. What `Pumice` alone finds wrong is admitted with a warning unless rules are strict; `nobody` refuses what is only told."""

    name: str
    kinds: str
    says: str
    refused_by: Refuser = "Volcano"

    def refuses(self, *, strict: bool) -> bool:
        """Tell whether an object that breaks it is refused."""
        return self.refused_by in ("Volcano", "Kubernetes", "schema") or (strict and self.refused_by == "Pumice")


SCHEMA: Final = Law(
    name="schema",
    kinds="all",
    says="fields have the type, the bounds and the values that the schema of their kind allows",
    refused_by="schema",
)

# ---- templates of pods
TEMPLATE: Final = Law(
    name="pod-template",
    kinds="Job",
    says="templates of pods are such as kube-apiserver takes: metadata, names, containers, amounts, ports, variables, volumes, mounts, probes, affinity, tolerations",
    refused_by="Kubernetes",
)
TEMPLATE_OF_USE: Final = Law(
    name="pod-template-of-use",
    kinds="Job",
    says="what Kubernetes takes in a template and no pod can use: blanks around an image, a negative grace period, an unnamed pull secret, a medium or a source of a volume that nobody knows, a projected volume without sources",
    refused_by="Pumice",
)
TEMPLATE_NEWER: Final = Law(
    name="pod-template-newer",
    kinds="Job",
    says="a source of a volume that a newer Kubernetes may know",
    refused_by="nobody",
)

# ---- jobs
TASKS: Final = Law(name="job-tasks", kinds="Job", says="at least one task, each with a name of its own")
JOB_NAME: Final = Law(name="job-name", kinds="Job", says="names of the job and of its pods that can be labels")
HOST_NAMES: Final = Law(
    name="job-host-names",
    kinds="Job",
    says="where a plugin gives pods host names: names of pods that can be one, up to the last index",
    refused_by="Pumice",
)
NUMBERS: Final = Law(
    name="job-numbers", kinds="Job", says="`minAvailable` within the replicas, of each task and of all together"
)
PARTITIONS: Final = Law(
    name="job-partitions",
    kinds="Job",
    says="replicas are totalPartitions x partitionSize, and `minAvailable` of the task minPartitions x partitionSize",
)
POLICIES: Final = Law(
    name="job-policies",
    kinds="Job",
    says="policies with one cause each, known events and actions, no event and no exit code in two policies, `*` alone, no exit code 0",
)
POLICY_REPEATS: Final = Law(
    name="job-policy-repeats", kinds="Job", says="one policy lists an event once", refused_by="Pumice"
)
POLICY_ACTION: Final = Law(
    name="job-exit-code-action", kinds="Job", says="a policy for an exit code has a known action", refused_by="Pumice"
)
POLICY_TIMEOUT: Final = Law(
    name="job-policy-timeout", kinds="Job", says="a policy's timeout is not negative", refused_by="Pumice"
)
POLICY_IDLE: Final = Law(
    name="job-policy-idle",
    kinds="Job",
    says="a policy that never acts: PodPending without a timeout, the event JobUpdated",
    refused_by="nobody",
)
PLUGINS: Final = Law(name="job-plugins", kinds="Job", says="known plugins, and a master task for mpi")
PLUGIN_ARGUMENTS: Final = Law(
    name="job-plugin-arguments",
    kinds="Job",
    says="arguments that a plugin takes, and a head task for ray",
    refused_by="Pumice",
)
VOLUMES: Final = Law(
    name="job-volumes", kinds="Job", says="volumes at paths of their own, each with either a claim or a claim's name"
)
CLAIMS: Final = Law(
    name="job-claims",
    kinds="Job",
    says="claims with a good name, or with access modes and a size",
    refused_by="Pumice",
)
TOPOLOGY: Final = Law(name="network-topology", kinds="Job, PodGroup", says="one of the two tier fields, not both")
NUMA: Final = Law(
    name="job-numa", kinds="Job", says="whole CPUs in every container where topologyPolicy asks for cells"
)
DEPENDENCIES: Final = Law(
    name="job-dependencies", kinds="Job", says="dependencies on tasks that are there, without a circle"
)
DEADLOCK: Final = Law(
    name="job-deadlock",
    kinds="Job",
    says="a gang whose minimum waits for pods that come only after it has started",
    refused_by="nobody",
)
QUEUE: Final = Law(
    name="queue-reference",
    kinds="Job, PodGroup",
    says="a queue that exists and is Open; for a Job also one that is not root and has no children",
)
UNSEEN: Final = Law(
    name="unseen",
    kinds="Job, PodGroup, Queue",
    says="a queue or a priority class that is not there, or not among what was read",
    refused_by="nobody",
)
CHANGES: Final = Law(
    name="job-changes",
    kinds="Job",
    says="of a Job only `minAvailable`, `priorityClassName`, and replicas and `minAvailable` of its tasks change",
)

# ---- groups and pods
LEAST_OF_ROLE: Final = Law(
    name="group-role-minimum", kinds="PodGroup", says="minimums of roles are not negative", refused_by="Pumice"
)
BUDGETS: Final = Law(
    name="pod-budgets", kinds="Pod", says="a disruption budget is a number above 0 or 1% to 99%, and there is one"
)
BUDGET_FORM: Final = Law(
    name="pod-budget-form",
    kinds="Pod",
    says="a disruption budget is written plainly, as `3` or `40%`, and has at most nine digits",
    refused_by="Pumice",
)

# ---- queues
AMOUNTS: Final = Law(name="queue-amounts", kinds="Queue", says="amounts that are some, and not negative")
RESOURCES: Final = Law(
    name="queue-resources", kinds="Queue", says="amounts of what can be the name of a resource", refused_by="Pumice"
)
PROMISES: Final = Law(
    name="queue-promises",
    kinds="Queue",
    says="guarantee within deserved, which lists all that is guaranteed, within capability",
)
STATE: Final = Law(name="queue-state", kinds="Queue", says="nobody sets a state but Open and Closed")
HIERARCHY: Final = Law(
    name="queue-hierarchy",
    kinds="Queue",
    says="as many weights as names in the hierarchy, all above 0; a path that no other queue's goes on from",
)
HIERARCHY_FORM: Final = Law(
    name="queue-hierarchy-form",
    kinds="Queue",
    says="weights that are written plainly and belong to a path",
    refused_by="Pumice",
)
PARENT: Final = Law(
    name="queue-parent",
    kinds="Queue",
    says="a parent that exists, has no pods of its own, is not the queue itself nor below it, and not too deep",
)
SUBTREE: Final = Law(
    name="queue-subtree",
    kinds="Queue",
    says="what lies below a queue that is moved does not come too deep; root has no parent",
    refused_by="Pumice",
)
SHARES: Final = Law(
    name="queue-shares",
    kinds="Queue",
    says="a ceiling within that of the ancestors; guarantee and deserved of siblings within the parent's, unless that is root",
)
ROOT: Final = Law(name="queue-root", kinds="Queue", says="capability, deserved and guarantee of root stay as they are")
DELETION: Final = Law(
    name="queue-deletion",
    kinds="Queue",
    says="`default`, `root` and a queue with children are not deleted; nor one with pods, if that is asked for",
)

# ---- hyper-nodes
PATTERN: Final = Law(name="hyper-node-pattern", kinds="HyperNode", says="a pattern is a regular expression")
PATTERN_FORM: Final = Law(
    name="hyper-node-pattern-form",
    kinds="HyperNode",
    says="a pattern can be followed here: no classes of Unicode, at most 1024 characters",
    refused_by="Pumice",
)
SELECTOR: Final = Law(
    name="hyper-node-selector",
    kinds="HyperNode",
    says="a label selector that can be read",
    refused_by="Pumice",
)
FINDS_NOTHING: Final = Law(
    name="hyper-node-finds-nothing",
    kinds="HyperNode",
    says="members of type HyperNode that are not named one by one",
    refused_by="nobody",
)

# ---- flows and schedules
FLOWS: Final = Law(name="flow-targets", kinds="JobFlow", says="targets that are flows of it, without a circle")
FLOW_NAMES: Final = Law(
    name="flow-names", kinds="JobFlow", says="flows whose names make good names of jobs", refused_by="Pumice"
)
FLOW_REPEATS: Final = Law(name="flow-repeats", kinds="JobFlow", says="a flow's name is used once", refused_by="Pumice")
FLOW_UNHEEDED: Final = Law(
    name="flow-unheeded", kinds="JobFlow", says="fields that have no effect: `probe`, `patch`", refused_by="nobody"
)
SCHEDULE: Final = Law(
    name="cron-schedule",
    kinds="CronJob",
    says="a schedule that can be read and names no zone, a time zone that exists, a name of at most 52 characters",
)
CRON_TEMPLATE: Final = Law(
    name="cron-template", kinds="CronJob", says="a template that makes good Jobs", refused_by="Pumice"
)
CRON_MINUTES: Final = Law(
    name="cron-minutes", kinds="CronJob", says="more starts than one a minute", refused_by="nobody"
)
JOB_TEMPLATE: Final = Law(
    name="job-template", kinds="JobTemplate", says="a template that makes good Jobs", refused_by="Pumice"
)

ALL: Final[tuple[Law, ...]] = tuple(each for each in list(globals().values()) if isinstance(each, Law))
