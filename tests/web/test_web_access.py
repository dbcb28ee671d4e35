"""What a viewer sees is what access reviews allow: asked for the whole cluster first, kept for five minutes, limited in rate, and hidden everywhere else."""

from __future__ import annotations

import asyncio
import itertools
import time

import msgspec
import pytest
import web_people
import web_worlds as worlds
from hypothesis import given
from hypothesis import strategies as st
from web_people import People, inside, shared

from pumice.api import decoding, kinds
from pumice.study.following.scene import EvictionRow
from pumice.web import access, hiding, sight
from pumice.web.cluster import Cluster
from pumice.web.reviews import Person
from testbed import waiting

OF_A = {"podgroups@a", "pods@a"}
SECRET = ("secret", "b/")


@pytest.fixture(autouse=True)
def always_drawn_anew(monkeypatch):
    """Rights that are not all known yet are looked at again at once."""
    monkeypatch.setattr(access, "AGAIN", 0.0)


def looked(rights, *paths, name="someone", cluster=None):
    """Sign in as somebody with rights; returns the answers to some requests."""

    async def run():
        async with inside(cluster or shared(), People({name: rights})) as served:
            page = await served.open()
            assert (await page.sign_in(name))[0] == 200
            await waiting.soon(lambda: not settling(served, name))
            return [await page.get(path) for path in paths]

    return asyncio.run(run())


def settling(served, name):
    """Tell whether anything about somebody is not known yet."""
    return any("not answered yet" in note for note in served.access.notes(Person(name, web_people.GROUPS)))


def test_who_may_list_everything_sees_everything():
    ((status, scene), (_, policy)) = looked(web_people.EVERYTHING, "/api/scene", "/api/policy")
    assert status == 200
    assert set(scene["rows"]["jobs"]) == {"a/runs", "a/waits", "a/hopes", "b/secret"}
    assert set(scene["rows"]["nodes"]) == {"n-0", "n-1"}
    assert len(scene["evictions"]) == 3
    assert scene["pods"] == 5
    assert policy["actions"]


def test_who_may_list_nothing_sees_nothing_and_is_told_so():
    answers = looked(set(), "/api/scene", "/api/session", "/api/policy", "/api/node?name=n-0", "/api/job?name=a/runs", "/api/explain?what=job&name=a/runs")  # fmt: skip
    (_, scene), (_, session), *refused = answers
    assert scene["rows"] == {"queues": {}, "jobs": {}, "nodes": {}}
    assert scene["evictions"] == scene["pulse"] == []
    assert scene["total"] == {}
    assert set(scene["facts"]) == {"live"}
    assert scene["pods"] == 0
    assert session["user"] == "someone"
    assert "may list nothing" in session["notes"][0]
    assert [status for status, _ in refused] == [403, 404, 404, 404]


def test_names_of_other_namespaces_are_nowhere_in_what_a_team_is_told():
    paths = (
        "/api/scene",
        "/api/scene?at=9",
        "/api/job?name=a/hopes",
        "/api/explain?what=job&name=a/hopes",
        "/api/session",
    )
    answers = looked(OF_A, *paths)
    assert [status for status, _ in answers] == [200] * len(paths)
    for path, (_, body) in zip(paths, answers, strict=True):
        assert "secret" not in str(body), path
    scene = answers[0][1]
    assert set(scene["rows"]["jobs"]) == {"a/runs", "a/waits", "a/hopes"}
    assert (
        scene["rows"]["jobs"]["a/hopes"]["reason"] == "waits for a job elsewhere of a job elsewhere to go, or a/runs-0"
    )
    first, second = sorted(scene["evictions"], key=lambda each: each["action"])
    assert (first["namespace"], first["pod"], first["claimant"], first["group"]) == ("a", "runs-9", "a job elsewhere", "")  # fmt: skip
    assert (second["namespace"], second["pod"], second["claimant"]) == ("", "a job elsewhere", "a/runs-0")
    assert scene["pods"] == 4
    assert scene["rows"]["nodes"] == scene["rows"]["queues"] == {}
    assert "a/hopes" in answers[3][1]["answer"]["name"]


