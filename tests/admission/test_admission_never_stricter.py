"""Objects that keep the rules of Volcano's webhooks, as its contract lists them, are never refused unless rules are strict.

The judge here is written from that list (spec of the peer's admission: at least one task, names, numbers, policies, plugins, volumes,
queue, dependencies, tiers, amounts, tree, patterns, targets, schedules) and the schemas of the kinds, not from our rules.
"""

from __future__ import annotations

import copy
import re
from decimal import Decimal
from typing import Any

import admission_objects as objects
from hypothesis import event, given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.admission.requests import RuleSettings

EVENTS = {"*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated"}
ACTIONS = {"AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob", "ResumeJob"}  # fmt: skip
PLUGINS = {"env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank"}
QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
LENIENT = RuleSettings()


# ---- what the peer admits


def policies_pass(listed: list[dict[str, Any]]) -> bool:
    events: list[str] = []
    codes: list[int] = []
    for policy in listed:
        named = set(policy.get("events", [])) | ({policy["event"]} if "event" in policy else set())
        if bool(named) == ("exitCode" in policy):
            return False
        if named and (not named <= EVENTS or policy.get("action") not in ACTIONS):
            return False
        events += named
        codes += [policy["exitCode"]] if "exitCode" in policy else []
    unique = len(set(events)) == len(events) and len(set(codes)) == len(codes)
    return unique and 0 not in codes and not ("*" in events and len(events) > 1)


def acyclic(needs: dict[str, list[str]]) -> bool:
    left = {name: set(others) for name, others in needs.items()}
    if any(other not in left for others in left.values() for other in others):
        return False
    while left:
        free = [name for name, others in left.items() if not others]
        if not free:
            return False
        for name in free:
            del left[name]
        for others in left.values():
            others.difference_update(free)
    return True


def master_of(arguments: list[str]) -> str:
    """Read mpi's flags as Go does: up to the first that is none of them."""
    master = "master"
    for each in arguments:
        name, _, value = each.lstrip("-").partition("=")
        if name not in ("master", "worker", "port") or (name == "port" and not value.isdecimal()):
            break
        master = value if name == "master" else master
    return master


def job_passes(job: dict[str, Any]) -> bool:
    name, spec = job["metadata"]["name"], job["spec"]
    roles = [task["name"] for task in spec["tasks"]]
    total = sum(task["replicas"] for task in spec["tasks"])
    volumes = spec.get("volumes", [])
    return all(
        (
            bool(roles) and len(set(roles)) == len(roles),
            all(QUALIFIED.fullmatch(each) and len(each) <= 63 for each in (name, *(f"{name}-{role}-9" for role in roles))),
            all(task.get("minAvailable", 0) <= task["replicas"] for task in spec["tasks"]),
            spec["minAvailable"] <= total,
            policies_pass(spec.get("policies", [])) and all(policies_pass(task.get("policies", [])) for task in spec["tasks"]),
            set(spec.get("plugins", {})) <= PLUGINS,
            "mpi" not in spec.get("plugins", {}) or master_of(spec["plugins"]["mpi"]) in roles,
            len({each["mountPath"] for each in volumes}) == len(volumes),
            all(bool(each.get("volumeClaimName")) != ("volumeClaim" in each) for each in volumes),
            spec["queue"] in ("default", "team"),
            acyclic({task["name"]: task.get("dependsOn", {}).get("name", []) for task in spec["tasks"]}),
            not {"highestTierAllowed", "highestTierName"} <= set(spec.get("networkTopology", {})),
        )
    )  # fmt: skip


def flow_passes(flow: dict[str, Any]) -> bool:
    return acyclic({each["name"]: each.get("dependsOn", {}).get("targets", []) for each in flow["spec"]["flows"]})


def below(amounts: dict[str, str], limits: dict[str, str], *, listed: bool) -> bool:
    return all(
        (not listed if name not in limits else Decimal(amount) <= Decimal(limits[name]))
        for name, amount in amounts.items()
    )


