"""What makes a job one that can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import laws, naming, queue_references, topology
from pumice.admission.jobs import changes, dependencies, policies, volumes
from pumice.admission.pod_templates import amounts, template
from pumice.api import documents, duration
from pumice.controllers.volcano.job_plugins import registry

if TYPE_CHECKING:
    from pumice.admission.parts import Part
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

_NUMA: Final = ("none", "best-effort", "restricted", "single-numa-node")
_RANDOM_END: Final = 5  # characters that a generated name gets
_WITH_HOST_NAMES: Final = ("svc", "tensorflow", "mpi", "pytorch", "ray")
_NEEDED_ROLES: Final = {"mpi": ("master", laws.PLUGINS), "ray": ("head", laws.PLUGIN_ARGUMENTS)}
"""Plugins that cannot do without a task: which argument names it, as it is called otherwise, and who refuses a job without it."""


def judge(request: Request, found: Remarks, around: Surroundings, settings: RuleSettings) -> None:
    """Judge a job that is created or changed."""
    job = request.part(found)
    spec = job.record("spec")
    if request.operation == "UPDATE":
        old = request.old.get("spec")
        if spec and spec.value != old:  # whoever only takes a finalizer away is never stopped
            changes.judge(spec, old if isinstance(old, dict) else {})
            judge_numbers(spec)
        return
    name = _judge_name(job.record("metadata"))
    judge_spec(spec, settings, name)
    queue_references.judge_open(spec, around)
    queue_references.judge_leaf(spec, around)
    _judge_priority(spec, around)


def judge_spec(spec: Part, settings: RuleSettings, name: str = "") -> None:
    """Judge the spec of a job, or of what jobs are made from; the queue aside, which may come later."""
    if not spec:
        spec.refuse("is missing, and must be given")
        return
    tasks = spec.items("tasks")
    if not spec.part("tasks").value:
        spec.breaks(laws.TASKS, "is empty, and must hold at least one task", "tasks")
    judge_numbers(spec)
    spec.whole("maxRetry", least=0)
    spec.whole("ttlSecondsAfterFinished", least=0)
    spec.whole("minSuccess", least=1)
    policies.judge(spec)
    _judge_plugins(spec, settings)
    volumes.judge(spec)
    topology.judge(spec)
    _judge_estimate(spec)
    _judge_tasks(spec, tasks, name)
    _judge_dependencies(spec, tasks)


def judge_numbers(spec: Part) -> None:
    """Judge how many pods there are and how many start together."""
    total = 0
    for task in spec.items("tasks"):
        replicas = task.whole("replicas", least=0) or 0
        least = task.whole("minAvailable", least=0)
        if least is not None and least > replicas:
            task.breaks(laws.NUMBERS, f"is {least}, above replicas of the task ({replicas})", "minAvailable")
        _judge_partitions(task, replicas, least)
        total += replicas
    least = spec.whole("minAvailable", least=0)
    if least is not None and least > total:
        message = f"is {least}, above the replicas of all tasks together ({total})"
        spec.breaks(laws.NUMBERS, message, "minAvailable")


def _judge_partitions(task: Part, replicas: int, least: int | None) -> None:
    parts = task.record("partitionPolicy")
    if not parts:
        return
    total, size = parts.whole("totalPartitions", least=1), parts.whole("partitionSize", least=1)
    for field in ("totalPartitions", "partitionSize"):
        if parts.part(field).value is None:
            parts.refuse("is missing, and must be at least 1", field)
    needed = parts.whole("minPartitions", least=0) or 0
    topology.judge(parts)
    if total is None or size is None:
        return
    if replicas != total * size:
        task.breaks(
            laws.PARTITIONS,
            f"is {replicas}, and must be totalPartitions x partitionSize ({total} x {size} = {total * size})",
            "replicas",
        )
    if needed > total:
        parts.breaks(laws.PARTITIONS, f"is {needed}, above totalPartitions ({total})", "minPartitions")
    elif needed and least is not None and least != needed * size:
        task.breaks(
            laws.PARTITIONS,
            f"is {least}, and must be minPartitions x partitionSize ({needed} x {size} = {needed * size})",
            "minAvailable",
        )


def _judge_name(metadata: Part) -> str:
    name, start = metadata.text("name"), metadata.text("generateName")
    field = "name" if name or not start else "generateName"
    full = name or (start + "x" * _RANDOM_END if start else "")
    if full and (problem := naming.qualified(full)):
        message = f"is {documents.quoted(name or start)}, and the name of a job is a label of its pods: it {problem}"
        metadata.breaks(laws.JOB_NAME, message, field)
    return full


def _judge_tasks(spec: Part, tasks: list[Part], name: str) -> None:
    seen: dict[str, int] = {}
    plugins = spec.record("plugins").value or {}
    hosts = any(plugin in plugins for plugin in _WITH_HOST_NAMES)
    for index, task in enumerate(tasks):
        role = task.text("name")
        if role and (problem := naming.label(role)):
            task.refuse(f"is {documents.quoted(role)}, and {problem}", "name")
        elif role and name:
            _judge_pod_name(task, f"{name}-{role}", hosts=hosts)
        if role and seen.setdefault(role, index) != index:
            message = f"is {documents.quoted(role)}, which tasks[{seen[role]}] is called already"
            task.breaks(laws.TASKS, message, "name")
        policies.judge(task)
        task.whole("maxRetry", least=-1)
        if not task.record("template"):
            task.refuse("is missing, and must be given", "template")
        else:
            template.judge(task.record("template").under(laws.TEMPLATE))
        _judge_numa(task)


def _judge_pod_name(task: Part, start: str, *, hosts: bool) -> None:
    """Judge the name of the first pod; where pods get host names, that of the last, for a longer one could not be created."""
    replicas = task.part("replicas").value
    last = replicas - 1 if isinstance(replicas, int) and replicas > 0 else 0
    first, pod = f"{start}-0", f"{start}-{last}"
    if problem := naming.qualified(first):
        task.breaks(laws.JOB_NAME, f"makes pods called {documents.quoted(first)}, and such a name {problem}", "name")
    elif hosts and (problem := naming.label(pod)):
        task.breaks(laws.HOST_NAMES, f"makes pods called {documents.quoted(pod)}, and such a name {problem}", "name")


def _judge_numa(task: Part) -> None:
    policy = task.among("topologyPolicy", _NUMA)
    if policy in ("", "none"):
        return
    pod = task.under(laws.TEMPLATE).record("template", "spec")
    for container in pod.items("containers"):
        resources = container.record("resources")
        asked = resources.record("requests").part("cpu")
        asked = asked or resources.record("limits").part("cpu")
        if not asked:
            asked.breaks(laws.NUMA, f"is missing: topologyPolicy {policy} needs whole CPUs in every container")
            continue
        amount = amounts.read_one(asked)
        if amount is not None and (amount.denominator != 1 or amount == 0):
            asked.breaks(laws.NUMA, f"is {asked.value}: topologyPolicy {policy} needs whole CPUs in every container")


def _judge_plugins(spec: Part, settings: RuleSettings) -> None:
    plugins = dict(spec.entries("plugins"))
    for name, given in plugins.items():
        if name not in settings.job_plugins:
            near = documents.nearest(name, settings.job_plugins)
            hint = f"; did you mean {near}?" if near else f"; there are {', '.join(settings.job_plugins)}"
            given.breaks(laws.PLUGINS, f"is no plugin of jobs{hint}")
        else:
            _judge_arguments(name, given, [text for text, _ in spec.record("plugins").texts(name)] if given else [])
    for plugin, (flag, law) in _NEEDED_ROLES.items():
        if plugin in plugins:
            needed = _argument(plugin, plugins[plugin].value, flag) or flag
            roles = [task.text("name") for task in spec.items("tasks")]
            if needed not in roles:
                listed = ", ".join(filter(None, roles)) or "none"
                plugins[plugin].breaks(law, f"needs a task called {needed}; there are {listed}")


def _judge_arguments(name: str, given: Part, arguments: list[str]) -> None:
    """Judge the arguments of a plugin by having it read them, as the controller will."""
    if problem := registry.problem(name, arguments):
        given.breaks(laws.PLUGIN_ARGUMENTS, problem.removeprefix(f"plugin {name}: "))


def _argument(plugin: str, given: object, name: str) -> str:
    """Find the value of a plugin's argument: `--master=m`, `-master=m`, or the word behind `--master`; the last one counts."""
    words = registry.readable(plugin, [str(each) for each in given] if isinstance(given, list) else [])
    found = ""
    for index, word in enumerate(words):
        key, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key == name:
            found = value if equals else words[index + 1] if index + 1 < len(words) else ""
    return found