def test_explanations_of_what_is_shared_name_nobody_elsewhere():
    paths = ("/api/explain?what=node&name=n-1", "/api/explain?what=queue&name=default", "/api/explain?what=pod&name=a/hopes-0", "/api/explain?what=pod&name=b/secret-0", "/api/explain?what=job&name=hopes")  # fmt: skip
    node, queue, pod, other, bare = looked(OF_A | {"nodes", "queues"}, *paths)
    for status, body in (node, queue, pod):
        assert status == 200
        assert "secret" not in str(body)
        assert body["answer"]["explanation"]
    assert "a job elsewhere" in str(node)
    assert "n-1" in str(node)
    assert other[0] == bare[0] == 404


def test_node_shows_who_may_be_seen_and_counts_the_others():
    ((_, node), (_, other)) = looked(OF_A | {"nodes"}, "/api/node?name=n-1", "/api/node?name=n-0")
    assert node["pods"] == []
    assert node["elsewhere"] == 1
    assert [each["name"] for each in other["pods"]] == ["runs-0"]


def test_what_if_answers_without_names_of_others_and_only_about_what_may_be_seen():
    async def run():
        async with inside(shared(), People({"team": OF_A, "nobody": set()})) as served:
            page, other = await served.open(), await served.open()
            await page.sign_in("team")
            await other.sign_in("nobody")
            await waiting.soon(lambda: not settling(served, "team"))
            text = msgspec.json.encode(worlds.group("more", namespace="a")).decode()
            return [
                await page.post("/api/what-if", {"type": "what-if", "manifests": text}),
                await page.post("/api/what-if", {"type": "what-if", "drain": ["n-1"]}),
                await page.post("/api/what-if", {"type": "what-if", "config": "actions: allocate"}),
                await other.post("/api/what-if", {"type": "what-if", "manifests": text}),
            ]

    rehearsed, drained, compared, nobody = asyncio.run(run())
    assert rehearsed[0] == 200
    assert "secret" not in str(rehearsed[1])
    assert "problem" not in rehearsed[1]
    assert [drained[0], compared[0], nobody[0]] == [403, 403, 403]


def waiting_elsewhere():
    """A cluster in which a Job of another namespace waits for a node, its pods not made yet."""
    cluster = Cluster("a test", lambda: worlds.NOW)
    worlds.feed(cluster, "ADDED", worlds.queue("default"), worlds.queue("root"), worlds.node("n-0", cpu="1"), worlds.group("own"), worlds.pod("own-0", "own", cpu="8"))  # fmt: skip
    template = {"spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "8"}}}]}}
    task = {"name": "brain", "replicas": 2, "template": template}
    metadata = {"name": "hush", "namespace": "other", "uid": "uid-hush", "creationTimestamp": worlds.CREATED}
    spec = {"schedulerName": "volcano", "minAvailable": 2, "queue": "default", "tasks": [task]}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}
    data = msgspec.json.encode(job)
    cluster.objects.feed(kinds.JOB, "ADDED", decoding.decode_json(kinds.JOB, data), data)
    cluster.turn()
    return cluster


def tried(rights, *pasted, cluster=None):
    """Ask somebody's page what some manifests would do; returns the answers."""

    async def run():
        async with inside(cluster or waiting_elsewhere(), People({"team": rights})) as served:
            page = await served.open()
            await page.sign_in("team")
            await waiting.soon(lambda: not settling(served, "team"))
            texts = [msgspec.json.encode(each).decode() for each in pasted]
            return [await page.post("/api/what-if", {"type": "what-if", "manifests": text}) for text in texts]

    return asyncio.run(run())