def queue_passes(queue: dict[str, Any], parent: dict[str, Any]) -> bool:
    spec = queue["spec"]
    guaranteed, deserved, ceiling = spec["guarantee"]["resource"], spec["deserved"], spec["capability"]
    own = below(guaranteed, deserved, listed=True) and below(deserved, ceiling, listed=False)
    if any(Decimal(each) < 0 for amounts in (guaranteed, deserved, ceiling) for each in amounts.values()):
        return False
    if spec["parent"] == "root":
        return own
    above = {name: parent["spec"]["deserved"].get(name, "0") for name in deserved}
    promised = {name: parent["spec"]["guarantee"]["resource"].get(name, "0") for name in guaranteed}
    return (
        own
        and below(ceiling, parent["spec"]["capability"], listed=False)
        and below(deserved, above, listed=True)
        and below(guaranteed, promised, listed=True)
    )


# ---- objects that are right, and such as look wrong


def some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@st.composite
def policies(draw: st.DrawFn, tame: bool) -> list[dict[str, Any]]:
    """Draw a list of policies; tame ones share no event and no code, and are odd only as the peer allows."""
    if not tame:
        return draw(st.lists(policy(False, EVENTS | {"OutOfSync"}, (0, 1, 3)), max_size=2))
    first = draw(policy(True, {"PodFailed", "PodEvicted", "JobUpdated"}, (1, -1)))
    second = draw(policy(True, {"PodPending", "TaskCompleted"}, (3, 137)))
    return [first, second][: draw(st.integers(0, 2))]