def _judge_estimate(spec: Part) -> None:
    text = spec.text("runningEstimate")
    if text:
        try:
            duration.parse(text)
        except ValueError as error:
            spec.refuse(str(error), "runningEstimate")


def _judge_dependencies(spec: Part, tasks: list[Part]) -> None:
    needs: dependencies.Needs = {}
    first = 0
    for task in tasks:
        depends = task.record("dependsOn")
        depends.among("iteration", ("any", "all"))
        waited = depends.texts("name")
        needs.setdefault(task.text("name"), []).extend(waited)
        replicas = task.part("replicas").value
        first += replicas if not waited and isinstance(replicas, int) else 0
    dependencies.judge(needs, "task", laws.DEPENDENCIES)
    least = spec.part("minAvailable").value
    if any(needs.values()) and isinstance(least, int) and least > first:
        spec.breaks(
            laws.DEADLOCK,
            f"is {least}, and only {first} pods exist before the tasks that others depend on have started: "
            f"the gang would wait for ever; at most {first} lets it start",
            "minAvailable",
        )


def _judge_priority(spec: Part, around: Surroundings) -> None:
    name = spec.text("priorityClassName")
    if name and (problem := naming.subdomain(name)):
        spec.refuse(f"is {documents.quoted(name)}, and {problem}", "priorityClassName")
    elif name and around.complete and around.priority_class(name) is None:
        spec.breaks(
            laws.UNSEEN,
            f"is {documents.quoted(name)}, and there is no such PriorityClass: its pods cannot be created",
            "priorityClassName",
        )