def test_node_that_is_tried_tells_nothing_of_jobs_elsewhere_but_how_they_stand():
    nodes = [worlds.node(name, cpu="16") for name in ("n-7", "n-8")]
    ((_, refused),) = tried(OF_A, nodes)
    assert "Node n-7 is for the whole cluster" in refused["problem"]
    ((_, whole),) = tried(web_people.EVERYTHING, nodes)
    assert {"other/hush", "a/own"} == {each["job"] for each in whole["comparison"]["jobs"]}
    assert "hush-brain-0" in str(whole)
    ((_, told),) = tried(OF_A | {"nodes"}, nodes)
    own, other = told["comparison"]["jobs"]
    assert own["job"] == "a/own"
    assert own["after"]["nodes"] == {"own-0": own["after"]["nodes"]["own-0"]}
    assert other["job"] == "a job elsewhere"
    assert other["after"] == {**other["before"], "standing": "starts"}
    assert (other["after"]["pods"], other["after"]["nodes"], other["after"]["queue"]) == (0, {}, "")
    assert told["comparison"]["queues"] == []
    for word in ("hush", "brain", "other"):
        assert word not in str(told)


def named(kind, name="x", api_version="v1", **metadata):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": {}}


def test_only_what_may_be_seen_may_be_tried():
    queue, rule = worlds.queue("q"), named("StorageClass", api_version="storage.k8s.io/v1")
    urgent = {**named("PriorityClass", api_version="scheduling.k8s.io/v1"), "value": 9}
    pasted = [worlds.group("g", namespace="b"), named("Pod"), queue, urgent, rule]
    refused = [told.get("problem", "") for _, told in tried(OF_A, *pasted)]
    assert "PodGroup g is in namespace b" in refused[0]
    assert "Pod x is in namespace default" in refused[1]
    assert all("is for the whole cluster" in each for each in refused[2:])
    shared_ones = [told.get("problem", "") for _, told in tried(OF_A | {"queues"}, queue, urgent, rule)]
    assert shared_ones[:2] == ["", ""]
    assert "StorageClass x is for the whole cluster" in shared_ones[2]


def test_how_the_scheduler_does_is_told_to_who_may_read_the_policy():
    def facts(rights):
        cluster = shared()
        cluster.told({"notes": ["/etc/policy: line 3"], "scheduler": {"troubles": ["x"]}, "sharesProblem": "line 3"})
        cluster.turn()
        ((_, scene),) = looked(rights, "/api/scene", cluster=cluster)
        return set(scene["facts"])

    assert facts(OF_A | {"queues"}) == {"source", "live"}
    assert facts(OF_A | {"queues", "configmaps"}) >= {"source", "live", "notes", "scheduler", "sharesProblem"}


def test_changes_that_are_pushed_are_those_that_may_be_seen_and_more_rights_begin_anew():
    async def run():
        cluster, people, later = shared(), People({"team": OF_A}), [0.0]
        async with inside(cluster, people, now=lambda: time.monotonic() + later[0]) as served:
            page = await served.open()
            await page.sign_in("team")
            await waiting.soon(lambda: not settling(served, "team"))
            (version,) = [(await page.get("/api/scene"))[1]["version"]]
            async with page.session.get(f"{page.address}/api/changes?since={version}") as response:
                await waiting.soon(lambda: served.server.stream.viewers == 1)
                worlds.feed(cluster, "ADDED", worlds.group("new", namespace="a"), worlds.group("hidden", namespace="b"))
                cluster.turn()
                served.server.stream.tell()
                found = []
                async with asyncio.timeout(waiting.PATIENCE):
                    while not any(each.startswith(b'data: {"v') for each in found):
                        found.append(await response.content.readline())
                    people.rights["team"] |= {"podgroups"}
                    later[0] += access.RENEWED
                    team = Person("team", web_people.GROUPS)
                    await waiting.soon(lambda: served.access.sight(team).groups is None)
                    while b"event: reset\n" not in found:
                        served.server.stream.tell()
                        found.append(await response.content.readline())
            await waiting.soon(lambda: not settling(served, "team"))
            return found, (await page.get("/api/scene"))[1]

    found, scene = asyncio.run(run())
    data = b"".join(found)
    assert b'"a/new":{' in data
    assert b"hidden" not in data
    assert "b/hidden" in scene["rows"]["jobs"]


