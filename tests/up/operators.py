"""What operators that the tests do not run make of their objects: PodGroups and pods, as pure functions from the object that a user applied.

Each gives steps; a step is a list of manifests that are applied together, and the next one follows when the last one's pods run (or its group is let in, if it
has none), as the operator would wait.
"""

from __future__ import annotations

import copy

GROUP_NAME = "scheduling.k8s.io/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
TASK = "volcano.sh/task-spec"


def owned_by(owner):
    reference = {field: owner["metadata"][field] for field in ("name", "uid")}
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True, **reference}]


def group(name, owner, **spec):
    metadata = {"name": name, "namespace": owner["metadata"]["namespace"], "ownerReferences": owned_by(owner)}
    wanted = {field: value for field, value in spec.items() if value is not None}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": wanted}


def pod(name, owner, spec, group_name="", task="", **annotations):
    annotations |= {GROUP_NAME: group_name} if group_name else {}
    annotations |= {TASK: task} if task else {}
    metadata = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "annotations": annotations,
        "ownerReferences": owned_by(owner),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": "volcano", **spec}}


def container(name, image, cpu, memory):
    requests = {"cpu": str(cpu), "memory": memory}
    return {
        "restartPolicy": "Never",
        "containers": [{"name": name, "image": image, "resources": {"requests": requests}}],
    }


def spark_submit(template, driver_found):
    """Native Spark: the group from the user's template, the driver, the group again with its owner, then executors."""
    namespace, application = "spark", "spark-4f2c"
    name = f"{application}-podgroup"
    bare = {**template, "metadata": {"name": name, "namespace": namespace}}
    driver = pod(
        f"{application}-driver",
        {**bare, "metadata": {**bare["metadata"], "uid": "x"}},
        container("driver", "spark", 1, "2Gi"),
        name,
    )
    del driver["metadata"]["ownerReferences"]
    yield [bare]
    yield [driver]
    found = driver_found(namespace, driver["metadata"]["name"])
    again = copy.deepcopy(bare)
    again["metadata"]["ownerReferences"] = owned_by(found)
    executors = [
        pod(f"{application}-exec-{number}", found, container("executor", "spark", 2, "4Gi"), name)
        for number in range(1, 5)
    ]
    yield [again, *executors]


def training_operator(job, _):
    """Kubeflow's training operator: no pod before the group is let in."""
    policy, name = job["spec"]["runPolicy"]["schedulingPolicy"], job["metadata"]["name"]
    yield [
        group(
            name,
            job,
            minMember=policy["minAvailable"],
            queue=policy["queue"],
            priorityClassName=policy["priorityClass"],
        )
    ]
    yield [
        pod(f"{name}-{role.lower()}-{number}", job, each["template"]["spec"], name, role.lower())
        for role, each in job["spec"]["pytorchReplicaSpecs"].items()
        for number in range(each["replicas"])
    ]


def trainer(job, found):
    """Kubeflow's trainer: as many pods as the job says, from its runtime's template, in one part of the network."""
    runtime = found("", job["spec"]["runtimeRef"]["name"])
    name, count = job["metadata"]["name"], job["spec"]["trainer"]["numNodes"]
    queue = runtime["spec"]["template"]["metadata"]["annotations"][QUEUE_NAME]
    topology = runtime["spec"]["podGroupPolicy"]["volcano"]["networkTopology"]
    [replicated] = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    spec = copy.deepcopy(replicated["template"]["spec"]["template"]["spec"])
    spec["containers"][0]["resources"] = job["spec"]["trainer"]["resourcesPerNode"]
    total = {"cpu": str(count), "memory": f"{2 * count}Gi"}
    yield [
        group(name, job, minMember=count, queue=queue, minResources=total, networkTopology=topology),
        *(pod(f"{name}-node-0-{number}", job, spec, name) for number in range(count)),
    ]


def argo(workflow, _):
    """Argo: one step after the other, what stands side by side at once; the pods have no group of their own."""
    spec, name = workflow["spec"], workflow["metadata"]["name"]
    templates = {each["name"]: each for each in spec["templates"]}
    for beside in templates[spec["entrypoint"]]["steps"]:
        yield [
            pod(
                f"{name}-{step['name']}",
                workflow,
                {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", **templates[step["template"]]["container"]}],
                },
                **spec["podMetadata"]["annotations"],
            )
            for step in beside
        ]


def flink_operator(deployment, _):
    """Flink with fixed replicas: a Deployment for the job manager and one for its task managers."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = spec["podTemplate"]
    made = []
    for role, replicas in (("jobmanager", 1), ("taskmanager", spec["taskManager"]["replicas"])):
        labels = {"app": metadata["name"], "component": role}
        amounts = {"requests": {"cpu": "1", "memory": "2Gi"}}
        containers = [{**template["spec"]["containers"][0], "image": spec["image"], "resources": amounts}]
        made.append(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {
                    "name": f"{metadata['name']}-{role}",
                    "namespace": metadata["namespace"],
                    "ownerReferences": owned_by(deployment),
                },
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels, "annotations": template["metadata"]["annotations"]},
                        "spec": {**template["spec"], "containers": containers},
                    },
                },
            }
        )
    yield made
