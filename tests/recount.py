"""The cluster counted from scratch, the slow and obvious way, and the whole model as one comparable value.

Everything is computed from pods, nodes and groups as they were read, and from each task's status and node; no sum, count or index of the model is
used to compute another.
"""

from __future__ import annotations

from collections import Counter
from weakref import WeakKeyDictionary

from pumice.api import quantity
from pumice.model.statuses import Status

HOLDING = {Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING}
GOING = {Status.RELEASING, Status.EVICTING}
ON_NODE = HOLDING | GOING | {Status.UNKNOWN}
PLAIN = {"memory", "ephemeral-storage", "pods"}
NODE_SUMS = ("used", "releasing", "pipelined", "foreign", "fixed", "non_zero")
LISTED = (
    WeakKeyDictionary()
)  # who waited in which order when a cluster was checked last, and up to where that was logged
ROW_SUMS = ("allocated", "pending", "pipelined", "evicting")


def units(name, text):
    return quantity.scaled(text, 1 if name in PLAIN or name.startswith("hugepages-") else 1000)


def asked(pod):
    """What a pod of plain containers asks for, by name."""
    total = Counter({"pods": 1})
    for container in pod.spec.containers:
        for name, text in container.resources.requests.items():
            total[name] += units(name, text)
    return total


def asked_non_zero(pod):
    """Cpu and memory, a container that does not name one counting 100m and 200Mi."""
    total = Counter()
    for container in pod.spec.containers:
        for name, stand_in in (("cpu", "100m"), ("memory", "200Mi")):
            total[name] += units(name, container.resources.requests.get(name, stand_in))
    return total


def _plus(sums, key, amounts):
    kept = sums.setdefault(key, Counter())
    for name, value in amounts.items():
        kept[name] += value


def _clean(sums):
    """Leave out what is zero."""
    kept = {key: {name: value for name, value in amounts.items() if value} for key, amounts in sums.items()}
    return {key: amounts for key, amounts in kept.items() if amounts}


# ---- from scratch


def expected(cluster):
    """Every sum, count and index as the tasks alone imply it."""
    sums = [*NODE_SUMS, *(f"{of} {name}" for of in ("job", "queue") for name in ROW_SUMS)]
    found = {name: {} for name in sums}
    found |= {name: {} for name in ("tasks of node", "ports of node", "tally", "pending")}
    for task in cluster.tasks.values():
        _count_on_node(found, task)
        if task.job_key:
            _count_in_job(found, cluster, task)
    for name in sums:
        found[name] = _clean(_offered(cluster, found[name]) if name != "non_zero" else found[name])
    found["pending jobs"] = set(found["pending"])
    return found


def _offered(cluster, sums):
    """Keep only names that some node has offered."""
    names = set(cluster.vocabulary.columns)
    return {key: {n: v for n, v in amounts.items() if n in names} for key, amounts in sums.items()}


def _count_on_node(found, task):
    if task.node is None:
        return
    name, amounts = task.node.name, asked(task.pod)
    found["tasks of node"].setdefault(name, set()).add(task.uid)
    if any(port.host_port > 0 for container in task.pod.spec.containers for port in container.ports):
        found["ports of node"].setdefault(name, set()).add(task.uid)
    if task.status == Status.PIPELINED:
        _plus(found["pipelined"], name, amounts)
    if task.status in ON_NODE:
        _plus(found["used"], name, amounts)
        _plus(found["non_zero"], name, asked_non_zero(task.pod))
    if task.status in GOING:
        _plus(found["releasing"], name, amounts)
    elif task.status in ON_NODE and not task.job_key:
        _plus(found["foreign"], name, amounts)
    if any(owner.controller and owner.kind in ("Node", "DaemonSet") for owner in task.pod.metadata.owner_references):
        _plus(found["fixed"], name, amounts)


def _count_in_job(found, cluster, task):
    group = cluster.jobs[task.job_key].group
    sums = {Status.PENDING: "pending", Status.PIPELINED: "pipelined", Status.EVICTING: "evicting"}
    name = "allocated" if task.status in HOLDING else sums.get(task.status)
    if name:
        _plus(found[f"job {name}"], task.job_key, asked(task.pod))
        if group is not None:
            _plus(found[f"queue {name}"], group.spec.queue or cluster.default_queue, asked(task.pod))
    best_effort = not any(value for key, value in asked(task.pod).items() if key != "pods")
    keys = [
        task.job_key,
        *([f"{task.job_key} role {task.role}"] if task.role else []),
        *_sub_job(cluster.jobs[task.job_key], task),
    ]
    for key in keys:
        tally = found["tally"].setdefault(key, Counter())
        tally[task.status] += 1
        tally["best effort"] += task.status == Status.PENDING and best_effort
    if task.status == Status.PENDING:
        found["pending"].setdefault(task.job_key, set()).add(task.uid)