# -- asking ------------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


async def asked(rights, *, namespaces=("a", "b"), steps=1, clock=None, people=None, persons=1):
    """Let somebody be asked about until nothing is due; returns who was asked, and what they may see."""
    people = people or People({f"p{number}": rights for number in range(persons)})
    shown = {kinds.POD: namespaces, kinds.POD_GROUP: namespaces}
    kept = access.Access(
        people, lambda kind: shown.get(kind, ()), ("home", "policy"), now=clock or Clock(), rate=1e9, burst=10**6
    )
    who = [Person(f"p{number}") for number in range(persons)]
    for _ in range(steps):
        for person in who:
            kept.sight(person)
        while await kept.turn():
            pass
    return people, kept, who


def test_whole_cluster_is_asked_for_first_and_namespaces_only_where_that_is_refused():
    people, kept, (who,) = asyncio.run(asked({"pods", "podgroups@b"}))
    first = [question for _, question in people.asked[:6]]
    assert {question.resource for question in first} == {"nodes", "queues", "pods", "podgroups", "configmaps"}
    assert [(each.namespace, each.name) for each in first if each.namespace] == [("home", "policy")]
    assert [(each.resource, each.namespace) for _, each in people.asked[6:]] == [("podgroups", "a"), ("podgroups", "b")]
    found = kept.sight(who)
    assert found.pods is None
    assert found.groups == {"b"}
    assert not found.nodes


def test_answers_are_kept_for_five_minutes_and_then_count_no_more():
    async def run():
        clock = Clock()
        people, kept, (who,) = await asked({"pods", "nodes"}, clock=clock)
        once = len(people.asked)
        for _ in range(int(access.RENEWED) - 10):
            clock.now += 1
            kept.sight(who)
            await kept.turn()
        assert len(people.asked) == once
        people.broken = True
        seen = []
        for _ in range(80):
            clock.now += 1
            seen.append(kept.sight(who).nodes)
            await kept.turn()
        return seen, kept.notes(who)

    seen, notes = asyncio.run(run())
    assert seen[0]
    assert not seen[-1]
    assert any("it is down" in each for each in notes)


def test_hundred_pages_of_one_person_and_those_that_nobody_looks_at_cost_no_reviews():
    async def run():
        clock = Clock()
        people, kept, _ = await asked({"pods"}, clock=clock, steps=100)
        once = len(people.asked)
        clock.now += access.RENEWED + 1  # nobody has looked for so long
        await kept.turn()
        assert len(people.asked) == once
        clock.now += access.KEPT
        await kept.turn()
        return once, kept._people  # noqa: SLF001  memory that is given back shows nowhere else

    once, left = asyncio.run(run())
    assert once == 6 + 2  # pods may be listed everywhere, groups are asked about in two namespaces
    assert left == {}


def test_one_name_is_known_with_few_sets_of_groups_at_a_time():
    async def run():
        clock = Clock()
        _, kept, (who,) = await asked({"pods"}, clock=clock)
        seen = []
        for number in range(access.MOST_OF_ONE):
            seen.append(kept.sight(who).pods)
            for other in range(number + 1):
                clock.now += 1
                kept.sight(Person("p0", (f"group-{other}",)))
        return seen, kept.sight(who).pods

    seen, forgotten = asyncio.run(run())
    assert seen == [None] * access.MOST_OF_ONE
    assert forgotten == frozenset()