@st.composite
def policy(draw: st.DrawFn, tame: bool, events: set[str], codes: tuple[int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    cause, event_of = draw(some("event", "events", "both", "code")), some(*sorted(events))
    if cause in ("event", "both"):
        made["event"] = draw(event_of)
    if cause in ("events", "both"):
        made["events"] = draw(st.lists(event_of, min_size=1, max_size=3))
    if cause == "code":
        made["exitCode"] = draw(some(*codes))
    known = some("RestartJob", "AbortJob", "CompleteJob")
    made["action"] = draw(known if tame and cause != "code" else known | some("SyncJob", "Nothing"))
    if draw(st.booleans()):
        made["timeout"] = draw(some("5s", "1h30m", "0s", "-3s"))
    return made


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    return draw(st.lists(some("--master=a", "-worker=b", "--port=22", "--port=x", "--port=99999", "--enable-networking", "word", "--no-root", "--ssh-public-key=k"), max_size=3))  # fmt: skip


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    image = draw(some("busybox", " busybox ", "r.example/a:1"))
    made: dict[str, Any] = {"containers": [objects.container(image=image)]}
    odd = draw(
        some(
            {},
            {"terminationGracePeriodSeconds": -5},
            {"imagePullSecrets": [{}]},
            {"volumes": [{"name": "v", "projected": {}}]},
            {"volumes": [{"name": "v", "emptyDir": {"medium": "HugePages-32Mi"}}]},
            {"volumes": [{"name": "v", "hostpath": {"path": "/a"}}]},
            {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
        )
    )
    return made | odd


CLAIMS = ({"volumeClaimName": "c"}, {"volumeClaimName": "C_1"}, {"volumeClaim": {}})
TIERS = ({"highestTierName": "r"}, {"highestTierAllowed": 1})


@st.composite
def tasks(draw: st.DrawFn, role: str, others: list[str], tame: bool) -> dict[str, Any]:
    replicas = draw(st.integers(1 if tame else 0, 3))
    made: dict[str, Any] = {"name": role, "replicas": replicas, "template": {"spec": draw(pods())}}
    if draw(st.booleans()):
        made["minAvailable"] = draw(st.integers(0, replicas if tame else 4))
    if draw(st.booleans()):
        made["policies"] = draw(policies(tame))
    if others and draw(st.booleans()):
        made["dependsOn"] = {"name": draw(st.lists(some(*others), min_size=1, max_size=2, unique=True))}
    return made


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    tame = draw(st.integers(0, 3)) > 0
    roles = draw(st.lists(some("a", "b", "master", "head", "worker"), min_size=1, max_size=3, unique=tame))
    spec: dict[str, Any] = {
        "tasks": [
            draw(tasks(role, roles[:index] if tame else [*roles, "absent"], tame)) for index, role in enumerate(roles)
        ],
        "queue": draw(some("default", "team") if tame else some("team", "closed", "parent", "root", "absent")),
    }
    total = sum(task["replicas"] for task in spec["tasks"])
    spec["minAvailable"] = draw(st.integers(1, total if tame else total + 2))
    if draw(st.booleans()):
        spec["policies"] = draw(policies(tame))
    if draw(st.booleans()):
        known = sorted(PLUGINS - ({"mpi"} if tame and "master" not in roles else set()))
        spec["plugins"] = draw(st.dictionaries(some(*known) if tame else some(*known, "unheard-of"), arguments(), max_size=2))  # fmt: skip
    if draw(st.booleans()):
        claim = some(*CLAIMS) if tame else some(*CLAIMS, {}, {"volumeClaim": {}, "volumeClaimName": "c"})
        paths = draw(st.lists(some("/a", "/b"), min_size=1, max_size=2, unique=tame))
        spec["volumes"] = [{"mountPath": path, **draw(claim)} for path in paths]
    if draw(st.booleans()):
        spec["networkTopology"] = draw(some(*TIERS) if tame else some(*TIERS, TIERS[0] | TIERS[1]))
    made = objects.job(**spec)
    made["metadata"]["name"] = draw(some("train", "a.b", "j" * 40, "9") if tame else some("train", "j" * 59))
    return made


AROUND = (
    objects.queue("team"),
    objects.queue("closed", "Closed"),
    objects.queue("parent"),
    objects.queue("child", parent="parent"),
)


@settings(max_examples=drawn(400), deadline=None)
@given(jobs())
def test_a_job_that_the_peer_admits_is_not_refused(job):
    admitted = job_passes(job)
    event(f"admitted {admitted}")

    found = objects.judged(copy.deepcopy(job), around=objects.known(*AROUND), settings=LENIENT)

    assert not (admitted and found.refusals), found.refusals
    assert admitted or found.refusals, job  # nor is admission laxer, as far as the list goes


@settings(max_examples=drawn(200), deadline=None)
@given(st.lists(st.tuples(some("a", "b", "c", "x_y", "n" * 70), st.lists(some("a", "b", "c", "gone"), max_size=2, unique=True)), min_size=1, max_size=4))  # fmt: skip
def test_a_flow_is_refused_exactly_where_the_peer_refuses_it(entries):
    flow = objects.job_flow(a=[])
    flow["spec"]["flows"] = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in entries]

    found = objects.judged(flow, settings=LENIENT)

    assert bool(found.refusals) != flow_passes(flow), found.all


AMOUNTS = st.dictionaries(some("cpu", "memory", "nvidia.com/gpu", "odd/one/here"), some("0", "1", "2.5", "3", "-1"), max_size=2)  # fmt: skip


@settings(max_examples=drawn(300), deadline=None)
@given(AMOUNTS, AMOUNTS, AMOUNTS, some("root", "above"))
def test_a_queue_that_the_peer_admits_is_not_refused(guaranteed, deserved, ceiling, parent):
    above = objects.queue(
        "above",
        parent="root",
        deserved={"cpu": "3", "memory": "2"},
        capability={"cpu": "3"},
        guarantee={"resource": {"cpu": "1"}},
    )
    made = objects.queue(
        "q", parent=parent, guarantee={"resource": guaranteed}, deserved=deserved, capability=ceiling, weight=1
    )
    admitted = queue_passes(made, above)
    event(f"admitted {admitted}")

    found = objects.judged(made, around=objects.known(above), settings=LENIENT)

    assert not (admitted and found.refusals), found.refusals


@settings(max_examples=drawn(150), deadline=None)
@given(jobs(), some("0 3 * * *", "@every 5s", "0 0 31 2 *", "@hourly"), some(None, "UTC", "Europe/Berlin"))
def test_a_cron_job_is_admitted_whatever_its_jobs_will_come_to(job, schedule, zone):
    made = objects.cron_job(schedule=schedule, jobTemplate={"spec": job["spec"]})
    if zone:
        made["spec"]["timeZone"] = zone

    assert objects.judged(made, settings=LENIENT).refusals == []


@settings(max_examples=drawn(150), deadline=None)
@given(st.from_regex(r"[+]?[0-9]{1,11}%{0,2}", fullmatch=True))
def test_a_budget_is_refused_exactly_where_the_peer_cannot_read_it(text):
    number, percent = int(text.strip("%")), text.endswith("%")
    admitted = 0 < number < 100 if percent or number >= 2**31 else number > 0
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"volcano.sh/jdb-min-available": text}},
        "spec": {"schedulerName": "volcano", "containers": [objects.container()]},
    }

    assert bool(objects.judged(pod, settings=LENIENT).refusals) != admitted