def _sub_job(job, task):
    """Name the sub-job of a task, where the tests use policies with keys and no selector; a bad group keeps what it last was."""
    written = [(p.name, p.match_label_keys) for p in job.group.spec.sub_group_policy] if job.group else []
    for name, keys in [(p.name, p.keys) for p in job.policies] if job.bad else written:
        values = [task.pod.metadata.labels.get(key, "") for key in keys]
        if values and all(values):
            return [f"{task.job_key} sub-job {task.job_key}/{name}-{'-'.join(values)}"]
    return [f"{task.job_key} sub-job {task.job_key}"]


# ---- as the model has it


def actual(cluster):
    """The same, read off the model."""
    table = cluster.nodes
    found = {}
    for name in NODE_SUMS:
        matrix = getattr(table, name)
        names = ["cpu", "memory"] if name == "non_zero" else cluster.vocabulary.names
        found[name] = _clean({r.name: dict(zip(names, matrix[r.row].tolist(), strict=True)) for r in table.records})
        assert not matrix[len(table.records) :].any(), f"{name}: rows that belong to nobody are not zero"
    queue_rows = {name: row for name, row in cluster.queue_sums.rows.items() if name}
    for of, sums, rows in (
        ("job", cluster.job_sums, {key: job.row for key, job in cluster.jobs.items()}),
        ("queue", cluster.queue_sums, queue_rows),
    ):
        for name in ROW_SUMS:
            matrix = getattr(sums, name)
            named = {key: cluster.vocabulary.amounts(matrix[row]) for key, row in rows.items()}
            found[f"{of} {name}"] = _clean(named)
    found["tasks of node"] = {r.name: set(r.tasks) for r in table.records if r.tasks}
    found["ports of node"] = {r.name: set(r.port_users) for r in table.records if r.port_users}
    found["tally"] = _tallies(cluster)
    found["pending"] = {key: set(job.pending) for key, job in cluster.jobs.items() if job.pending}
    found["pending jobs"] = set(cluster.pending_jobs)
    return found


def _tallies(cluster):
    counted = {}
    for key, job in cluster.jobs.items():
        counted[key] = job.tally
        counted |= {f"{key} role {role}": tally for role, tally in job.roles.items()}
        counted |= {f"{key} sub-job {sub}": each.tally for sub, each in job.sub_jobs.items()}
    found = {}
    for key, tally in counted.items():
        counts = {status: tally.counts[status] for status in Status} | {"best effort": tally.counts[len(Status)]}
        if any(counts.values()):
            found[key] = Counter(counts)
    return found


def check(cluster):
    """Compare the model with the recount, and what it knows of nodes and queues with their objects."""
    wanted, found = expected(cluster), actual(cluster)
    for name, value in wanted.items():
        assert found[name] == value, name
    table = cluster.nodes
    assert all(table.records[record.row] is record for record in table.records)
    assert {record.name: record for record in table.records} == table.by_name
    for name, queue in cluster.queues.items():
        assert set(queue.jobs) == {
            key for key, job in cluster.jobs.items() if job.group is not None and job.queue == name
        }
    for key, job in cluster.jobs.items():
        assert job.group is not None or job.tasks, key
    _follow(cluster)


def _follow(cluster):
    """Whoever waits is who waited when it was looked last and still does, then who was listed since, each where it was listed last."""
    position, before = LISTED.get(cluster, (-1, []))
    waiting, listed = list(cluster.pending_jobs), cluster.listings.latest(position)
    if listed is not None:
        came = dict.fromkeys(cluster.job_at[row].key for row in listed if row in cluster.job_at)
        followed = [*(key for key in before if key not in came), *came]
        assert [key for key in followed if key in cluster.pending_jobs] == waiting
    LISTED[cluster] = (cluster.listings.position, waiting)


# ---- bit for bit


def fingerprint(cluster):
    """The model as one value; equal values mean that nothing whatever has changed."""
    table = cluster.nodes
    matrices = [getattr(table, name) for name in ("allocatable", *NODE_SUMS)]
    matrices += [getattr(sums, name) for sums in (cluster.job_sums, cluster.queue_sums) for name in ROW_SUMS]
    return {
        "matrices": [(matrix.shape, matrix.tobytes()) for matrix in matrices],
        "nodes": [(r.name, r.row, list(r.tasks), list(r.port_users)) for r in table.records],
        "tasks": {uid: (t.status, t.node.name if t.node else None) for uid, t in cluster.tasks.items()},
        "tallies": {
            key: (
                list(job.tally.counts),
                {role: list(tally.counts) for role, tally in job.roles.items()},
                {sub: list(each.tally.counts) for sub, each in job.sub_jobs.items()},
                set(job.pending),
            )
            for key, job in cluster.jobs.items()
        },
        "pending jobs": set(cluster.pending_jobs),
        "phases": {key: job.phase for key, job in cluster.jobs.items()},
        "shapes": {shape.key: shape.users for shape in cluster.shapes},
    }