def test_reviews_are_limited_in_rate_and_everybody_has_their_turn():
    async def run():
        people = People({"one": set(), "two": set()})
        names = [f"ns-{number}" for number in range(40)]
        kept = access.Access(
            people, lambda kind: names if kind is kinds.POD else (), ("home", "policy"), rate=200.0, burst=10
        )
        task = asyncio.create_task(kept.run())
        began = asyncio.get_running_loop().time()
        await asyncio.gather(kept.meet(Person("one")), kept.meet(Person("two")))
        await waiting.soon(lambda: len(people.asked) == 2 * 46)
        taken = asyncio.get_running_loop().time() - began
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return taken, [name for name, _ in people.asked]

    taken, names = asyncio.run(run())
    assert taken >= (92 - 10) / 200 - 0.05
    assert set(names[: 2 * access.TURN]) == {"one", "two"}


def test_nothing_is_shown_where_reviews_cannot_be_had():
    async def run():
        people = People({"team": web_people.EVERYTHING})
        people.broken = True
        async with inside(shared(), people) as served:
            page = await served.open()
            signed = await page.sign_in("team")
            return signed, await page.get("/api/scene"), await page.get("/api/session")

    signed, scene, session = asyncio.run(run())
    assert signed[0] == 200
    assert scene[1]["rows"]["jobs"] == {}
    assert "it is down" in session[1]["notes"][0]


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0/4 nodes are free of nvidia.com/gpu", "0/4 nodes are free of nvidia.com/gpu"),
        ("b/x-0 and b/y.", "a job elsewhere and a job elsewhere."),
        ("a/x-0 goes for (b/x-0)", "a/x-0 goes for (a job elsewhere)"),
        ("group b/gang@scheduling.k8s.io", "group a job elsewhere"),
        ("sub-group b/gang/workers has 1", "sub-group a job elsewhere has 1"),
        ("secret-0 holds n-1", "a job elsewhere holds n-1"),
        ("goes first.b/x-0 waits", "goes a job elsewhere waits"),
        ("podgroup/b/gang and pod/secret-0", "a job elsewhere and a job elsewhere"),
        ("podgroup/a/gang, pod/a/secret-0 of a/secret-0", "podgroup/a/gang, a job elsewhere of a/secret-0"),
        ("pods=b/x-0,b/x-1->a/y b/z's", "pods=a job elsewhere,a job elsewhere->a/y a job elsewhere's"),
        ("", ""),
    ],
)
def test_text_reads_a_job_elsewhere(text, told):
    hider = hiding.Hider(sight.Sight(groups=frozenset({"a"})), {"a", "b"}.__contains__, {"secret-0": hiding.JOB}.get)
    assert hider.text(text) == told


_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)


@given(st.recursive(st.text() | st.integers() | st.none(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)), _NAMES, st.text(alphabet=" ,.:;()'\"|=→", min_size=1))  # fmt: skip
def test_no_name_of_another_namespace_is_left_in_any_record(value, name, edge):
    hider = hiding.Hider(sight.Sight(pods=frozenset({"mine"})), {"mine", "theirs"}.__contains__)
    key = f"theirs/{name}"
    told = hider.value({"first": value, f"{edge}{key}": [f"for{edge}{key}{edge}", {key: key}]})
    assert key not in str(told)
    assert len(told) == 2


def test_evictions_tell_each_side_only_of_itself():
    row = EvictionRow(id="1", time=1, namespace="a", pod="x-0", text="all", action="preempt", claimant="b/y-0", group="b/y", queue="q", rules="gang", plan=1, victim="x")  # fmt: skip
    cases = itertools.product((None, frozenset({"a"}), frozenset({"b"}), frozenset()), (True, False))
    for pods, queues in cases:
        told = hiding.eviction(row, sight.Sight(pods=pods, queues=queues))
        victim, claimant = pods is None or "a" in pods, pods is None or "b" in pods
        if not (victim or claimant):
            assert told is None
            continue
        assert (told.pod, told.victim) == (("x-0", "x") if victim else (hiding.JOB, ""))
        assert (told.claimant, told.group) == (("b/y-0", "b/y") if claimant else (hiding.JOB, ""))
        assert ("b/y-0" in told.text) == claimant
        assert (told.queue == "q") == (queues or claimant)
